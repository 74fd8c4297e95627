//===- CopyIndices.h - A copy of what indices say, for each use -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_COPYINDICES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_COPYINDICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Gives each user of a mask that is computed of indices alone its own copy of the mask, so that
/// users may cut it differently: any device can compute any part of it.
void copyIndices(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_COPYINDICES_H
