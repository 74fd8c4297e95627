//===- SinkUpdates.h - Sums at indices added to state -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKUPDATES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKUPDATES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Adds what few indices update to the state that it is added to anyway, in place of a sum as large
/// as the state: the gradient of an embedding to the table, scaled by the learning rate.
void sinkUpdates(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKUPDATES_H
