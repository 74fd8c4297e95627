//===- PartitionTensor.cpp - Tensor ops on local shapes --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

/// Pads the dimensions that are not cut; those that are cut got their padding with their window.
Value Partitioner::padWholeDims(Part &part, tensor::PadOp op, Value local,
                                const TensorSharding &result) {
  SmallVector<OpFoldResult> low, high;
  bool any = false;
  for (int64_t d = 0; d < result.rank(); ++d) {
    bool cut = !result.dims[d].empty();
    low.push_back(part.builder.getIndexAttr(cut ? 0 : op.getStaticLow()[d]));
    high.push_back(part.builder.getIndexAttr(cut ? 0 : op.getStaticHigh()[d]));
    any = any || (!cut && (op.getStaticLow()[d] || op.getStaticHigh()[d]));
  }
  if (!any)
    return local;
  SmallVector<int64_t> shape(cast<RankedTensorType>(local.getType()).getShape());
  for (int64_t d = 0; d < result.rank(); ++d)
    if (result.dims[d].empty())
      shape[d] += op.getStaticLow()[d] + op.getStaticHigh()[d];
  Attribute constant;
  matchPattern(op.getConstantPaddingValue(), m_Constant(&constant));
  Value value =
      constant ? arith::ConstantOp::create(part.builder, op.getLoc(), cast<TypedAttr>(constant))
                     .getResult()
               : part.mapping.lookup(op.getConstantPaddingValue());
  auto type = RankedTensorType::get(shape, op.getResultType().getElementType());
  auto pad = tensor::PadOp::create(part.builder, op.getLoc(), type, local, low, high, value);
  // A dimension that is whole has no sharding to say; what is cut is a window of the padded tensor.
  return pad;
}

LogicalResult Partitioner::lowerPad(tensor::PadOp op, Part &part) {
  const ShardedOp &own = shardings.of(op);
  TensorSharding result = sharding::resultSharding(own.rule, 0, own.sharding.factors);
  Value local = part.mapping.lookup(op.getSource());
  // With what contributions the pad passes on: reduced here, they would be counted again behind it.
  TensorSharding wanted = resolveVerified(own.operands[0], meshes, op.getSource().getType());
  if (!wanted.windows.empty()) {
    // The operand is a window already, but what lies outside the tensor must be the pad value: move
    // it again with that, the first move goes unused.
    Value source = op.getSource();
    if (auto reshard = source.getDefiningOp<ReshardOp>())
      source = reshard.getOperand();
    Attribute fill;
    matchPattern(op.getConstantPaddingValue(), m_Constant(&fill));
    if (!fill)
      return op.emitError()
             << "pads a cut dimension with a value that is not constant; use a constant";
    if (getSharding(source).getMesh() != own.mesh)
      source = op.getSource();
    local = move(part, op.getLoc(), part.mapping.lookup(source),
                 cast<RankedTensorType>(source.getType()), own.mesh, shardingOf(source),
                 wanted, StringAttr::get(op.getContext(), "tensor.pad is cut so"), fill);
  }
  Value padded = padWholeDims(part, op, local, result);
  part.mapping.map(op.getResult(), padded);
  if (padded != local)
    annotate(padded, getSharding(op.getResult()), op.getResultType());
  return success();
}

namespace {

/// Where a slice of the whole tensor lies in a device's part of it. What is cut is taken as far as
/// the part goes; what is whole is taken as written, known when the program runs or not.
struct LocalSlice {
  template <typename Op>
  LocalSlice(Part &part, Op op, const TensorSharding &lies, ArrayRef<int64_t> local) {
    auto here = [&](OpFoldResult value) -> OpFoldResult {
      if (auto dynamic = dyn_cast<Value>(value))
        return part.mapping.lookup(dynamic);
      return value;
    };
    llvm::SmallBitVector dropped = op.getDroppedDims();
    size_t next = 0; ///< of the dimensions of the slice itself
    for (int64_t d = 0; d < lies.rank(); ++d) {
      bool cut = !lies.dims[d].empty();
      int64_t extent = dropped.test(d) ? 1 : local[next++];
      offsets.push_back(cut ? part.builder.getIndexAttr(0) : here(op.getMixedOffsets()[d]));
      sizes.push_back(cut ? part.builder.getIndexAttr(extent) : here(op.getMixedSizes()[d]));
      strides.push_back(here(op.getMixedStrides()[d]));
    }
  }

  SmallVector<OpFoldResult> offsets, sizes, strides;
};

} // namespace

LogicalResult Partitioner::lowerTensor(Operation *op, Part &part) {
  OpBuilder &b = part.builder;
  Location loc = op->getLoc();
  auto operand = [&](unsigned index) { return part.mapping.lookup(op->getOperand(index)); };
  auto localResult = [&]() { return localTypeOf(op->getResult(0)); };
  Value result;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = cast<ElementsAttr>(constant.getValue());
    if (auto splat = dyn_cast<SplatElementsAttr>(value))
      value = splat.resizeSplat(localResult());
    result = arith::ConstantOp::create(b, loc, cast<TypedAttr>(value));
  } else if (isa<tensor::EmptyOp>(op)) {
    result =
        tensor::EmptyOp::create(b, loc, localResult().getShape(), localResult().getElementType());
  } else if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    result = tensor::SplatOp::create(b, loc, part.mapping.lookup(splat.getInput()), localResult());
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    result = tensor::ExpandShapeOp::create(b, loc, localResult(), operand(0),
                                           expand.getReassociationIndices());
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    result = tensor::CollapseShapeOp::create(b, loc, localResult(), operand(0),
                                             collapse.getReassociationIndices());
  } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    SmallVector<Value> inputs;
    for (Value input : concat.getInputs())
      inputs.push_back(part.mapping.lookup(input));
    result = tensor::ConcatOp::create(b, loc, localResult(), concat.getDim(), inputs);
  } else if (auto pad = dyn_cast<tensor::PadOp>(op);
             pad && !shardingOf(op->getResult(0)).usedAxes().empty()) {
    return lowerPad(pad, part);
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    const ShardedOp &own = shardings.of(op);
    TensorSharding lies = sharding::operandSharding(own.rule, 0, own.sharding.factors);
    LocalSlice at(part, slice, lies, localResult().getShape());
    result = tensor::ExtractSliceOp::create(b, loc, localResult(), operand(0), at.offsets, at.sizes,
                                            at.strides);
  } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    LocalSlice at(part, insert, shardingOf(insert.getResult()),
                  cast<RankedTensorType>(operand(0).getType()).getShape());
    result = tensor::InsertSliceOp::create(b, loc, operand(0), operand(1), at.offsets, at.sizes,
                                           at.strides);
  } else if (isa<tensor::GatherOp>(op)) {
    // Indices beyond the edge are undefined: they name something, which lies beyond the edge too.
    Operation *local = cloneInto(part, op, part.mapping);
    local->getResult(0).setType(localResult());
    result = local->getResult(0);
  } else {
    // What is held whole keeps its form; only types of parts that may be cut change.
    Operation *local = cloneInto(part, op, part.mapping);
    for (auto [copy, original] : llvm::zip(local->getResults(), op->getResults())) {
      if (isa<RankedTensorType>(original.getType()))
        copy.setType(localTypeOf(original));
      define(part, original, copy);
    }
    return success();
  }
  define(part, op->getResult(0), result);
  return success();
}
