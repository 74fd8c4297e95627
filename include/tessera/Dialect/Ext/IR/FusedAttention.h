//===- FusedAttention.h - Attention as one op on GPUs -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_EXT_IR_FUSEDATTENTION_H
#define TESSERA_DIALECT_EXT_IR_FUSEDATTENTION_H

#include "mlir/IR/Operation.h"

namespace tessera::ext {

/// Attribute of an attention, forward or backward, of a program for a GPU: the part of a device
/// stays one op in the local view, and becomes one kernel. Partitioning removes the attribute if
/// the part cannot: the keys are sharded, or parts are uneven in a loop that is summed.
inline constexpr llvm::StringLiteral kFusedAttention = "ext.fused";
/// Marks all attentions that GPU kernels support.
void markFusedAttention(mlir::Operation *program);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_FUSEDATTENTION_H
