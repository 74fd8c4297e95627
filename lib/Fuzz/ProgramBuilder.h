//===- ProgramBuilder.h - Builds a random program ---------------*- C++ -*-===//
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

/// A tensor that later ops may use, with its known properties.
struct Entry {
  mlir::Value value;
  double low = -1, high = 1; ///< bounds of the elements of a float tensor
  bool exact = true;         ///< see GeneratedProgram
  int mesh = -1;             ///< index of its mesh; -1: usable on any
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

/// Lower bound of integer arguments without a range.
inline constexpr int64_t kLowest = -4;

/// The function being generated, its values so far, and helpers that write ops.
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
  /// A value of the pool of rank [minRank, maxRank] that `fits`, most often a recent one, else a
  /// fresh one.
  Entry any(int64_t minRank, int64_t maxRank,
            llvm::function_ref<bool(const Entry &)> fits = nullptr);
  Entry anyFloat(int64_t minRank, int64_t maxRank);
  /// A value of exactly this type, from the pool or fresh.
  Entry ofType(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  /// A new argument or constant. Integers are in [low, high) if both are given.
  Entry fresh(llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t low = 0, int64_t high = 0);

  //===--- Writing -----------------------------------------------------------===//
  mlir::Value constant(mlir::Type element, double value); ///< a scalar
  mlir::Value splat(llvm::ArrayRef<int64_t> shape, mlir::Type element, double value);
  mlir::Value index(int64_t value);
  mlir::Value empty(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value filled(llvm::ArrayRef<int64_t> shape, mlir::Type element, double value);
  /// The initial value of a reduction: its identity, another constant, or some value of that shape,
  /// whose bounds are added to `bounds`. `identity` is given as a constant.
  Entry init(llvm::ArrayRef<int64_t> shape, mlir::Type element, double identity);
  /// Adds a result to the pool; scales down large floats.
  void push(mlir::Value value, double low, double high, bool exact, int64_t steps);
  /// The same for a result that only moves elements of `operands` or applies functions of single
  /// elements.
  void pushLike(mlir::Value value, llvm::ArrayRef<Entry> operands);
  /// Scales a float value into [-bound, bound].
  Entry within(Entry entry, double bound);
  /// linalg.generic with identity-like maps; the body is written by `body`.
  mlir::Value generic(llvm::ArrayRef<Entry> inputs, mlir::Value init,
                      llvm::ArrayRef<mlir::AffineMap> maps, llvm::ArrayRef<bool> isReduction,
                      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> body);

  /// If a program has two meshes and no operand determines that of the value, returns the value
  /// under a constraint that names the mesh and leaves everything else open.
  Entry pin(Entry entry);

  /// A new float argument under a constraint that cuts its first dimension into equal parts over
  /// one axis; `parts` is set.
  Entry cutRows(int64_t rank, int64_t &parts);
  /// `value` under the constraint of what `cutRows` returned.
  mlir::Value cutLike(mlir::Value value, const Entry &rows);

  /// A program either compares floats or averages them: an average is not exact, and the comparison
  /// of an inexact value may have either result.
  bool comparesFloats = false;

  /// Values that may replace arguments without being scaled: they differ by little.
  llvm::SmallVector<std::pair<mlir::Value, mlir::BlockArgument>> updates;

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
  /// By result, the argument that it feeds in the next step, or -1. Scales such results into the
  /// range of the argument.
  std::vector<int64_t> addFeeds(std::vector<Entry> &returned);
  bool usable(const Entry &entry) const { return entry.mesh < 0 || entry.mesh == mesh; }
  PartialChoice partialChoice(mlir::Type element, int64_t chance);
  /// A value of the same type computed from two: the next value of a loop carry.
  Entry combine(const Entry &a, const Entry &c);
  /// `into` plus the sum over the last dimension of another tensor: a gradient that accumulates.
  Entry accumulate(const Entry &into);
  /// Writes up to `count` ops into a region; of their results only the last value of each of
  /// `types` is kept.
  llvm::SmallVector<Entry> nested(llvm::ArrayRef<Entry> carried, int64_t count);

  Annotations annotations;
  std::vector<sharding::Mesh> meshes;
  int mesh = 0; ///< the mesh of the ops being written
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::vector<Entry> pool;
};

/// One kind of op that can be added. Returns false if no value fits; then another kind is tried.
struct Kind {
  const char *name;
  int64_t weight;
  bool (*add)(ProgramBuilder &);
};

/// All kinds, from the files by theme.
std::vector<Kind> allKinds();
void addElementwiseKinds(std::vector<Kind> &kinds);
void addContractionKinds(std::vector<Kind> &kinds);
void addReductionKinds(std::vector<Kind> &kinds);
void addShapeKinds(std::vector<Kind> &kinds);
void addWindowKinds(std::vector<Kind> &kinds);
void addIndexKinds(std::vector<Kind> &kinds);
void addLineKinds(std::vector<Kind> &kinds);
void addRecurrenceKinds(std::vector<Kind> &kinds);
void addAttentionKinds(std::vector<Kind> &kinds);
void addMoveKinds(std::vector<Kind> &kinds);
void addBodyKinds(std::vector<Kind> &kinds);
void addPartialWriteKinds(std::vector<Kind> &kinds);
void addPartKinds(std::vector<Kind> &kinds);
void addBatchKinds(std::vector<Kind> &kinds);
void addFlatIndexKinds(std::vector<Kind> &kinds);
/// For differentiated programs only.
void addDerivativeKinds(std::vector<Kind> &kinds);

} // namespace tessera::fuzz

#endif // TESSERA_LIB_FUZZ_PROGRAMBUILDER_H
