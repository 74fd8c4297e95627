//===- CutScans.h - Loops along a cut dimension -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_CUTSCANS_H
#define TESSERA_TRANSFORMS_CUTSCANS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera::dist {

/// Divides loops over a dimension that annotations cut over n devices into n blocks of iterations,
/// which are computed at once: the blocks are a dimension of the tensors. What an iteration takes
/// from the one before must be affine in it, h' = a h + b element by element. If `gathersStates`,
/// all devices get what the blocks pass on, in one collective; else that is for propagation to
/// decide. For normalized programs; returns whether there was such a loop.
bool cutScans(mlir::ModuleOp module, bool gathersStates);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_CUTSCANS_H
