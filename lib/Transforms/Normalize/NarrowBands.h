//===- NarrowBands.h - Products with matrices of a band ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_NARROWBANDS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_NARROWBANDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Writes products with a matrix that is known at compile time, and whose elements are zero but for
/// a band, as sums over the band: an interpolation between grids, or a stencil, that was written as
/// a product. What is left is a window of the other operand, of which a device needs a halo.
void narrowBands(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_NARROWBANDS_H
