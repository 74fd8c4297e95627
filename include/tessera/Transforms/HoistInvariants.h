//===- HoistInvariants.h - Hoist loop-invariant ops -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_HOISTINVARIANTS_H
#define TESSERA_TRANSFORMS_HOISTINVARIANTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Moves loop-invariant ops before their loop, so that they, and the communication of their
/// operands, run once. A loop may run zero times: ops that could fail are not moved.
void hoistInvariants(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_HOISTINVARIANTS_H
