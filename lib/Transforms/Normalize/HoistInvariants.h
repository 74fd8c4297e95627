//===- HoistInvariants.h - What a loop does alike every time ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_HOISTINVARIANTS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_HOISTINVARIANTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Moves what does not depend on the iteration in front of its loop, so that it is computed, and
/// what it needs is sent, once. A loop may run zero times: nothing that could fail is moved.
void hoistInvariants(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_HOISTINVARIANTS_H
