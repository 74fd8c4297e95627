//===- SplitMergedDims.h - Undo merges of dimensions ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITMERGEDDIMS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITMERGEDDIMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// If a `tensor.collapse_shape` merges dimensions and ops only iterate over the merged one until it
/// is split or summed, lets the ops iterate over the original dimensions. Each of these may then be
/// cut; of the merged one only the outer part can.
///
///   collapse (b, h, s, d) -> (bh, s, d)                contract over b, h
///   contract over bh                             =>
///   expand (bh, s, t) -> (b, h, s, t)
///
/// A merge is kept if splitting it adds as many reshapes elsewhere as it removes.
void splitMergedDims(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITMERGEDDIMS_H
