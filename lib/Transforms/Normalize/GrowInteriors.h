//===- GrowInteriors.h - Interiors in the grid's extents --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_GROWINTERIORS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_GROWINTERIORS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// If elementwise ops compute a value from slices of grids, and it is written into a grid, computes
/// it for all elements of the grid and selects those inside.
void growInteriors(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_GROWINTERIORS_H
