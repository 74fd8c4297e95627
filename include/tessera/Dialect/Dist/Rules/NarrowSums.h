//===- NarrowSums.h - Wide sums of 16-bit floats ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_NARROWSUMS_H
#define TESSERA_DIALECT_DIST_RULES_NARROWSUMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// An output of 16-bit floats that is the sum or product of a reduction. Its accumulator is f32 and
/// rounded once at the end, in compiled code and in the interpreter.
struct NarrowSum {
  unsigned output;           ///< number among the op's results
  mlir::Operation *combiner; ///< `arith.addf` or `mulf` of the accumulator and the new value
  /// The `arith.mulf` whose product is added, if it has no other readers: it is exact in f32, so it
  /// is not rounded before. Otherwise null.
  mlir::Operation *product;
};

/// For an op with tensor results and at least one reduction loop.
llvm::SmallVector<NarrowSum> narrowSums(mlir::linalg::LinalgOp op);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_NARROWSUMS_H
