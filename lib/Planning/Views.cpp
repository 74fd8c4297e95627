//===- Views.cpp - Values that share others' bytes ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Views.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Fusion/FuseGraph.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;

bool dist::isReshape(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

FailureOr<int64_t> dist::viewOffset(Operation *op) {
  if (isReshape(op))
    return 0;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice || llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(slice.getStaticSizes(), ShapedType::isDynamic))
    return failure();
  // Contiguous: after the first dimension with more than one index, the slice covers every
  // dimension.
  ArrayRef<int64_t> shape = slice.getSourceType().getShape();
  int64_t offset = 0;
  bool many = false;
  for (auto [extent, first, size, stride] : llvm::zip_equal(
           shape, slice.getStaticOffsets(), slice.getStaticSizes(), slice.getStaticStrides())) {
    if ((many && size != extent) || (size > 1 && stride != 1))
      return failure();
    many |= size > 1;
    offset = offset * extent + first;
  }
  // Kernels take aligned buffers.
  if (offset * bytesPerElement(slice.getType().getElementType()) % kArenaAlignment != 0)
    return failure();
  return offset;
}
