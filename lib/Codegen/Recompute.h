//===- Recompute.h - Values that kernels compute again ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_RECOMPUTE_H
#define TESSERA_LIB_CODEGEN_RECOMPUTE_H

#include "mlir/IR/Operation.h"

namespace tessera::codegen {

/// Gives each group (FuseGraph::order) a copy of the elementwise ops whose large results it would
/// read from another group, where what these ops read is no larger: the results are then nowhere in
/// memory. A result stays where anything but a kernel reads it.
///
/// exp(x - m), summed up by one kernel and scaled by another, is computed by both from x, as the
/// derivative of a softmax.
void recomputeAcrossGroups(std::vector<std::vector<mlir::Operation *>> &groups);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_RECOMPUTE_H
