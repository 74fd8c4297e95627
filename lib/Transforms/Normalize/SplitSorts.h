//===- SplitSorts.h - First elements of merged dimensions -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITSORTS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITSORTS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// The first k elements of a dimension that merges several, of which an inner one is cut, such as
/// beams and a vocabulary, are the first k of the first k of each beam:
///
///   sort limit = 4 of 16 x (4 50257)   =>   sort limit = 4 of 16 x 4 x 50257, then of 16 x (4 4)
///
/// So are those of a dimension that is cut into n parts, of the n k that they have: propagation
/// sends these to all devices, or to another dimension. Values that are sorted along with the keys
/// and not read are dropped.
void splitSorts(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITSORTS_H
