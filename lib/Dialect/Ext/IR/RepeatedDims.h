//===- RepeatedDims.h - Dimensions along which a tensor is one element ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_EXT_IR_REPEATEDDIMS_H
#define TESSERA_LIB_DIALECT_EXT_IR_REPEATEDDIMS_H

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "llvm/ADT/SmallBitVector.h"

namespace tessera::ext {

/// For each input of a scan, the dimensions of extent above 1 along which all elements of the input
/// are equal, and those of the result, too. An input that was broadcast to the shape of the others
/// has such dimensions: factors of a row of states that decay alike. The global view is read.
llvm::SmallVector<llvm::SmallBitVector> repeatedDims(ScanOp op);

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_REPEATEDDIMS_H
