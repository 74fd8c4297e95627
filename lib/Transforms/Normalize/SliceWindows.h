//===- SliceWindows.h - Compute the windows that are read -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SLICEWINDOWS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SLICEWINDOWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Computes only the elements of a convolution, or another op on windows, that its one reader, a
/// slice, takes. The derivatives of padded and transposed convolutions have this form: their
/// extents become those of their neighbors, so that both can be cut into the same parts.
void sliceWindows(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SLICEWINDOWS_H
