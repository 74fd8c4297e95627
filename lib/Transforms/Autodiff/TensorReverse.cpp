//===- TensorReverse.cpp - The reverse of the tensor dialect --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "Reverse.h"
#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// The sum of all elements of a tensor, as a scalar.
static Value sumOf(OpBuilder &b, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  LoopNest nest(b, loc, type.getShape());
  Value element = nest.addInput(tensor, nest.identityMap());
  return nest.emit(element, AffineMap::get(type.getRank(), 0, b.getContext()),
                   type.getElementType());
}

/// The element at a row-major position.
static Value extractAt(OpBuilder &b, Location loc, Value tensor, ArrayRef<int64_t> shape,
                       int64_t position) {
  SmallVector<Value> indices;
  for (int64_t extent : llvm::reverse(shape)) {
    indices.push_back(arith::ConstantIndexOp::create(b, loc, position % extent));
    position /= extent;
  }
  std::reverse(indices.begin(), indices.end());
  return tensor::ExtractOp::create(b, loc, tensor, indices);
}

/// A scalar of the nest over a tensor's elements: whether the element is at `indices`.
static Value standsAt(LoopNest &nest, ValueRange indices) {
  OpBuilder body = nest.bodyEnd();
  Value all;
  for (auto [d, index] : llvm::enumerate(indices)) {
    Value same =
        arith::CmpIOp::create(body, nest.loc, arith::CmpIPredicate::eq, nest.index(d), index);
    all = all ? arith::AndIOp::create(body, nest.loc, all, same).getResult() : same;
  }
  return all;
}

/// A tensor of zeros except for a scalar at `indices`.
static Value placeScalar(OpBuilder &b, Location loc, RankedTensorType type, Value scalar,
                         ValueRange indices) {
  if (indices.empty())
    return tensor::FromElementsOp::create(b, loc, type, scalar);
  SmallVector<Value> places;
  for (auto [index, extent] : llvm::zip_equal(indices, type.getShape()))
    places.push_back(clampIndex(b, loc, index, extent));
  LoopNest nest(b, loc, type.getShape());
  Value value = nest.addInput(scalar, AffineMap::get(type.getRank(), 0, b.getContext()));
  Value here = standsAt(nest, places);
  OpBuilder body = nest.bodyEnd();
  Value chosen =
      arith::SelectOp::create(body, loc, here, value, zeros(body, loc, type.getElementType()));
  return nest.emit(chosen, nest.identityMap(), type);
}

static void reverseInsert(Reverse &reverse, tensor::InsertOp op, Value cotangent) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  if (reverse.isActive(op.getScalar()))
    reverse.add(op.getScalar(), tensor::ExtractOp::create(b, loc, cotangent, op.getIndices()));
  if (!reverse.isActive(op.getDest()))
    return;
  Value zero = zeros(b, loc, op.getScalar().getType());
  reverse.add(op.getDest(), tensor::InsertOp::create(b, loc, zero, cotangent, op.getIndices()));
}

static void reverseInsertSlice(Reverse &reverse, tensor::InsertSliceOp op, Value cotangent) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  if (reverse.isActive(op.getSource()))
    reverse.add(op.getSource(), tensor::ExtractSliceOp::create(
                                    b, loc, op.getSourceType(), cotangent, op.getMixedOffsets(),
                                    op.getMixedSizes(), op.getMixedStrides()));
  if (reverse.isActive(op.getDest()))
    reverse.add(op.getDest(), tensor::InsertSliceOp::create(
                                  b, loc, zeros(b, loc, op.getSourceType()), cotangent,
                                  op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides()));
}

static void reverseConcat(Reverse &reverse, tensor::ConcatOp op, Value cotangent) {
  OpBuilder &b = reverse.b;
  int64_t rank = op.getRank(), along = static_cast<int64_t>(op.getDim()), begin = 0;
  for (Value input : op.getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)), sizes;
    SmallVector<OpFoldResult> strides(rank, b.getIndexAttr(1));
    for (int64_t extent : type.getShape())
      sizes.push_back(b.getIndexAttr(extent));
    offsets[along] = b.getIndexAttr(begin);
    begin += type.getDimSize(along);
    if (reverse.isActive(input))
      reverse.add(input, tensor::ExtractSliceOp::create(b, op.getLoc(), type, cotangent, offsets,
                                                        sizes, strides));
  }
}

static LogicalResult reversePad(Reverse &reverse, tensor::PadOp op, Value cotangent) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  Value fill = op.getConstantPaddingValue();
  if (!fill)
    return noDerivative(op, "its padding value depends on the index");
  RankedTensorType type = op.getSourceType();
  SmallVector<OpFoldResult> sizes, strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t extent : type.getShape())
    sizes.push_back(b.getIndexAttr(extent));
  Value inside =
      tensor::ExtractSliceOp::create(b, loc, type, cotangent, op.getMixedLowPad(), sizes, strides);
  if (reverse.isActive(op.getSource()))
    reverse.add(op.getSource(), inside);
  if (reverse.isActive(fill))
    reverse.add(fill,
                arith::SubFOp::create(b, loc, sumOf(b, loc, cotangent), sumOf(b, loc, inside)));
  return success();
}

/// dSource[v, …] = sum over the tuples t with indices[t] = v of dy[t, …]: a contraction with a
/// one-hot matrix that is never materialized.
static LogicalResult reverseGather(Reverse &reverse, tensor::GatherOp op, Value cotangent) {
  RankedTensorType source = op.getSourceType(), indices = op.getIndicesType();
  int64_t batch = indices.getRank() - 1, rank = source.getRank();
  bool reduced = op.getType().getRank() < batch + rank;
  SmallVector<int64_t> extents(indices.getShape().drop_back());
  extents.append(source.getShape().begin(), source.getShape().end());
  LoopNest nest(reverse.b, op.getLoc(), extents);
  OpBuilder &b = reverse.b;
  SmallVector<AffineExpr> read, tuple, target;
  for (int64_t d = 0; d < batch; ++d) {
    read.push_back(b.getAffineDimExpr(d));
    tuple.push_back(b.getAffineDimExpr(d));
  }
  for (int64_t d = 0; d < rank; ++d) {
    target.push_back(b.getAffineDimExpr(batch + d));
    if (!llvm::is_contained(op.getGatherDims(), d))
      read.push_back(target.back());
    else if (!reduced)
      read.push_back(b.getAffineConstantExpr(0));
  }
  auto mapOf = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(extents.size(), 0, exprs, b.getContext());
  };
  Value element = nest.addInput(cotangent, mapOf(read));
  OpBuilder body = nest.bodyEnd();
  Value meets;
  for (auto [i, d] : llvm::enumerate(op.getGatherDims())) {
    // One coordinate of the tuples, as a separate tensor.
    SmallVector<AffineExpr> exprs(tuple);
    exprs.push_back(b.getAffineConstantExpr(static_cast<int64_t>(i)));
    Value coordinate = nest.addInput(op.getIndices(), mapOf(exprs));
    if (!coordinate.getType().isIndex())
      coordinate = arith::IndexCastOp::create(body, nest.loc, b.getIndexType(), coordinate);
    coordinate = clampIndex(body, nest.loc, coordinate, source.getDimSize(d));
    Value same = arith::CmpIOp::create(body, nest.loc, arith::CmpIPredicate::eq, coordinate,
                                       nest.index(batch + d));
    meets = meets ? arith::AndIOp::create(body, nest.loc, meets, same).getResult() : same;
  }
  if (meets)
    element = arith::SelectOp::create(body, nest.loc, meets, element,
                                      zeros(body, nest.loc, source.getElementType()));
  reverse.add(op.getSource(), nest.emit(element, mapOf(target), source));
  return success();
}

/// The indices are distinct (`unique`), so the previous elements are overwritten.
static void reverseScatter(Reverse &reverse, tensor::ScatterOp op, Value cotangent) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  if (reverse.isActive(op.getSource()))
    reverse.add(op.getSource(), tensor::GatherOp::create(
                                    b, loc, op.getSourceType(), cotangent, op.getIndices(),
                                    b.getDenseI64ArrayAttr(op.getScatterDims()), b.getUnitAttr()));
  if (reverse.isActive(op.getDest()))
    reverse.add(op.getDest(),
                tensor::ScatterOp::create(
                    b, loc, op.getDestType(), zeros(b, loc, op.getSourceType()), cotangent,
                    op.getIndices(), b.getDenseI64ArrayAttr(op.getScatterDims()), b.getUnitAttr()));
}

LogicalResult dist::reverseTensor(Reverse &reverse, Operation *op, Value cotangent) {
  OpBuilder &b = reverse.b;
  Location loc = op->getLoc();
  for (Type type : op->getOperandTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !tensor.hasStaticShape())
      return noDerivative(op, "shapes must be static");
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tensor::ExpandShapeOp op) {
        reverse.add(op.getSrc(), tensor::CollapseShapeOp::create(b, loc, op.getSrcType(), cotangent,
                                                                 op.getReassociationIndices()));
        return success();
      })
      .Case([&](tensor::CollapseShapeOp op) {
        reverse.add(op.getSrc(), tensor::ExpandShapeOp::create(b, loc, op.getSrcType(), cotangent,
                                                               op.getReassociationIndices()));
        return success();
      })
      .Case([&](tensor::CastOp op) {
        reverse.add(op.getSource(),
                    tensor::CastOp::create(b, loc, op.getSource().getType(), cotangent));
        return success();
      })
      .Case([&](tensor::ConcatOp op) { return reverseConcat(reverse, op, cotangent), success(); })
      .Case([&](tensor::PadOp op) { return reversePad(reverse, op, cotangent); })
      .Case([&](tensor::ExtractSliceOp op) { return reverse.addSlice(op, cotangent), success(); })
      .Case([&](tensor::InsertSliceOp op) {
        return reverseInsertSlice(reverse, op, cotangent), success();
      })
      .Case([&](tensor::SplatOp op) {
        reverse.add(op.getInput(), sumOf(b, loc, cotangent));
        return success();
      })
      .Case([&](tensor::FromElementsOp op) {
        auto type = cast<RankedTensorType>(op.getType());
        for (auto [i, element] : llvm::enumerate(op.getElements()))
          if (reverse.isActive(element))
            reverse.add(element, extractAt(b, loc, cotangent, type.getShape(), i));
        return success();
      })
      .Case([&](tensor::ExtractOp op) {
        reverse.add(op.getTensor(),
                    placeScalar(b, loc, cast<RankedTensorType>(op.getTensor().getType()), cotangent,
                                op.getIndices()));
        return success();
      })
      .Case([&](tensor::InsertOp op) { return reverseInsert(reverse, op, cotangent), success(); })
      .Case([&](tensor::GatherOp op) { return reverseGather(reverse, op, cotangent); })
      .Case([&](tensor::ScatterOp op) { return reverseScatter(reverse, op, cotangent), success(); })
      .Default([](Operation *op) {
        return noDerivative(op, "write it as linalg.generic, or stop the gradient with "
                                "dist.stop_gradient");
      });
}
