//===- FactorSums.h - Sums that differ by an invariant factor ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_FACTORSUMS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_FACTORSUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {
class MeshTable;

/// Of sums of f32 or f64 over a cut dimension that add up the same product but for factors which do
/// not depend on it, sums the product alone, once, and multiplies the results; a sum of deviations
/// from their own mean becomes zero. Sums are regrouped: results differ by rounding.
void factorSums(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_FACTORSUMS_H
