//===- KernelEmitter.h - Vector loops from a planned nest -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The structure of the emitted code, with vectors along a parallel loop v and the parallel loop u
// jammed:
//
//   for outer ...                      for outer ...
//     for u step jams                    for v step lanes * vectors      (no reduction)
//       for v step lanes * vectors         for each vector: load, compute, store
//         accumulators = load out
//         for inner ...                for outer ...                     (v is reduced)
//           for each u, vector:          for u step jams
//             accumulator = body           accumulators = neutral
//         store accumulators               for inner ... for v step ...
//                                            accumulator = body
//                                          store combine(out, across lanes(accumulators))
//
// Shapes are static, so the remainder of v is emitted as one more copy with the remaining widths
// (8, 8, 5): LLVM splits odd widths itself, on any target, and no element beyond the end is
// accessed.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_KERNELEMITTER_H
#define TESSERA_CODEGEN_CPU_KERNELEMITTER_H

#include "../Kernels/KernelLanes.h"
#include "KernelPlan.h"

namespace tessera::codegen {

class NestEmitter {
public:
  NestEmitter(mlir::OpBuilder &builder, const Nest &nest, const NestPlan &plan)
      : b(builder), loc(nest.op.getLoc()), nest(nest), plan(plan), position(nest.loops.size()) {}

  /// Emits the whole nest before the builder's insertion point. The op stays; the caller erases it.
  void emit();

private:
  /// The index of a loop: a variable plus a constant.
  struct Position {
    mlir::Value iv;
    int64_t offset = 0;
  };
  /// Adjacent vectors: the start (relative to v's position) and width of each. Scalar code has one
  /// chunk of width 0.
  struct Chunk {
    int64_t begin = 0;
    int64_t width = 0;
  };
  using Values = llvm::SmallVector<mlir::Value>;

  bool vectorReduces() const { return plan.vector >= 0 && nest.loops[plan.vector].reduction; }
  /// A loop from 0 to `extent` by blocks, with a shorter block at the end.
  void blocks(unsigned loop, int64_t block, llvm::function_ref<void(int64_t size)> body);
  void outerLoops(unsigned depth);
  void jamBlocks();
  void vectorBlocks(int64_t jams);
  llvm::SmallVector<Chunk> chunksOf(int64_t elements) const;
  void tile(int64_t jams, llvm::ArrayRef<Chunk> chunks);
  void reducedTile(int64_t jams);
  /// The reduction loops from `depth` inwards around `body`, which maps accumulators to
  /// accumulators.
  Values innerLoops(unsigned depth, Values accumulators, llvm::function_ref<Values(Values)> body);
  /// One copy of the body; writes streamed outputs, returns the accumulating ones' new values.
  Values body(int64_t jam, Chunk chunk, mlir::ValueRange accumulators);
  mlir::Value indexOf(unsigned origin, int64_t jam, Chunk chunk);

  mlir::Value address(const NestOperand &operand, int64_t jam, int64_t begin);
  mlir::Value load(const NestOperand &operand, int64_t jam, Chunk chunk);
  mlir::Value loadTransposed(const NestOperand &operand, int64_t jam);
  void store(const NestOperand &operand, int64_t jam, Chunk chunk, mlir::Value value);
  mlir::Value constant(int64_t value);
  mlir::Value view(const NestOperand &operand);

  mlir::OpBuilder &b;
  mlir::Location loc;
  const Nest &nest;
  const NestPlan &plan;
  llvm::SmallVector<Position> position;
  llvm::SmallVector<mlir::Value> views;
  /// Loads of the current innermost block, so that jammed copies share them.
  std::map<std::tuple<unsigned, int64_t, int64_t, int64_t>, mlir::Value> loaded;
  std::map<std::pair<unsigned, int64_t>, mlir::Value> transposed;
  int64_t currentJams = 1; ///< jammed copies of the block being emitted
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CPU_KERNELEMITTER_H
