//===- NarrowSums.h - Which sums of 16-bit floats are wide ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_NARROWSUMS_H
#define TESSERA_DIALECT_DIST_RULES_NARROWSUMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// An output of 16-bit floats that adds up, or multiplies, what a reduction visits. Its accumulator
/// is f32 and rounded once at the end; compiled code and the interpreter ask for it here.
struct NarrowSum {
  unsigned output;           ///< number among the op's results
  mlir::Operation *combiner; ///< `arith.addf` or `mulf` of the accumulator and what is added
  /// The `arith.mulf` whose product is added, where nothing else reads it: exact in f32, so it is
  /// not rounded before. Null if there is none.
  mlir::Operation *product;
};

/// Of an op whose results are tensors, with at least one reduction loop.
llvm::SmallVector<NarrowSum> narrowSums(mlir::linalg::LinalgOp op);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_NARROWSUMS_H
