//===- Program.h - The device program as data -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C++ form of the `program` section of an artifact (docs/step-format.md,
// which defines every field). The compiler fills these structures and calls
// `toJson`; the runtime calls `parseProgram`, which returns only programs that
// `verify` accepts.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_PROGRAM_H
#define TESSERA_RUNTIME_ARTIFACT_PROGRAM_H

#include "tessera/Runtime/Artifact/DType.h"
#include "tessera/Runtime/Artifact/Status.h"
#include "tessera/Sharding/Collective.h"

#include <array>
#include <variant>

namespace tessera::runtime {

using Shape = std::vector<int64_t>;

/// A named interval of a part's arena, or of the read-only `constants` section.
struct Slot {
  enum class Space { arena, constant };
  std::string name;
  Space space = Space::arena;
  int64_t offset = 0; ///< bytes, a multiple of the element size
  int64_t bytes = 0;  ///< at least the product of `shape` times the element size
  DType dtype = DType::f32;
  Shape shape; ///< of a device's buffer, dense and row-major
};

/// The home of an argument or result: a slot of a part, with its layout.
struct Home {
  int64_t part = 0;
  int64_t slot = 0;
  sharding::Layout layout;          ///< `globalShape` is that of the argument
  std::optional<int64_t> mesh = {}; ///< of the layout; by default the part's
};

/// An input of the program (docs/step-format.md, program). The caller gives the whole tensor; each
/// home names the slot and layout of a part's share of it.
struct Argument {
  std::string name;
  DType dtype = DType::f32;
  Shape globalShape;
  std::optional<std::array<int64_t, 2>> range = {}; ///< [lo, hi) of random integers
  std::vector<Home> homes;                          ///< one per part that reads it
};

/// An output of the program, read from its home after the last step of an execution.
struct Result {
  std::string name;
  DType dtype = DType::f32;
  Shape globalShape;
  std::optional<int64_t> feeds = {}; ///< the argument of the next step that it becomes
  Home home;
};

/// A slot of dtype `index` that holds the device's linear index over `axes`.
struct Coordinate {
  int64_t slot = 0;
  sharding::AxisList axes;
  std::optional<int64_t> mesh = {}; ///< of the axes; by default the part's
};

struct Step;
using StepList = std::vector<Step>;

/// Calls `void kernel(void **slots, int64_t begin, int64_t end)`, once or for each block.
struct LaunchStep {
  int64_t kernel = 0;         ///< index into Program::kernels
  std::vector<int64_t> slots; ///< "args": their pointers in order
  int64_t reads = 0;          ///< the number of leading slots that are only read
  /// Calls, in any order. In call i the pointers of the slots that are cut are i times the bytes
  /// that the kernel accesses (Program::kernelBytes) behind the start.
  int64_t blocks = 1;
  std::vector<bool> cut = {}; ///< for each slot; empty: none is cut
  /// Call i needs of the result of the product before it, cut into `blocks` equal parts, only part
  /// i, and may run as soon as that is complete. In host memory only.
  bool joins = false;

  bool isCut(size_t index) const { return !cut.empty() && cut[index]; }
};

/// The function applied to each element of a product. gelu is x/2 (1 + tanh(sqrt(2/pi) (x +
/// 0.044715 x^3))).
enum class Epilogue { none, relu, gelu };
std::string_view toString(Epilogue epilogue);

/// C[b] = epilogue(A[b] · B[b] (+ C[b]) (+ bias)), row-major: A is m x k (k x m when transA), B is
/// k x n (n x k when transB), bias is n elements of C's type, added to every row. Leading
/// dimensions and strides are in elements; a stride of 0 repeats an operand.
struct GemmStep {
  DType dtype = DType::f32;              ///< of A and B
  std::optional<DType> resultDType = {}; ///< "c_dtype": of C; f32 for f16 and bf16 operands
  int64_t a = 0, b = 0, c = 0;           ///< slots
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transA = false, transB = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t strideA = 0, strideB = 0, strideC = 0;
  bool accumulate = false;
  std::optional<int64_t> bias = {}; ///< slot; f32, f16 and bf16 only, as any epilogue
  Epilogue epilogue = Epilogue::none;

  bool hasEpilogue() const { return bias.has_value() || epilogue != Epilogue::none; }
};

/// A loop of a contraction: its trips, and the strides in elements of A, B and C
/// (0 where an operand does not depend on the loop; negative where it is read backwards).
struct ContractLoop {
  int64_t extent = 1;
  std::array<int64_t, 3> strides = {0, 0, 0};
};

/// Where products of a contraction add nothing, since an operand is padded with zeros: those for
/// which the sum of index times stride over all loops is not in [begin, end).
struct ContractBounds {
  std::vector<int64_t> strides; ///< of each loop
  int64_t begin = 0, end = 0;
};

/// C (+)= sum A · B over all loops: each operand is read or written at `starts` plus the sum of
/// index times stride. Loops that C depends on are parallel, the others are summed over. Windows
/// may overlap in A or B, so convolutions and their derivatives are contractions, too. C is f32.
struct ContractStep {
  DType dtype = DType::f32;    ///< of A and B: f32, f16 or bf16
  int64_t a = 0, b = 0, c = 0; ///< slots
  std::array<int64_t, 3> starts = {0, 0, 0};
  std::vector<ContractLoop> loops;
  bool accumulate = false;
  std::vector<ContractBounds> within = {}; ///< products outside of any of them may be left out
};

/// One tensor of a collective or of a transfer. `src` is unused in a `recv`, `dst` in a `send`.
struct Operand {
  int64_t src = -1;
  int64_t dst = -1;
  DType dtype = DType::f32;
  Shape globalShape;
  sharding::Layout source; ///< `globalShape` repeated in both layouts
  sharding::Layout target;
  std::optional<double> fill = {}; ///< written to the padding of the target
};

/// Moves every operand from its source layout to its target layout among the devices of a part
/// (docs/step-format.md, steps: `collective`).
struct CollectiveStep {
  sharding::CollectiveKind kind = sharding::CollectiveKind::all_reduce;
  int64_t mesh = 0; ///< the part's, or another arrangement of the same devices
  std::optional<int64_t> targetMesh = {}; ///< of the target layouts, when it is not `mesh`
  sharding::AxisList axes;
  std::optional<sharding::ReduceKind> reduction = {};
  std::optional<int64_t> token = {}; ///< asynchronous when given; a `wait` of the same list ends it
  std::vector<Operand> operands;     ///< several are one fused collective
  int64_t wireBytes = 0;             ///< predicted, of one execution (docs/step-format.md)
  int64_t id = 0;                    ///< unique in the program; names it in reports and traces
};

/// `send` or `recv`: one side of a move between two parts, paired by `id`.
struct TransferStep {
  bool isSend = true;
  int64_t sourceMesh = 0;
  int64_t targetMesh = 0;
  std::vector<Operand> operands;
  int64_t wireBytes = 0;
  int64_t id = 0; ///< the same in both sides, and no collective's
};

/// The asynchronous collective with this token is complete on the device behind this step. Every
/// token has one, in the list of steps that starts it.
struct WaitStep {
  int64_t token = 0;
};

/// Copies the first `bytes` bytes of a slot to another one of the device.
struct CopyStep {
  int64_t src = 0, dst = 0; ///< slots
  int64_t bytes = 0;
};

/// A loop bound: a number, or the content of a slot of dtype index, i64 or i32.
struct Bound {
  int64_t value = 0;
  std::optional<int64_t> slot = {};
};

/// A counted loop, for (iv = lower; iv < upper; iv += step) body. The executor writes `iv` before
/// each trip.
struct LoopStep {
  int64_t iv = 0; ///< slot of dtype `index`
  Bound lower, upper, step;
  StepList body;
};

/// Runs `before`, stops if `condition` is then 0, runs `body`, and repeats.
struct WhileStep {
  StepList before;
  int64_t condition = 0; ///< slot of dtype i1
  StepList body;
};

/// Runs one of two lists. The condition is equal on all devices of the part.
struct IfStep {
  int64_t condition = 0; ///< slot of dtype i1
  StepList thenSteps, elseSteps;
};

/// One step of a part: what it does, and its place in the total order over all parts.
struct Step {
  int64_t order = 0; ///< strictly increasing within a part, a body after its head
  std::string loc;   ///< source location, may be empty
  std::string name;  ///< for traces, may be empty
  std::variant<LaunchStep, GemmStep, CollectiveStep, TransferStep, WaitStep, CopyStep, LoopStep,
               WhileStep, IfStep, ContractStep>
      action;
};

/// The program of one mesh: every device of it executes `steps` over an arena of its own.
struct Part {
  std::string name;
  int64_t mesh = 0;
  int64_t arenaBytes = 0;
  /// The last bytes of the arena, in which the runtime keeps packed operands of products
  /// (PackedProducts.h). No slot is there.
  int64_t packedBytes = 0;
  std::vector<Slot> slots;
  std::vector<Coordinate> coordinates;
  StepList steps;
};

/// A whole device program: the parts of all meshes, their inputs and results. Indices in steps
/// refer to these lists; `verify` checks all of them.
struct Program {
  std::vector<sharding::Mesh> meshes;
  std::vector<std::string> kernels; ///< symbols of the `kernels` section
  /// Bytes that each kernel accesses from each of its arguments on; empty: unknown.
  std::vector<std::vector<int64_t>> kernelBytes;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  std::vector<Part> parts;

  /// 1 + the largest process id of any mesh: the devices that a backend must offer.
  int64_t numDevices() const;
  /// The mesh of a home's layout.
  const sharding::Mesh &meshOf(const Home &home) const;
  /// Index of the argument or result of that name, or -1.
  int64_t findArgument(std::string_view name) const;
  int64_t findResult(std::string_view name) const;
};

/// The JSON text of a program; one line per step, deterministic.
std::string toJson(const Program &program);

/// Reads and verifies a program. `constantBytes` is the size of the artifact's constants. Errors
/// name the place: "program.parts[0].steps[3].src: slot 12 does not exist, the part has 9".
Expected<Program> parseProgram(std::string_view json, int64_t constantBytes);

/// Checks every reference: slots, intervals, kernels, meshes, devices, axes, ranks, dtypes, tokens,
/// pairs of send and recv, orders. A verified program cannot make an executor access memory outside
/// its slots (for kernels this is the compiler's promise, `kernelBytes`).
Status verify(const Program &program, int64_t constantBytes);

/// A layout's JSON, as in step-format.md; for reports.
std::string toJson(const sharding::Layout &layout);
/// The mesh and layout of a home: {"mesh": {…}, "layout": {…}}.
std::string toJson(const Program &program, const Home &home);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_ARTIFACT_PROGRAM_H
