//===- WorkingSet.h - Memory of an op while it runs -------------*- C++ -*-===//
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

/// Whether partitioning expands an op (attention) into others with intermediate values in memory.
bool hasWorkingSet(mlir::Operation *op);

/// The working set of such an op, in bytes per device, beside its operands and results.
/// `localTypes`: their types on the device, operands first, then results.
double workingBytes(mlir::Operation *op, mlir::TypeRange localTypes);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_WORKINGSET_H
