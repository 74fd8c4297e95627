//===- UniformControl.h - Uniform control flow (rule C5) --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_DIST_IR_UNIFORMCONTROL_H
#define TESSERA_LIB_DIALECT_DIST_IR_UNIFORMCONTROL_H

#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// Rule C5: all devices execute `op`, a collective or transfer that waits for others, equally
/// often. Fails with a located error if a value that may differ between devices controls a loop or
/// branch around it: one computed from a coordinate, or from a device's part of a tensor.
mlir::LogicalResult verifyUniformControl(mlir::Operation *op);

} // namespace tessera::dist

#endif // TESSERA_LIB_DIALECT_DIST_IR_UNIFORMCONTROL_H
