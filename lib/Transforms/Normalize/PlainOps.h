//===- PlainOps.h - Ops that rewrites may replace ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_PLAINOPS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_PLAINOPS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {

/// Whether an op has no attributes by which the user refers to it.
inline bool isPlain(mlir::Operation *op) {
  return op->getDiscardableAttrDictionary().empty();
}

/// Whether a slice is plain, keeps the rank, and has constant offsets, sizes and positive strides.
inline bool isPlainSlice(mlir::tensor::ExtractSliceOp slice) {
  return !slice.getDroppedDims().any() && slice.getOffsets().empty() && slice.getSizes().empty() &&
         slice.getStrides().empty() && isPlain(slice) &&
         llvm::all_of(slice.getStaticStrides(), [](int64_t stride) { return stride >= 1; });
}

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PLAINOPS_H
