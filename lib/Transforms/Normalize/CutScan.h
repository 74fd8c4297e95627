//===- CutScan.h - A loop along a cut dimension -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_CUTSCAN_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_CUTSCAN_H

#include "AffineCarries.h"
#include "BlockedOps.h"
#include "ConnectedDims.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {

/// A carry of the loop.
struct Carry {
  mlir::BlockArgument argument;
  mlir::Value yielded;
  mlir::OpResult result;
  /// What stacks an element of each iteration, and where; null for other carries.
  mlir::tensor::InsertSliceOp stack;
  int64_t dim = 0;
  AffineCarry affine;
  int level = 0; ///< of a recurrence: behind those of lower levels

  bool isRecurrence() const { return !stack && !affine.isSum; }
};

/// A loop whose iterations can be computed in blocks.
class CutScan {
public:
  static std::optional<CutScan> match(mlir::scf::ForOp loop);
  /// Takes a block for each device over which a dimension of the iterations is cut. False if there
  /// are none, or if they have no more than an iteration each, or not the same number.
  bool chooseBlocks(const ConnectedDims &dims);
  /// On `mesh`, if it is not null, the states of the blocks are gathered.
  void rewrite(mlir::FlatSymbolRefAttr mesh, const MeshTable &meshes);

private:
  explicit CutScan(mlir::scf::ForOp loop) : loop(loop), b(loop), loc(loop.getLoc()) {}

  bool readBounds();
  /// Whether an offset counts the iterations, from the first or from the last on.
  bool isCounter(mlir::OpFoldResult offset);
  /// The dimension of which a slice takes the element of an iteration.
  std::optional<int64_t> dimOfIterations(mlir::OffsetSizeAndStrideOpInterface slice,
                                         mlir::RankedTensorType type);
  bool readCarry(mlir::BlockArgument argument);
  bool readBody();
  bool orderRecurrences();

  mlir::Value initOf(const Carry &carry) { return loop.getTiedLoopInit(carry.argument)->get(); }
  int64_t perBlock() const { return trips / blocks; }
  mlir::Value splat(mlir::RankedTensorType type, double value);
  mlir::Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, loc, value); }
  /// The tensor with blocks of a dimension in front.
  mlir::Value inBlocks(mlir::Value value, int64_t dim);
  mlir::Value outOfBlocks(mlir::Value value, int64_t dim);
  /// By carry.
  struct PassResults {
    llvm::DenseMap<mlir::Value, mlir::Value> carries, products;
  };
  /// The loop over an iteration of each block. Recurrences below `level` start with their values in
  /// front of the blocks; those of the level at 0, with the product of their factors behind them;
  /// all others only if `isLast`.
  PassResults writePass(int level, bool isLast);
  void writeBody(BlockedOps &ops, mlir::Value position,
                 const llvm::SetVector<mlir::Operation *> &needed);
  mlir::Value writeFactor(BlockedOps &ops, const Carry &carry, mlir::Value product);
  /// The value with its blocks on all devices that share them.
  mlir::Value gathered(mlir::Value value, mlir::FlatSymbolRefAttr mesh, const MeshTable &meshes);
  /// Puts the last value of each block in front of the next.
  void shift(Carry &carry, mlir::Value last);
  /// Finds the values of a recurrence in front of the blocks, and behind the last.
  void passOn(Carry &carry, mlir::Value last, mlir::Value product);

  mlir::scf::ForOp loop;
  mlir::OpBuilder b;
  mlir::Location loc;
  int64_t trips = 0, blocks = 1;
  sharding::AxisList axes; ///< over which the blocks are cut
  bool isReverse = false, isForward = false;
  llvm::SmallVector<Carry> carries;
  llvm::MapVector<mlir::Operation *, int64_t> slices; ///< of an iteration: the dimension
  llvm::DenseMap<mlir::Value, mlir::Value> before; ///< by recurrence: in front of the blocks
  llvm::DenseMap<mlir::Value, mlir::Value> finals; ///< by recurrence: the result
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> sources; ///< in blocks
};

/// The ops of a loop's body from which values are computed.
llvm::SetVector<mlir::Operation *> opsBehind(mlir::scf::ForOp loop, mlir::ValueRange values);

/// Groups of dimensions, of which `dim` is two.
llvm::SmallVector<mlir::ReassociationIndices> groupsWith(int64_t rank, int64_t dim);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_CUTSCAN_H
