//===- FuseRows.h - The rows that fused ops have in common ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops may share a kernel when its outermost loops can be the same for all of
// them: when iteration r of every op reads, of what the others make, only what
// iteration r made. Those loops are the *rows* of the kernel; whatever else an op
// loops over happens within a row.
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

/// Rows of a set of ops. A row is a number; `extents` has it for every row that is common to all.
class RowSpace {
public:
  /// The rows of one op: its parallel loops that index every output.
  static RowSpace of(mlir::Operation *op);

  /// The rows of this consumer, an op alone, with those of a producer: fills `rows`; false when the
  /// two do not belong together (docs of `codegen-fuse`). `privateProducer`: nothing else uses what
  /// the producer makes.
  bool join(mlir::linalg::LinalgOp consumer, const RowSpace &producer, bool privateProducer,
            RowSpace &joined) const;

  /// Product of the extents.
  int64_t count() const;

private:
  /// Row of every dimension of a value made here, -1 for none.
  using Labels = llvm::SmallVector<int>;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallDenseMap<mlir::Value, Labels> values;
  /// The outermost rows of the ops; losing one turns row after row into a walk along columns.
  llvm::SmallVector<int> leads;
  int64_t work = 0; ///< iterations of all ops
  bool reduces = false;
};

} // namespace tessera::dist

#endif // TESSERA_FUSION_FUSEROWS_H
