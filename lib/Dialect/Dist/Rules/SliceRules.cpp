//===- SliceRules.cpp - Rules of pads and slices ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

//===----------------------------------------------------------------------===//
// Pads
//===----------------------------------------------------------------------===//

static std::optional<ShardingRule> padRule(tensor::PadOp op) {
  if (!op.getConstantPaddingValue())
    return std::nullopt;
  RuleBuilder builder(op);
  RankedTensorType type = op.getResultType();
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int64_t factor = builder.factor(type.getDimSize(d));
    builder.result(0, d, factor);
    int64_t low = op.getStaticLow()[d], high = op.getStaticHigh()[d];
    if (ShapedType::isDynamic(low) || ShapedType::isDynamic(high))
      return std::nullopt;
    if (low == 0 && high == 0)
      builder.operand(0, d, factor);
    else
      builder.window(0, d, factor, 1, -low);
  }
  return builder.take();
}

Value dist::padWholeDims(OpBuilder &b, tensor::PadOp op, Value local, const TensorSharding &result,
                         Value padding) {
  SmallVector<OpFoldResult> low, high;
  SmallVector<int64_t> shape(cast<RankedTensorType>(local.getType()).getShape());
  bool any = false;
  for (int64_t d = 0; d < result.rank(); ++d) {
    bool cut = !result.dims[d].empty();
    int64_t before = cut ? 0 : op.getStaticLow()[d], after = cut ? 0 : op.getStaticHigh()[d];
    low.push_back(b.getIndexAttr(before));
    high.push_back(b.getIndexAttr(after));
    shape[d] += before + after;
    any = any || before || after;
  }
  if (!any)
    return local;
  Attribute constant;
  if (matchPattern(op.getConstantPaddingValue(), m_Constant(&constant)))
    padding = arith::ConstantOp::create(b, op.getLoc(), cast<TypedAttr>(constant));
  auto type = RankedTensorType::get(shape, op.getResultType().getElementType());
  return tensor::PadOp::create(b, op.getLoc(), type, local, low, high, padding);
}

namespace {

struct PadModel : TensorModel<PadModel, tensor::PadOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    return padRule(cast<tensor::PadOp>(op));
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    auto pad = cast<tensor::PadOp>(op);
    key.push_back(pad.getStaticLowAttr().getAsOpaquePointer());
    key.push_back(pad.getStaticHighAttr().getAsOpaquePointer());
    key.push_back(pad.getConstantPaddingValue() ? op->getName().getAsOpaquePointer() : nullptr);
    return true;
  }
  bool passesPartial(Operation *op, sharding::ReduceKind kind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t>) const {
    Value padding = cast<tensor::PadOp>(op).getConstantPaddingValue();
    return kind == sharding::ReduceKind::sum && operands == ArrayRef<int64_t>{0} && padding &&
           (matchPattern(padding, m_AnyZeroFloat()) || matchPattern(padding, m_Zero()));
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    auto pad = cast<tensor::PadOp>(op);
    TensorSharding result = context.getResultSharding(0);
    if (result.usedAxes().empty())
      return context.cloneOp();
    Value padding = pad.getConstantPaddingValue();
    Attribute constant;
    bool isConstant = matchPattern(padding, m_Constant(&constant));
    Value local = context.getOperand(0);
    // The operand is a window already, but what lies outside the tensor must be the pad value.
    if (!context.getOperandSharding(0).windows.empty()) {
      if (!isConstant)
        return op->emitError(
            "pads a cut dimension with a value that is not constant; use a constant");
      local = context.getFilledWindow(0, constant);
    }
    return SmallVector<Value>{padWholeDims(context.builder, pad, local, result,
                                           isConstant ? Value() : context.getLocal(padding))};
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

static std::optional<ShardingRule> extractSliceRule(tensor::ExtractSliceOp op) {
  RuleBuilder builder(op);
  llvm::SmallBitVector dropped = op.getDroppedDims();
  int64_t result = 0;
  for (int64_t d = 0; d < op.getSourceType().getRank(); ++d) {
    int64_t source = op.getSourceType().getDimSize(d);
    int64_t offset = op.getStaticOffsets()[d], size = op.getStaticSizes()[d];
    int64_t stride = op.getStaticStrides()[d];
    if (ShapedType::isDynamic(size) || ShapedType::isDynamic(stride))
      return std::nullopt;
    if (dropped.test(d)) {
      builder.operand(0, d, builder.factor(source, FactorKind::replicate));
      continue;
    }
    if (ShapedType::isDynamic(offset)) {
      // Where it begins is known when it runs: the dimension is held whole.
      builder.operand(0, d, builder.factor(source, FactorKind::replicate));
      builder.result(0, result, builder.factor(size, FactorKind::replicate));
    } else {
      int64_t factor = builder.factor(size);
      builder.result(0, result, factor);
      if (size == source)
        builder.operand(0, d, factor);
      else
        builder.window(0, d, factor, stride, offset);
    }
    ++result;
  }
  return builder.moves().take();
}

static std::optional<ShardingRule> insertSliceRule(tensor::InsertSliceOp op) {
  RuleBuilder builder(op);
  llvm::SmallBitVector dropped = op.getDroppedDims();
  int64_t source = 0;
  for (int64_t d = 0; d < op.getDestType().getRank(); ++d) {
    int64_t extent = op.getDestType().getDimSize(d);
    int64_t size = dropped.test(d) ? 1 : op.getSourceType().getDimSize(source);
    bool whole = !dropped.test(d) && size == extent;
    int64_t factor = builder.factor(extent, whole ? FactorKind::parallel : FactorKind::replicate);
    builder.result(0, d, factor).operand(1, d, factor);
    if (dropped.test(d))
      continue;
    builder.operand(0, source++, whole ? factor : builder.factor(size, FactorKind::replicate));
  }
  return builder.take();
}

static bool addSliceToKey(OffsetSizeAndStrideOpInterface op, AddressKey &key) {
  for (StringRef name : {"static_offsets", "static_sizes", "static_strides"})
    key.push_back(op->getAttr(name).getAsOpaquePointer());
  return true;
}

namespace {

/// Where a slice of the whole tensor lies in a device's part of it. What is cut is taken as far as
/// the part goes; what is whole is taken as written, known when the program runs or not.
struct LocalSlice {
  template <typename Op>
  LocalSlice(const PartitionContext &context, Op op, const TensorSharding &whole,
             ArrayRef<int64_t> local) {
    auto here = [&](OpFoldResult value) -> OpFoldResult {
      if (auto dynamic = dyn_cast<Value>(value))
        return context.getLocal(dynamic);
      return value;
    };
    Builder b(op.getContext());
    llvm::SmallBitVector dropped = op.getDroppedDims();
    size_t next = 0; ///< of the dimensions of the slice itself
    for (int64_t d = 0; d < whole.rank(); ++d) {
      bool cut = !whole.dims[d].empty();
      int64_t extent = dropped.test(d) ? 1 : local[next++];
      offsets.push_back(cut ? b.getIndexAttr(0) : here(op.getMixedOffsets()[d]));
      sizes.push_back(cut ? b.getIndexAttr(extent) : here(op.getMixedSizes()[d]));
      strides.push_back(here(op.getMixedStrides()[d]));
    }
  }

  SmallVector<OpFoldResult> offsets, sizes, strides;
};

struct ExtractSliceModel : TensorModel<ExtractSliceModel, tensor::ExtractSliceOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    return extractSliceRule(cast<tensor::ExtractSliceOp>(op));
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    return addSliceToKey(cast<tensor::ExtractSliceOp>(op), key);
  }
  bool passesPartial(Operation *, sharding::ReduceKind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t>) const {
    return operands == ArrayRef<int64_t>{0};
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    RankedTensorType type = context.getLocalType(0);
    LocalSlice at(context, cast<tensor::ExtractSliceOp>(op), context.getOperandSharding(0),
                  type.getShape());
    return SmallVector<Value>{tensor::ExtractSliceOp::create(context.builder, op->getLoc(), type,
                                                             context.getOperand(0), at.offsets,
                                                             at.sizes, at.strides)};
  }
};

struct InsertSliceModel : TensorModel<InsertSliceModel, tensor::InsertSliceOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    return insertSliceRule(cast<tensor::InsertSliceOp>(op));
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    return addSliceToKey(cast<tensor::InsertSliceOp>(op), key);
  }
  bool passesPartial(Operation *, sharding::ReduceKind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t> unknown) const {
    return llvm::all_of(llvm::seq<int64_t>(0, 2), [&](int64_t i) {
      return llvm::is_contained(operands, i) || llvm::is_contained(unknown, i);
    });
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    Value source = context.getOperand(0);
    LocalSlice at(context, cast<tensor::InsertSliceOp>(op), context.getResultSharding(0),
                  cast<RankedTensorType>(source.getType()).getShape());
    return SmallVector<Value>{tensor::InsertSliceOp::create(context.builder, op->getLoc(), source,
                                                            context.getOperand(1), at.offsets,
                                                            at.sizes, at.strides)};
  }
};

} // namespace

void dist::attachSliceRules(MLIRContext *context) {
  tensor::PadOp::attachInterface<PadModel>(*context);
  tensor::ExtractSliceOp::attachInterface<ExtractSliceModel>(*context);
  tensor::InsertSliceOp::attachInterface<InsertSliceModel>(*context);
}
