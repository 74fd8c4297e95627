//===- Elementwise.h - Elementwise ops as linalg.generic --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_ELEMENTWISE_H
#define TESSERA_TRANSFORMS_ELEMENTWISE_H

#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// Whether an op computes tensors element by element, as arith and math on tensors do.
bool isElementwiseOnTensors(mlir::Operation *op);

/// Replaces an elementwise op on tensors by a linalg.generic, operand by operand under the identity
/// map; scalars enter under the empty map.
void elementwiseToGeneric(mlir::Operation *op);

/// Replaces `dist.checkpoint` by its ops, and `dist.stop_gradient` by its operand: only derivatives
/// use them.
void dropDerivativeMarks(mlir::Operation *function);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_ELEMENTWISE_H
