//===- SplitRepeats.h - Sums of consecutive rows ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITREPEATS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITREPEATS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Sums that add row s to row s / c of the result become sums over the c consecutive rows of each.
void splitRepeats(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITREPEATS_H
