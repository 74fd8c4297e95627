//===- InterleaveParts.h - Concatenated batches in turn ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_INTERLEAVEPARTS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_INTERLEAVEPARTS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Where tensors are concatenated along a dimension that is cut, and a network computes each row by
/// itself, or sums over all of them, orders the rows so that those of all parts take turns
/// (PartOrder.h): a device has its rows of each part, and joins them and takes them apart itself.
///
///   concat (a, b) along rows                 concat (a, b) as columns of rows, merged
///   network                             =>   network
///   extract_slice [0] [rows of a]            split, extract_slice of the column of a
///
/// The rewrite applies if nothing, or little, must be brought to the other order.
void interleaveParts(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_INTERLEAVEPARTS_H
