//===- ProgramBuilder.h - A program as it grows -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_FUZZ_PROGRAMBUILDER_H
#define TESSERA_LIB_FUZZ_PROGRAMBUILDER_H

#include "Annotations.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace tessera::fuzz {

using Shape = std::vector<int64_t>;

/// A tensor that further ops may use, and what is known of it.
struct Entry {
  mlir::Value value;
  double low = -1, high = 1; ///< bounds of the elements of a float tensor
  bool exact = true;         ///< see GeneratedProgram
  int mesh = -1;             ///< index of its mesh; -1 may be used on any
  int64_t steps = 1;

  mlir::RankedTensorType type() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  mlir::Type element() const { return type().getElementType(); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(element()); }
  int64_t rank() const { return type().getRank(); }
  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};

/// Of integer arguments that may be any number.
inline constexpr int64_t kLowest = -4;

/// The function being generated, the values that it has so far, and small helpers to write ops
/// with.
class ProgramBuilder {
public:
  ProgramBuilder(mlir::MLIRContext *context, uint64_t seed, const GeneratorOptions &options);
  /// Runs the whole generation.
  GeneratedProgram run();

  Random random;
  const GeneratorOptions &options;
  mlir::OpBuilder b;
  mlir::Location loc;

  //===--- Choosing ----------------------------------------------------------===//
  mlir::Type anyElement(); ///< f32, f64, i32, i64, rarely bf16
  mlir::Type floatElement();
  int64_t anySize() { return random.between(1, options.maxSize); }
  /// Extents whose product stays within a few thousand.
  Shape anyShape(int64_t rank);
  /// A value of the pool of rank [minRank, maxRank] that `fits`, else a fresh one; most often one
  /// of the latest.
  Entry any(int64_t minRank, int64_t maxRank,
            llvm::function_ref<bool(const Entry &)> fits = nullptr);
  Entry anyFloat(int64_t minRank, int64_t maxRank);
  /// A value of exactly this type: of the pool, else fresh.
  Entry ofType(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  /// A new argument or constant. Integers are in [low, high) if both are given.
  Entry fresh(llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t low = 0, int64_t high = 0);

  //===--- Writing -----------------------------------------------------------===//
  mlir::Value constant(mlir::Type element, double value); ///< a scalar
  mlir::Value splat(llvm::ArrayRef<int64_t> shape, mlir::Type element, double value);
  mlir::Value index(int64_t value);
  mlir::Value empty(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value filled(llvm::ArrayRef<int64_t> shape, mlir::Type element, double value);
  /// What a reduction starts from: its identity, another constant, or some value of that shape,
  /// whose bounds are added to `bounds`. `identity` is given as a constant.
  Entry init(llvm::ArrayRef<int64_t> shape, mlir::Type element, double identity);
  /// Adds a result to the pool; scales floats that have become large.
  void push(mlir::Value value, double low, double high, bool exact, int64_t steps);
  /// The same for a result that depends on `operands` only by moving elements or by a function of
  /// single elements.
  void pushLike(mlir::Value value, llvm::ArrayRef<Entry> operands);
  /// Scales a float value into [-bound, bound].
  Entry within(Entry entry, double bound);
  /// linalg.generic with identity-like maps; the body is written by `body`.
  mlir::Value generic(llvm::ArrayRef<Entry> inputs, mlir::Value init,
                      llvm::ArrayRef<mlir::AffineMap> maps, llvm::ArrayRef<bool> isReduction,
                      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> body);

  /// Where a program has two meshes, a value must say which one it is on unless an operand does:
  /// the same value under a constraint that leaves everything open.
  Entry pin(Entry entry);

  /// Some programs compare floats, others average them: an average is not exact, and a comparison
  /// of what is not exact may go either way.
  bool comparesFloats = false;

  //===--- Control flow (ControlFlow.cpp) ------------------------------------===//
  /// Ops inside regions, one level of them.
  bool loop();
  bool branch();
  bool repeatUntil();
  bool repeatWhileSmall();
  int depth = 0;

private:
  void declareMeshes();
  bool addOp();
  void switchMesh();
  void annotateValue();
  void finish(GeneratedProgram &program);
  /// The argument that each of the results feeds in the next step, -1: none. Scales what is fed
  /// into the range of an argument.
  std::vector<int64_t> addFeeds(std::vector<Entry> &returned);
  bool usable(const Entry &entry) const { return entry.mesh < 0 || entry.mesh == mesh; }
  PartialChoice partialChoice(mlir::Type element, int64_t chance);
  /// A value of the same type made of two: what a loop may carry on.
  Entry combine(const Entry &a, const Entry &c);
  /// `into` plus the sum over the last dimension of another tensor: a gradient that accumulates.
  Entry accumulate(const Entry &into);
  /// Writes up to `count` ops into a region; what they push is forgotten afterwards but for the
  /// last value of each of `types`.
  llvm::SmallVector<Entry> nested(llvm::ArrayRef<Entry> carried, int64_t count);

  Annotations annotations;
  std::vector<sharding::Mesh> meshes;
  int mesh = 0; ///< where ops are written for now
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::vector<Entry> pool;
};

/// One kind of op that can be added. Returns false when nothing fits; then another is tried.
struct Kind {
  const char *name;
  int64_t weight;
  bool (*add)(ProgramBuilder &);
};

/// All of them, from the files by theme.
std::vector<Kind> allKinds();
void addElementwiseKinds(std::vector<Kind> &kinds);
void addContractionKinds(std::vector<Kind> &kinds);
void addReductionKinds(std::vector<Kind> &kinds);
void addShapeKinds(std::vector<Kind> &kinds);
void addWindowKinds(std::vector<Kind> &kinds);
void addIndexKinds(std::vector<Kind> &kinds);
void addLineKinds(std::vector<Kind> &kinds);
void addMoveKinds(std::vector<Kind> &kinds);
void addBodyKinds(std::vector<Kind> &kinds);
void addPartialWriteKinds(std::vector<Kind> &kinds);
/// For programs that are differentiated only.
void addDerivativeKinds(std::vector<Kind> &kinds);

} // namespace tessera::fuzz

#endif // TESSERA_LIB_FUZZ_PROGRAMBUILDER_H
