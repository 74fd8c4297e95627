//===- Recognize.h - Spelled-out operations ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_RECOGNIZE_H
#define TESSERA_TRANSFORMS_RECOGNIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Writes products and softmax as `ext.attention` where all scores take at least so many bytes.
/// Elementwise ops on tensors must be linalg ops.
void recognizeAttention(mlir::func::FuncOp function, int64_t leastScoreBytes);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_RECOGNIZE_H
