//===- PartBorder.cpp - Where parts are joined and taken ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartBorder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

std::optional<ReshapedDim> dist::reshapedDimOf(Operation *op, Value value, int64_t dim) {
  SmallVector<ReassociationIndices> groups;
  Value large;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    groups = expand.getReassociationIndices();
    large = expand.getResult();
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    groups = collapse.getReassociationIndices();
    large = collapse.getSrc();
  }
  for (auto [small, group] : llvm::enumerate(groups)) {
    if (value == large ? !llvm::is_contained(group, dim) : static_cast<int64_t>(small) != dim)
      continue;
    ReshapedDim found{large, static_cast<int64_t>(small), {}};
    for (int64_t d : group)
      if (typeOf(large).getDimSize(d) != 1)
        found.dims.push_back(d);
    return found;
  }
  return std::nullopt;
}

static Value exchangeDims(OpBuilder &b, Location loc, Value value, int64_t first, int64_t second) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank()));
  std::swap(permutation[first], permutation[second]);
  SmallVector<int64_t> shape(typeOf(value).getShape());
  std::swap(shape[first], shape[second]);
  Value empty = tensor::EmptyOp::create(b, loc, shape, typeOf(value).getElementType());
  return linalg::TransposeOp::create(b, loc, value, empty, permutation)->getResult(0);
}

/// Whether a rearrangement only moves whole parts.
bool PartBorder::movesParts(RearrangeOp op, int64_t dim) const {
  if (static_cast<int64_t>(op.getDim()) != dim)
    return false;
  int64_t extent = typeOf(op.getResult()).getDimSize(dim);
  if (extent % order.size() != 0)
    return false;
  for (unsigned index = 0; index < op.getInputs().size(); ++index) {
    sharding::Segment segment = op.getSegment(index);
    if (segment.fromStep != 1 || segment.toStep != 1 || !partAt(segment.to, segment.count, extent))
      return false;
    int64_t size = typeOf(op.getInputs()[index]).getDimSize(dim);
    bool isPart = segment.from == 0 && segment.count == size;
    if (!isPart && (size != extent || !sourcePart(op, index)))
      return false;
  }
  return true;
}

/// The part of an operand that a rearrangement takes, if it has all.
std::optional<size_t> PartBorder::sourcePart(RearrangeOp op, unsigned index) const {
  sharding::Segment segment = op.getSegment(index);
  int64_t size = typeOf(op.getInputs()[index]).getDimSize(op.getDim());
  if (size != typeOf(op.getResult()).getDimSize(op.getDim()))
    return std::nullopt;
  std::optional<size_t> from = partAt(segment.from, segment.count, size),
                        to = partAt(segment.to, segment.count, size);
  if (!from || !to || order.counts[*from] != order.counts[*to])
    return std::nullopt;
  return from;
}

bool PartBorder::isJoin(Operation *op, int64_t dim) const {
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return padded(pad, dim).has_value();
  auto concat = dyn_cast<tensor::ConcatOp>(op);
  if (!concat || static_cast<int64_t>(concat.getDim()) != dim ||
      concat.getInputs().size() != order.counts.size())
    return false;
  int64_t unit = typeOf(concat).getDimSize(dim) / order.total();
  return llvm::all_of(llvm::zip_equal(concat.getInputs(), order.counts), [&](auto each) {
    return typeOf(std::get<0>(each)).getDimSize(dim) == std::get<1>(each) * unit;
  });
}

bool PartBorder::isExit(Operation *op, int64_t dim) const {
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  return slice && sliced(slice, dim);
}

/// The part that a pad along a dimension contains, or a slice takes.
std::optional<size_t> PartBorder::padded(tensor::PadOp op, int64_t dim) const {
  int64_t low = op.getStaticLow()[dim], high = op.getStaticHigh()[dim];
  if (!op.getConstantPaddingValue() || !op.getLow().empty() || !op.getHigh().empty() ||
      (low == 0 && high == 0))
    return std::nullopt;
  return partAt(low, op.getSourceType().getDimSize(dim), op.getResultType().getDimSize(dim));
}
std::optional<size_t> PartBorder::sliced(tensor::ExtractSliceOp op, int64_t dim) const {
  int64_t offset = op.getStaticOffsets()[dim], size = op.getStaticSizes()[dim];
  int64_t extent = op.getSourceType().getDimSize(dim);
  if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(size) ||
      op.getStaticStrides()[dim] != 1 || size == extent || op.getDroppedDims().test(dim))
    return std::nullopt;
  return partAt(offset, size, extent);
}
std::optional<size_t> PartBorder::partAt(int64_t offset, int64_t size, int64_t extent) const {
  int64_t tail = extent / order.size();
  if (tail == 0 || extent % order.size() != 0 || offset % tail != 0 || size % tail != 0)
    return std::nullopt;
  return order.partAt(offset / tail, size / tail);
}

Value PartBorder::join(Operation *op, int64_t dim) const {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return order.join(b, loc, concat.getInputs(), dim);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    ReshapedDim reshaped = *reshapedDimOf(op, collapse.getResult(), dim);
    Value turned = exchangeDims(b, loc, splitRows(b, loc, collapse.getSrc(), reshaped),
                                reshaped.dims[0], reshaped.dims[1]);
    return tensor::CollapseShapeOp::create(b, loc, collapse.getType(), turned,
                                           withRows(collapse.getReassociationIndices(), reshaped));
  }
  if (auto rearrange = dyn_cast<RearrangeOp>(op))
    return move(b, rearrange, dim);
  auto pad = cast<tensor::PadOp>(op);
  size_t part = *padded(pad, dim);
  int64_t tail = pad.getResultType().getDimSize(dim) / order.size();
  SmallVector<int64_t> low(pad.getStaticLow()), high(pad.getStaticHigh());
  low[dim] = high[dim] = 0;
  Value source = pad.getSource(), padding = pad.getConstantPaddingValue();
  if (llvm::any_of(low, [](int64_t n) { return n != 0; }) ||
      llvm::any_of(high, [](int64_t n) { return n != 0; })) {
    SmallVector<int64_t> shape(pad.getResultType().getShape());
    shape[dim] = typeOf(source).getDimSize(dim);
    source = tensor::PadOp::create(b, loc, typeOf(source).clone(shape), source,
                                   getAsIndexOpFoldResult(b.getContext(), low),
                                   getAsIndexOpFoldResult(b.getContext(), high), padding);
  }
  return order.pad(b, loc, source, part, dim, tail, padding);
}

Value PartBorder::move(OpBuilder &b, RearrangeOp op, int64_t dim) const {
  Location loc = op.getLoc();
  RankedTensorType type = typeOf(op.getResult());
  int64_t extent = type.getDimSize(dim), tail = extent / order.size();
  SmallVector<Value> parts(order.counts.size());
  for (unsigned index = 0; index < op.getInputs().size(); ++index) {
    Value input = op.getInputs()[index];
    sharding::Segment segment = op.getSegment(index);
    std::optional<size_t> from = sourcePart(op, index);
    parts[*partAt(segment.to, segment.count, extent)] =
        from ? order.partOf(b, loc, input, *from, dim) : input;
  }
  for (auto [part, value] : llvm::enumerate(parts)) {
    if (value)
      continue;
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = order.counts[part] * order.rows * tail;
    RankedTensorType filled = type.clone(shape);
    value = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(filled, ArrayRef<Attribute>(Attribute(op.getFillAttr()))));
  }
  return order.join(b, loc, parts, dim);
}

Value PartBorder::exit(Operation *op, int64_t dim) const {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    ReshapedDim reshaped = *reshapedDimOf(op, expand.getSrc(), dim);
    // rows, parts, others: the type of the result with the first two exchanged.
    SmallVector<int64_t> shape(expand.getType().getShape());
    int64_t first = reshaped.dims[0], second = reshaped.dims[1];
    int64_t tail = shape[second] / order.rows;
    shape[first] = order.rows;
    shape[second] = order.total();
    SmallVector<ReassociationIndices> groups = expand.getReassociationIndices();
    if (tail != 1) {
      shape.insert(shape.begin() + second + 1, tail);
      groups = withRows(groups, reshaped);
    }
    Value wide = tensor::ExpandShapeOp::create(b, loc, expand.getType().clone(shape),
                                               expand.getSrc(), groups);
    Value turned = exchangeDims(b, loc, wide, first, second);
    return tail == 1
               ? turned
               : tensor::CollapseShapeOp::create(b, loc, expand.getType(), turned,
                                                 groupsOfSplit(expand.getType().getRank(), second))
                     .getResult();
  }
  auto slice = cast<tensor::ExtractSliceOp>(op);
  Value part = order.partOf(b, loc, slice.getSource(), *sliced(slice, dim), dim);
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets();
  offsets[dim] = b.getIndexAttr(0);
  if (part.getType() == slice.getType())
    return part;
  return tensor::ExtractSliceOp::create(b, loc, slice.getType(), part, offsets,
                                        slice.getMixedSizes(), slice.getMixedStrides());
}

/// The groups of a reshape whose larger tensor has the rows and what is behind them apart.
SmallVector<ReassociationIndices> PartBorder::withRows(SmallVector<ReassociationIndices> groups,
                                                       const ReshapedDim &reshaped) const {
  if (reshaped.extent(1) == order.rows)
    return groups;
  for (auto [small, group] : llvm::enumerate(groups)) {
    for (int64_t &dim : group)
      dim += dim > reshaped.dims[1];
    if (static_cast<int64_t>(small) == reshaped.small)
      group.insert(llvm::find(group, reshaped.dims[1]) + 1, reshaped.dims[1] + 1);
  }
  return groups;
}

/// The larger tensor of a reshape with the rows and what is behind them apart.
Value PartBorder::splitRows(OpBuilder &b, Location loc, Value value,
                            const ReshapedDim &reshaped) const {
  int64_t dim = reshaped.dims[1], tail = reshaped.extent(1) / order.rows;
  if (tail == 1)
    return value;
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape[dim] = order.rows;
  shape.insert(shape.begin() + dim + 1, tail);
  return tensor::ExpandShapeOp::create(b, loc, typeOf(value).clone(shape), value,
                                       groupsOfSplit(typeOf(value).getRank(), dim));
}
