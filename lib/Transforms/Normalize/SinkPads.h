//===- SinkPads.h - Pads behind slices and reshapes -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKPADS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKPADS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Writes slices of pads along several dimensions as slices and pads of one dimension each, which
/// `formRearrangements` joins, and moves pads behind reshapes that leave the padded dimensions as
/// they are, so that they stand in front of the op that reads windows of them.
void sinkPads(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKPADS_H
