//===- FusedAttention.h - Attention that stays whole ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_EXT_IR_FUSEDATTENTION_H
#define TESSERA_DIALECT_EXT_IR_FUSEDATTENTION_H

#include "mlir/IR/Operation.h"

namespace tessera::ext {

/// On an attention, forward or backward, of a program for a GPU: a device's part of it stays one op
/// in the local view, and becomes a kernel of its own. Partitioning removes it where the part
/// cannot: keys are cut, or the region reads an index of a loop that is cut.
inline constexpr llvm::StringLiteral kFusedAttention = "ext.fused";
/// Marks all that a GPU has kernels for.
void markFusedAttention(mlir::Operation *program);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_FUSEDATTENTION_H
