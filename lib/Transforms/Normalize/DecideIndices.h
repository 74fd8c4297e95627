//===- DecideIndices.h - Values that loop indices determine -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEINDICES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEINDICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Replaces integers that are known functions of loop indices by these functions, and conditions
/// that always or never hold by constants.
void decideIndices(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEINDICES_H
