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

/// Rewrites slices of pads along several dimensions as slices and pads of one dimension each, which
/// `formRearrangements` joins. Moves pads behind reshapes that do not change the padded dimensions,
/// so that a pad is directly before the op that reads windows of these dimensions.
void sinkPads(mlir::func::FuncOp function);
/// Moves rearrangements behind reshapes that do not touch the rearranged dimension.
void sinkRearrangements(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SINKPADS_H
