//===- WorkingSet.h - What an op takes while it runs ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_WORKINGSET_H
#define TESSERA_PLANNING_WORKINGSET_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// Whether partitioning writes an op as others, whose intermediate values take memory: attentions.
bool hasWorkingSet(mlir::Operation *op);

/// The bytes that such an op takes beside its operands and results, on a device that has these
/// types of them: by operand, then by result.
double workingBytes(mlir::Operation *op, mlir::TypeRange localTypes);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_WORKINGSET_H
