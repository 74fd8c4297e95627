//===- Recognize.h - Recognition of attention -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_RECOGNIZE_H
#define TESSERA_TRANSFORMS_RECOGNIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Rewrites products and softmax as `ext.attention` if all scores take at least this many bytes.
/// Elementwise ops on tensors must be linalg ops.
void recognizeAttention(mlir::func::FuncOp function, int64_t leastScoreBytes);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_RECOGNIZE_H
