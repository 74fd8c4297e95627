//===- CutsBehind.h - Cuts of what a value is read from ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_CUTSBEHIND_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_CUTSBEHIND_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// The axes that cut each dimension of a value, or of what it is read from.
struct Cuts {
  mlir::FlatSymbolRefAttr mesh;
  llvm::SmallVector<sharding::AxisList> dims;
};

/// The cuts of the annotated value that another one has the elements of, in another order or shape:
/// computed element by element, reshaped, sliced along other dimensions or looked up. Nothing
/// without an annotation.
std::optional<Cuts> cutsBehind(mlir::Value value, const MeshTable &meshes);

/// The table of a look-up; null for other ops.
mlir::OpOperand *tableOf(mlir::linalg::LinalgOp op);
/// Whether an op has one result, and reads and writes elements at its loops.
bool hasPlainMaps(mlir::linalg::LinalgOp op);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_CUTSBEHIND_H
