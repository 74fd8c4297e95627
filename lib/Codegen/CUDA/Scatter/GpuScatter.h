//===- GpuScatter.h - Updates at computed indices, by blocks ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUSCATTER_H
#define TESSERA_CODEGEN_CUDA_GPUSCATTER_H

#include "../GpuStages.h"
#include "../Launches/GpuPlan.h"
#include "../Tiles/GpuTileWriter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace tessera::codegen {

/// Emits the launch of one nest.
class ScatterEmitter : TileWriter {
public:
  ScatterEmitter(mlir::Operation *nest, GpuLaunchBuilder &launch, GpuLaunchInfo &info)
      : TileWriter(launch, info), nest(nest), loops(perfectNest(nest)) {}

  /// Whether the scheme is possible; finds the roles of the loops.
  bool match();
  GpuShape emit();

private:
  /// Some of the loops and the number of their iterations, which count row-major.
  struct Loops {
    llvm::SmallVector<mlir::scf::ForOp> loops;
    int64_t count = 1;
    void add(mlir::scf::ForOp loop) {
      loops.push_back(loop);
      count *= *getConstantIntValue(loop.getUpperBound());
    }
  };

  void choose();
  void countBytes();
  /// Maps the induction variables to those of iteration `number`.
  void enter(const Loops &part, mlir::Value number, mlir::IRMapping &mapping);
  /// The place of an update, as a row of the block's range, if unsigned less than `share`.
  mlir::Value rowOf(mlir::Value update, mlir::IRMapping mapping);
  /// Writes the updates of the chunk at `base` that the block owns; returns their number.
  mlir::Value collect(mlir::Value base, const mlir::IRMapping &mapping);
  /// Adds up the values of the threads before this one in its warp, and leaves the sum of the warp
  /// in `totals`, at a place for each warp.
  mlir::Value sumBefore(mlir::Value sum, int64_t place);

  /// One update of a thread's columns.
  struct Update {
    mlir::IRMapping mapping;
    mlir::Value row, old, result;
  };
  /// Chooses the columns of a thread, and whether it performs several updates at once.
  void chooseLanes();
  /// Whether an access at these indices is to all lanes.
  bool isVector(mlir::ValueRange indices);
  /// Clones an op of one result, in lanes.
  void cloneOp(mlir::Operation &op, mlir::IRMapping &mapping);
  void store(mlir::memref::StoreOp op, mlir::Value value, const mlir::IRMapping &mapping);
  /// Enters the update that the block's list has at `number`.
  Update begin(mlir::Value base, mlir::Value number, const mlir::IRMapping &mapping);
  void perform(mlir::Value base, mlir::Value number, const mlir::IRMapping &mapping);
  /// Performs up to `together` updates, from `number` and below `count`.
  void performTogether(mlir::Value base, mlir::Value number, mlir::Value count,
                       const mlir::IRMapping &mapping);
  mlir::Value equal(mlir::Value left, mlir::Value right) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::eq, left, right);
  }
  mlir::Value word(int64_t value) { return mlir::arith::ConstantIntOp::create(b, loc, value, 32); }
  template <typename Body> void onlyIf(mlir::Value condition, Body body) {
    auto branch = mlir::scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  mlir::Operation *nest;
  llvm::SmallVector<mlir::scf::ForOp> loops;
  OwnedDimension owned;
  llvm::SmallVector<mlir::Operation *> slice; ///< ops that compute the place, in order
  Loops updates, batches, columns;

  int64_t threads = kBlockThreads;
  int64_t width = 1;  ///< columns of a block
  int64_t groups = 1; ///< threads of a column, which divide the rows of a range
  int64_t owners = 1, share = 1;
  int64_t items = 1;             ///< consecutive updates of a thread
  int64_t runs = 1;              ///< of these in a chunk
  int64_t lanes = 1;             ///< columns of a thread
  int64_t together = 1;          ///< updates that a thread performs at once
  mlir::memref::StoreOp written; ///< if `together` > 1, the only store,
  mlir::memref::LoadOp read;     ///< and the load of the same element, if any
  mlir::Value firstRow, own, rows, totals;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSCATTER_H
