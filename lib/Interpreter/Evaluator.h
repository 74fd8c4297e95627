//===- Evaluator.h - Values of one device while a program runs --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_INTERPRETER_EVALUATOR_H
#define TESSERA_LIB_INTERPRETER_EVALUATOR_H

#include "ScalarOps.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Interpreter/Interpreter.h"

#include "llvm/ADT/DenseMap.h"

namespace tessera::interpreter {

/// State shared by all devices of a run.
struct Program {
  Program(mlir::ModuleOp module, const Options &options)
      : module(module), options(options), meshes(module) {}

  mlir::ModuleOp module;
  Options options;
  dist::MeshTable meshes;
  uint64_t operations = 0; ///< executed so far
  llvm::DenseMap<mlir::Attribute, Tensor> constants;
  /// Ops unknown to the interpreter, as functions of known ops.
  llvm::DenseMap<mlir::Operation *, mlir::OwningOpRef<mlir::func::FuncOp>> decomposed;
  /// By block and operation, the values that the operation is the last to read.
  llvm::DenseMap<mlir::Block *, llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>>>
      lastUses;
};

/// The index nearest to the given one at which a slice of `size` elements with `stride` is within a
/// dimension of `extent`.
int64_t clampedIndex(int64_t index, int64_t extent, int64_t size = 1, int64_t stride = 1);

/// The outcome of an attempt to execute an op. `unknown`: this function does not execute ops of its
/// kind.
enum class Outcome { done, failed, unknown };

/// The values of one device, and the prefix of its errors.
class Evaluator {
public:
  /// `who` prefixes every message: empty, or `on device 3: `.
  Evaluator(Program &program, std::string who) : program(program), who(std::move(who)) {}

  const Tensor &get(mlir::Value value) const;
  llvm::SmallVector<Tensor> get(mlir::ValueRange values) const;
  /// The value of an integer or index scalar.
  int64_t getInt(mlir::Value value) const { return get(value).item().i; }
  /// The values of a mixed list: static entries, and values of dynamic ones.
  llvm::SmallVector<int64_t> getInts(llvm::ArrayRef<mlir::OpFoldResult> mixed) const;
  void set(mlir::Value value, Tensor tensor);
  void drop(mlir::Value value) { values.erase(value); }
  /// An uninitialized tensor.
  Tensor undefined(mlir::Type elementType, llvm::ArrayRef<int64_t> shape) const;

  /// An error at an op: `on device 3: 'arith.divsi' ` and the message. It does not print the op.
  mlir::InFlightDiagnostic error(mlir::Operation *op) const;

  Program &program;

private:
  std::string who;
  llvm::DenseMap<mlir::Value, Tensor> values;
};

/// A region that computes one element: the body of a linalg op, of `tensor.pad`, of
/// `tensor.generate`. Prepared once, then run for every element.
class ElementBody {
public:
  /// Fails with an error at the first unknown op. `wide`: sums and products of 16-bit floats that
  /// are computed in f32.
  static mlir::FailureOr<ElementBody> prepare(mlir::Block &block, Evaluator &evaluator,
                                              llvm::ArrayRef<mlir::Operation *> wide = {});
  ElementBody(ElementBody &&) = default;

  /// Runs the region with values for its block arguments at an iteration (the results of
  /// `linalg.index`); `yielded` returns the results. Fails with an error at an op without a result.
  mlir::LogicalResult run(llvm::ArrayRef<Scalar> arguments, llvm::ArrayRef<int64_t> iteration);
  Scalar yielded(unsigned index) const { return slots[body.yields[index]]; }

private:
  explicit ElementBody(Evaluator &evaluator)
      : evaluator(&evaluator), iteration(std::make_unique<llvm::SmallVector<int64_t>>()) {}
  struct Step;
  /// The ops of a block and its yielded values.
  struct Sequence {
    std::vector<Step> steps;
    llvm::SmallVector<unsigned> yields;
  };
  mlir::FailureOr<ScalarKernel> kernelOf(mlir::Operation *op);
  mlir::FailureOr<Sequence> sequenceOf(mlir::Block &block);
  mlir::LogicalResult run(const Sequence &sequence);
  /// The slot of a value; a scalar from outside gets a slot with its value.
  unsigned slotOf(mlir::Value value);

  struct Step {
    mlir::Operation *op;
    ScalarKernel kernel;
    llvm::SmallVector<unsigned> operands;
    llvm::SmallVector<unsigned> results;
    std::vector<Sequence> arms; ///< of an `scf.if`, which has no kernel
  };
  Evaluator *evaluator;
  llvm::SmallVector<mlir::Operation *> wide;
  std::unique_ptr<llvm::SmallVector<int64_t>> iteration; ///< read by the kernels of linalg.index
  llvm::DenseMap<mlir::Value, unsigned> slotOfValue;
  std::vector<Scalar> slots;
  Sequence body;
};

/// `arith` and `math` ops on scalars and elementwise on tensors, constants (ElementwiseOps.cpp).
Outcome executeElementwise(Evaluator &evaluator, mlir::Operation *op);
/// linalg structured ops and `linalg.softmax` (LinalgOps.cpp).
Outcome executeLinalg(Evaluator &evaluator, mlir::Operation *op);
/// The tensor dialect (TensorOps.cpp, TensorIndexOps.cpp).
Outcome executeTensor(Evaluator &evaluator, mlir::Operation *op);
Outcome executeTensorIndex(Evaluator &evaluator, mlir::Operation *op);
/// The ext dialect (ExtOps.cpp).
Outcome executeExt(Evaluator &evaluator, mlir::Operation *op);

} // namespace tessera::interpreter

#endif // TESSERA_LIB_INTERPRETER_EVALUATOR_H
