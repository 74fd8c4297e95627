//===- Recompute.h - Recompute values in kernels ----------------*- C++ -*-===//
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
/// read from another group, if the operands of these ops are not larger: the results are then never
/// stored in memory. A result with readers other than kernels is kept.
///
/// Example: one kernel sums up exp(x - m), another one scales it; both compute it from x, as in
/// the derivative of a softmax.
/// `leastBytes`: of a result; `mostFunctions`: calls that an element may take.
void recomputeAcrossGroups(std::vector<std::vector<mlir::Operation *>> &groups, int64_t leastBytes,
                           size_t mostFunctions);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_RECOMPUTE_H
