//===- SliceIndices.h - Slices of what indices alone determine --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SLICEINDICES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SLICEINDICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Computes a slice at computed offsets, of integers that are a function of their indices, from the
/// offsets: `arange(n)[i]`, as in a scan over `arange(n)`, is `i`. The slice would else be data,
/// and what is moved by it could not be planned.
void sliceIndices(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SLICEINDICES_H
