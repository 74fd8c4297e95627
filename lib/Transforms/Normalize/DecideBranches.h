//===- DecideBranches.h - Branches whose condition is known -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEBRANCHES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEBRANCHES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Replaces an `scf.if` whose condition is a compile-time constant by the branch taken, as where a
/// front end chooses by platform. Both branches would otherwise agree on shardings, and neither
/// would be seen by passes that compose ops.
void decideBranches(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEBRANCHES_H
