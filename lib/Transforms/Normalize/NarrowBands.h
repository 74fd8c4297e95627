//===- NarrowBands.h - Products with band matrices --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_NARROWBANDS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_NARROWBANDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Rewrites products with a matrix known at compile time, whose elements are zero outside of a
/// band, as sums over the band: for example an interpolation between grids, or a stencil, written
/// as a matrix product. The result reads windows of the other operand, for which a device needs a
/// halo.
void narrowBands(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_NARROWBANDS_H
