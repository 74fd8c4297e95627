//===- FuseRows.h - Common rows of fused ops --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops may share a kernel if they have common outermost loops: if iteration r of
// every op reads only those results of the others that iteration r computes. These
// loops are the *rows* of the kernel; all other loops of an op run within a row.
//
//   max over d1 of x[d0, d1]     rows d0
//   exp(x[d0, d1] - max[d0])     rows d0, d1; with the max: d0
//   sum over d0 of e[d0, d1]     rows d1; with the two above: none
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FUSION_FUSEROWS_H
#define TESSERA_FUSION_FUSEROWS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::dist {

/// Rows of a set of ops. A row is a number; `extents` has every row common to all.
class RowSpace {
public:
  /// The rows of one op: its parallel loops that index every output.
  static RowSpace of(mlir::Operation *op);

  /// Joins the rows of this consumer, a single op, with those of a producer: fills `rows`; false if
  /// the two cannot be fused (docs of `codegen-fuse`). `privateProducer`: the producer's results
  /// have no other users.
  bool join(mlir::linalg::LinalgOp consumer, const RowSpace &producer, bool privateProducer,
            RowSpace &joined) const;

  /// Product of the extents.
  int64_t count() const;

private:
  /// Row of every dimension of a value of the set, -1 for none.
  using Labels = llvm::SmallVector<int>;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallDenseMap<mlir::Value, Labels> values;
  /// The outermost rows of the ops; without one of them, accesses would be along columns.
  llvm::SmallVector<int> leads;
  int64_t work = 0; ///< iterations of all ops
  bool reduces = false;
};

} // namespace tessera::dist

#endif // TESSERA_FUSION_FUSEROWS_H
