//===- ClampIndices.cpp - Clamp indices into their tensors ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::codegen {

static void clampElement(Operation *op, MutableOperandRange indices, RankedTensorType type) {
  OpBuilder b(op);
  for (auto [index, extent] : llvm::zip_equal(indices, type.getShape()))
    index.set(dist::clampIndex(b, op->getLoc(), index.get(), extent));
}

/// For a slice with a dynamic stride: the offset is a valid index, and the stride leads from there
/// to another one.
static Value clampStride(OpBuilder &b, Location loc, Value offset, Value stride, int64_t extent,
                         int64_t size) {
  if (size <= 1)
    return stride;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value steps = constant(size - 1);
  Value behind = arith::SubIOp::create(b, loc, constant(extent - 1), offset);
  Value most = arith::DivSIOp::create(b, loc, behind, steps);
  Value least =
      arith::SubIOp::create(b, loc, constant(0), arith::DivSIOp::create(b, loc, offset, steps));
  return arith::MinSIOp::create(b, loc, arith::MaxSIOp::create(b, loc, stride, least), most);
}

static void clampSlice(OffsetSizeAndStrideOpInterface slice, MutableOperandRange offsets,
                       MutableOperandRange strides, RankedTensorType whole) {
  OpBuilder b(slice);
  Location loc = slice.getLoc();
  unsigned nextOffset = 0, nextStride = 0;
  for (int64_t d = 0; d < whole.getRank(); ++d) {
    OpOperand *offset = slice.isDynamicOffset(d) ? &offsets[nextOffset++] : nullptr;
    OpOperand *stride = slice.isDynamicStride(d) ? &strides[nextStride++] : nullptr;
    if (slice.isDynamicSize(d))
      continue; // the guard rejects it
    int64_t extent = whole.getDimSize(d), size = slice.getStaticSize(d);
    if (offset)
      offset->set(dist::clampIndex(
          b, loc, offset->get(),
          dist::offsetBounds(extent, stride ? 1 : size, stride ? 1 : slice.getStaticStride(d))));
    if (stride) {
      Value begin =
          offset ? offset->get() : arith::ConstantIndexOp::create(b, loc, slice.getStaticOffset(d));
      stride->set(clampStride(b, loc, begin, stride->get(), extent, size));
    }
  }
}

void clampIndices(func::FuncOp kernel) {
  kernel.walk([](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([](tensor::ExtractOp op) {
          clampElement(op, op.getIndicesMutable(),
                       cast<RankedTensorType>(op.getTensor().getType()));
        })
        .Case([](tensor::InsertOp op) {
          clampElement(op, op.getIndicesMutable(), cast<RankedTensorType>(op.getType()));
        })
        .Case([](tensor::ExtractSliceOp op) {
          clampSlice(op, op.getOffsetsMutable(), op.getStridesMutable(), op.getSourceType());
        })
        .Case([](tensor::InsertSliceOp op) {
          clampSlice(op, op.getOffsetsMutable(), op.getStridesMutable(), op.getDestType());
        });
  });
}

} // namespace tessera::codegen
