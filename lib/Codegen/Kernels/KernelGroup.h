//===- KernelGroup.h - Ops that can share an outer loop ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Softmax's maximum, exponential sum and division all run over rows. A group is a list of such ops
// with the *classes* of loops they have in common: loops of different ops are in one class if the
// ops index the tensors between them, or the tensors they share, by these loops in the same
// dimension.
//
//   op                                 | loops | class "row" | class "column"
//   max[i]  = max over j of x[i, j]    | i, j  | i           | j, reduced: gone once max is used
//   sum[i]  = sum over j of exp(...)   | i, j  | i           |
//   y[i, j] = exp[i, j] / sum[i]       | i, j  | i           |
//
// One loop over the tiles of the classes, with every op cut to the tile, is then equivalent to the
// sequence of ops: an op needs only the same tile of its producers.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELGROUP_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELGROUP_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::codegen {

/// An op of a group: `loopOf[c]` is its loop of class c.
struct GroupMember {
  mlir::linalg::GenericOp op;
  llvm::SmallVector<int> loopOf;
};

/// The scalar that `op` writes everywhere, when it is a fill; else null.
mlir::Value filledScalar(mlir::linalg::GenericOp op);

class KernelGroup {
public:
  /// Whether an op may be in a group at all: linear maps, static loops, no capture of tensors.
  /// Fills are excluded: each accumulator fills its own tile.
  static bool canHold(mlir::linalg::GenericOp op);

  /// The group of `op` alone, with all its loops of more than one trip.
  explicit KernelGroup(mlir::linalg::GenericOp op);

  /// Adds `op`, which follows the members, and drops the classes that it does not share. Returns
  /// false, without changes, if none would be left or the smallest tile would exceed the cache.
  bool join(mlir::linalg::GenericOp op);

  bool contains(mlir::Operation *op) const;
  /// Whether any operand of `op` or of ops nested in it is a member's result.
  bool feeds(mlir::Operation *op) const;
  /// Whether the member's loops of all classes are parallel: its result at a tile is complete
  /// there.
  static bool isParallel(const GroupMember &member);
  /// Whether class `c` is a parallel loop of every member.
  bool isParallel(unsigned c) const;
  /// Drops the classes for which `keep` is false.
  void restrict(llvm::function_ref<bool(unsigned)> keep);

  /// Bytes of all operands of all members when class c covers sizes[c] iterations.
  int64_t footprint(llvm::ArrayRef<int64_t> sizes) const;
  /// Sizes of the tiles: whole for inner classes, then as many as fit `limit` bytes, then 1.
  llvm::SmallVector<int64_t> tileSizes(int64_t limit) const;

  llvm::SmallVector<GroupMember> members;
  /// Trips of each class, outermost first.
  llvm::SmallVector<int64_t> trips;

private:
  /// The number of loops inside class `c` with operand reuse.
  unsigned reuseInside(unsigned c) const;
  /// Whether class `c` is the contiguous dimension of some tensor.
  bool isContiguous(unsigned c) const;
};

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELGROUP_H
