//===- Reverse.cpp - The reverse sweep over cotangents --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reverse.h"
#include "AttentionReverse.h"
#include "LoopNest.h"
#include "ScalarRules.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

LogicalResult dist::noDerivative(Operation *op, const Twine &why) {
  return op->emitError() << "'" << op->getName() << "' has no derivative: " << why;
}

//===----------------------------------------------------------------------===//
// Cotangents
//===----------------------------------------------------------------------===//

void Reverse::add(Value value, Value cotangent) {
  if (!cotangent || !isActive(value))
    return;
  Value &whole = cotangents[value].whole;
  // An unannotated argument may be used on several meshes, so its cotangents may be on several.
  if (whole && isa<BlockArgument>(value))
    cotangent = onMeshOf(b, cotangent, whole);
  whole =
      whole ? arith::AddFOp::create(b, value.getLoc(), whole, cotangent).getResult() : cotangent;
}

void Reverse::set(Value value, Value cotangent) {
  cotangents[value] = {cotangent, {}, {}};
}

Reverse::~Reverse() {
  for (Operation *op : retired)
    op->destroy();
}

void Reverse::retire(Operation *op) {
  op->remove();
  retired.push_back(op);
}

void Reverse::addSlice(tensor::ExtractSliceOp slice, Value cotangent) {
  if (!isActive(slice.getSource()))
    return;
  Cotangent &entry = cotangents[slice.getSource()];
  if (ShapedType::isDynamicShape(slice.getStaticOffsets())) {
    // In a loop: one slice of the carry changes, the rest stays in place.
    Location loc = slice.getLoc();
    auto offsets = slice.getMixedOffsets(), sizes = slice.getMixedSizes(),
         strides = slice.getMixedStrides();
    if (entry.whole && !writtenOnce.contains(slice.getSource())) {
      Value old = tensor::ExtractSliceOp::create(b, loc, slice.getType(), entry.whole, offsets,
                                                 sizes, strides);
      cotangent = arith::AddFOp::create(b, loc, old, cotangent);
    }
    if (!entry.whole)
      entry.whole = zeros(b, loc, slice.getSourceType());
    entry.whole =
        tensor::InsertSliceOp::create(b, loc, cotangent, entry.whole, offsets, sizes, strides);
    return;
  }
  entry.slices.push_back(slice);
  entry.parts.push_back(cotangent);
}

Value Reverse::take(Value value) {
  auto it = cotangents.find(value);
  if (it == cotangents.end())
    return {};
  Cotangent entry = std::move(it->second);
  cotangents.erase(it);
  if (entry.slices.empty())
    return entry.whole;
  Value joined = joinSlices(value, entry.slices, entry.parts);
  return entry.whole ? arith::AddFOp::create(b, value.getLoc(), entry.whole, joined).getResult()
                     : joined;
}

Value Reverse::takeOrZeros(Value value) {
  Value cotangent = take(value);
  return cotangent ? cotangent : zeros(b, value.getLoc(), value.getType());
}

/// The part of a slice, with the dropped dimensions.
static Value withDroppedDims(OpBuilder &b, tensor::ExtractSliceOp slice, Value part) {
  auto type = RankedTensorType::get(slice.getStaticSizes(), slice.getType().getElementType());
  if (part.getType() == type)
    return part;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  SmallVector<ReassociationIndices> groups;
  bool first = true;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    if (groups.empty() || (!dropped.test(d) && !first))
      groups.emplace_back();
    first &= dropped.test(d);
    groups.back().push_back(d);
  }
  if (slice.getType().getRank() == 0)
    groups.clear();
  return tensor::ExpandShapeOp::create(b, slice.getLoc(), type, part, groups);
}

/// The dimension along which the slices tile the whole tensor, in the order found; else -1.
static int64_t tiledDim(RankedTensorType type, SmallVectorImpl<unsigned> &order,
                        ArrayRef<tensor::ExtractSliceOp> slices) {
  int64_t along = -1;
  for (tensor::ExtractSliceOp slice : slices)
    for (int64_t d = 0; d < type.getRank(); ++d) {
      if (slice.getStaticStrides()[d] != 1)
        return -1;
      if (slice.getStaticSizes()[d] == type.getDimSize(d))
        continue;
      if (along >= 0 && along != d)
        return -1;
      along = d;
    }
  if (along < 0)
    return -1;
  SmallVector<std::pair<int64_t, unsigned>> begins; // with the position in the list
  for (auto [i, slice] : llvm::enumerate(slices)) {
    tensor::ExtractSliceOp op = slice;
    begins.push_back({op.getStaticOffsets()[along], static_cast<unsigned>(i)});
  }
  llvm::sort(begins);
  int64_t next = 0;
  for (auto [begin, i] : begins) {
    if (begin != next)
      return -1;
    tensor::ExtractSliceOp op = slices[i];
    next += op.getStaticSizes()[along];
    order.push_back(i);
  }
  return next == type.getDimSize(along) ? along : -1;
}

/// A tensor of zeros except for one slice.
static Value embed(OpBuilder &b, tensor::ExtractSliceOp slice, Value part) {
  Location loc = slice.getLoc();
  RankedTensorType type = slice.getSourceType();
  bool padded = true;
  SmallVector<OpFoldResult> low, high;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int64_t offset = slice.getStaticOffsets()[d], size = slice.getStaticSizes()[d];
    padded &= !ShapedType::isDynamic(offset) && slice.getStaticStrides()[d] == 1;
    if (!padded)
      break;
    low.push_back(b.getIndexAttr(offset));
    high.push_back(b.getIndexAttr(type.getDimSize(d) - offset - size));
  }
  if (!padded)
    return tensor::InsertSliceOp::create(b, loc, part, zeros(b, loc, type), slice.getMixedOffsets(),
                                         slice.getMixedSizes(), slice.getMixedStrides());
  Value whole = withDroppedDims(b, slice, part);
  if (whole.getType() == type)
    return whole;
  return tensor::PadOp::create(b, loc, type, whole, low, high,
                               zeros(b, loc, type.getElementType()));
}

Value Reverse::joinSlices(Value value, ArrayRef<tensor::ExtractSliceOp> slices,
                          ArrayRef<Value> parts) {
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<unsigned> order;
  if (int64_t along = tiledDim(type, order, slices); along >= 0) {
    SmallVector<Value> pieces;
    for (unsigned i : order)
      pieces.push_back(withDroppedDims(b, slices[i], parts[i]));
    return pieces.size() == 1 ? pieces[0]
                              : tensor::ConcatOp::create(b, loc, along, pieces).getResult();
  }
  Value sum;
  for (auto [slice, part] : llvm::zip_equal(slices, parts)) {
    Value term = embed(b, slice, part);
    sum = sum ? arith::AddFOp::create(b, loc, sum, term).getResult() : term;
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// The sweep
//===----------------------------------------------------------------------===//

LogicalResult Reverse::sweep(Block &block) {
  // The sweep may emit into this block.
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  return sweep(ops);
}

LogicalResult Reverse::sweep(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops))
    if (failed(reverseOp(op)))
      return failure();
  return success();
}

LogicalResult Reverse::reverseOp(Operation *op) {
  SmallVector<Value> incoming;
  for (Value result : op->getResults())
    incoming.push_back(take(result));
  bool arrives = llvm::any_of(incoming, [](Value value) { return value != nullptr; });
  if (!arrives || llvm::none_of(valuesRead(op), [&](Value value) { return isActive(value); }))
    if (!arrives || !isa<scf::ForOp, scf::IfOp, CheckpointOp>(op))
      return success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](linalg::SoftmaxOp op) { return reverseSoftmax(*this, op, incoming[0]); })
      .Case([&](linalg::LinalgOp op) { return reverseLinalg(*this, op, incoming); })
      .Case([&](ext::AttentionOp op) { return reverseAttention(*this, op, incoming); })
      .Case([&](scf::ForOp op) { return reverseLoop(*this, op, incoming); })
      .Case([&](scf::IfOp op) { return reverseBranch(*this, op, incoming); })
      .Case([&](scf::WhileOp op) {
        return noDerivative(op, "its trip count is unknown; write scf.for");
      })
      .Case([&](ext::ScanOp op) { return reverseScan(*this, op, incoming); })
      .Case([&](ext::SortOp op) { return reverseSort(*this, op, incoming); })
      .Case([&](func::CallOp op) { return reverseDist(*this, op, incoming); })
      .Default([&](Operation *op) -> LogicalResult {
        if (isa<tensor::TensorDialect>(op->getDialect()))
          return reverseTensor(*this, op, incoming[0]);
        if (isa<DistDialect>(op->getDialect()))
          return reverseDist(*this, op, incoming);
        ScalarReverse rule{op, incoming, [](Value value) { return value; },
                           [&](unsigned i) { return isActive(op->getOperand(i)); },
                           [&](unsigned i, Value value) { add(op->getOperand(i), value); }};
        if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>) &&
            succeeded(reverseScalar(b, rule)))
          return success();
        return noDerivative(op, "it has no rule; write it with other ops, or stop the gradient "
                                "with dist.stop_gradient");
      });
}
