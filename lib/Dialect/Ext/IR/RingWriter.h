//===- RingWriter.h - Writing rings of blocks -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_EXT_IR_RINGWRITER_H
#define TESSERA_LIB_DIALECT_EXT_IR_RINGWRITER_H

#include "AttentionPart.h"

namespace tessera::ext {

/// Writes a part of an attention whose keys are cut like its queries, `part.ring`.
llvm::SmallVector<mlir::Value> writeRing(const Part &part, AttentionOp op);
llvm::SmallVector<mlir::Value> writeRing(const Part &part, AttentionBackwardOp op);

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_RINGWRITER_H
