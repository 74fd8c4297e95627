//===- FormRearrangements.h - Chains of moves as one op ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_FORMREARRANGEMENTS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_FORMREARRANGEMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Composes concatenations, slices, pads, insertions into constants and reversals along one
/// dimension into one `dist.rearrange`, or one slice: for example a roll, which is a concatenation
/// of two slices, or its derivative, a sum of two pads. Single moves stay as they are, except for
/// reversals.
void formRearrangements(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_FORMREARRANGEMENTS_H
