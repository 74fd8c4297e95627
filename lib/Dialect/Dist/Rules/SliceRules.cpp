//===- SliceRules.cpp - Rules of pads and slices --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"
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
  Attribute getWindowFill(Operation *op, unsigned index) const {
    Attribute constant;
    Value padding = cast<tensor::PadOp>(op).getConstantPaddingValue();
    if (index == 0 && padding)
      matchPattern(padding, m_Constant(&constant));
    return constant;
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
    // The operand is already a window, but elements outside the tensor must be the pad value.
    if (!isConstant && !context.getOperandSharding(0).windows.empty())
      return op->emitError(
          "pads a cut dimension with a value that is not constant; use a constant");
    return SmallVector<Value>{padWholeDims(context.builder, pad, local, result,
                                           isConstant ? Value() : context.getLocal(padding))};
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Whether a device can add zeros for the elements of a slice that it does not hold.
static bool hasSums(RankedTensorType type) {
  Type element = type.getElementType();
  return isa<FloatType>(element) || (element.isInteger() && !element.isInteger(1));
}

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
    if (ShapedType::isDynamic(offset)) {
      // With an offset known only at run time, each device contributes its elements of the slice.
      builder.operand(0, d,
                      builder.factor(source, hasSums(op.getSourceType()) ? FactorKind::reduction
                                                                         : FactorKind::replicate));
      if (!dropped.test(d))
        builder.result(0, result++, builder.factor(size, FactorKind::replicate));
      continue;
    }
    if (dropped.test(d)) {
      builder.segment(0, d, builder.factor(1, FactorKind::replicate), {offset, 1, 0, 1, 1}, source,
                      /*isNarrow=*/true);
      continue;
    }
    int64_t factor = builder.factor(size);
    builder.result(0, result, factor);
    if (size == source)
      builder.operand(0, d, factor);
    else
      builder.segment(0, d, factor, {offset, stride, 0, 1, size}, source, /*isNarrow=*/true);
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
    int64_t size = op.getStaticSizes()[d], offset = op.getStaticOffsets()[d];
    // The owner of an element writes it.
    bool isOwned = op.getStaticStrides()[d] == 1;
    int64_t factor = builder.factor(extent, isOwned ? FactorKind::parallel : FactorKind::replicate);
    builder.result(0, d, factor).operand(1, d, factor);
    if (dropped.test(d))
      continue;
    if (size == extent)
      builder.operand(0, source, factor);
    else if (isOwned && !ShapedType::isDynamic(offset))
      builder.segment(0, source, factor, {0, 1, offset, 1, size}, size);
    else
      builder.operand(0, source, builder.factor(size, FactorKind::replicate));
    ++source;
  }
  return builder.take();
}

static bool addSliceToKey(OffsetSizeAndStrideOpInterface op, AddressKey &key) {
  for (StringRef name : {"static_offsets", "static_sizes", "static_strides"})
    key.push_back(op->getAttr(name).getAsOpaquePointer());
  return true;
}

namespace {

/// The offset of a global slice in a device's buffer. A cut dimension holds exactly the needed
/// elements; a whole one is sliced as written, with static or dynamic offsets.
struct LocalSlice {
  template <typename Op>
  LocalSlice(const PartitionContext &context, Op op, const TensorSharding &whole,
             ArrayRef<int64_t> local, RankedTensorType operand = {}) {
    auto here = [&](OpFoldResult value) -> OpFoldResult {
      if (auto dynamic = dyn_cast<Value>(value))
        return context.getLocal(dynamic);
      return value;
    };
    Builder b(op.getContext());
    llvm::SmallBitVector dropped = op.getDroppedDims();
    size_t next = 0; ///< dimension of the slice itself
    for (int64_t d = 0; d < whole.rank(); ++d) {
      // An operand moved for the slice has only its elements.
      bool isNarrow = operand && operand.getDimSize(d) != op.getSourceType().getDimSize(d);
      bool cut = !whole.dims[d].empty() || isNarrow;
      int64_t extent = dropped.test(d) ? 1 : local[next++];
      offsets.push_back(cut ? b.getIndexAttr(0) : here(op.getMixedOffsets()[d]));
      sizes.push_back(cut ? b.getIndexAttr(extent) : here(op.getMixedSizes()[d]));
      strides.push_back(cut ? b.getIndexAttr(1) : here(op.getMixedStrides()[d]));
    }
  }

  SmallVector<OpFoldResult> offsets, sizes, strides;
};

/// A slice with a dynamic offset in a cut dimension: of `size` elements, some are among the `chunk`
/// of the device.
struct OwnedSlice {
  /// The elements of the device's part that may belong to the slice, and their number.
  OpFoldResult offset;
  int64_t size;
  Value shift;   ///< element i of the slice is element i * stride + shift of these
  int64_t chunk; ///< ... if that is in range
  int64_t stride;

  template <typename Op>
  static OwnedSlice of(PartitionContext &context, Op op, int64_t d, int64_t factor, int64_t chunk) {
    OpBuilder &b = context.builder;
    Location loc = op.getLoc();
    auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); };
    int64_t size = op.getStaticSizes()[d], stride = op.getStaticStrides()[d];
    Value begin = context.getLocal(cast<Value>(op.getMixedOffsets()[d]));
    begin = clampIndex(b, loc, begin,
                       offsetBounds(context.getRule().factors[factor].size, size, stride));
    Value first = context.getGlobalIteration(b, loc, factor, constant(0));
    Value shift = arith::SubIOp::create(b, loc, begin, first);
    if (stride != 1 || size >= chunk)
      return {b.getIndexAttr(0), chunk, shift, chunk, stride};
    Value offset = arith::MaxSIOp::create(b, loc, shift, constant(0));
    offset = arith::MinSIOp::create(b, loc, offset, constant(chunk - size));
    return {offset, size, arith::SubIOp::create(b, loc, shift, offset), size, 1};
  }

  /// The position of element `i` of the slice among the device's; adds to `isOwned` whether it is
  /// one of them.
  Value place(OpBuilder &b, Location loc, Value i, Value &isOwned) const {
    auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); };
    Value at = stride == 1 ? i : arith::MulIOp::create(b, loc, i, constant(stride)).getResult();
    at = arith::AddIOp::create(b, loc, at, shift);
    return clamp(b, loc, at, chunk, isOwned);
  }
  /// The position in the slice of element `i` of the device's; the same.
  Value source(OpBuilder &b, Location loc, Value i, int64_t extent, Value &isOwned) const {
    return clamp(b, loc, arith::SubIOp::create(b, loc, i, shift), extent, isOwned);
  }

private:
  static Value clamp(OpBuilder &b, Location loc, Value at, int64_t extent, Value &isOwned) {
    auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); };
    using Predicate = arith::CmpIPredicate;
    Value low = arith::CmpIOp::create(b, loc, Predicate::sge, at, constant(0));
    Value high = arith::CmpIOp::create(b, loc, Predicate::slt, at, constant(extent));
    Value inside = arith::AndIOp::create(b, loc, low, high);
    isOwned = isOwned ? arith::AndIOp::create(b, loc, isOwned, inside).getResult() : inside;
    at = arith::MaxSIOp::create(b, loc, at, constant(0));
    return arith::MinSIOp::create(b, loc, at, constant(extent - 1));
  }
};

/// The identity of a sum: -0.0 does not change any float.
static TypedAttr identityOfSum(OpBuilder &b, Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    return b.getFloatAttr(type, APFloat::getZero(type.getFloatSemantics(), /*Negative=*/true));
  return b.getZeroAttr(element);
}

/// Creates a tensor by `body` for every element, from its indices.
static Value generate(OpBuilder &b, Location loc, RankedTensorType type,
                      llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, type, ValueRange{}, init,
                                   ArrayRef<AffineMap>{b.getMultiDimIdentityMap(type.getRank())},
                                   iterators,
                                   [&](OpBuilder &inner, Location at, ValueRange) {
                                     SmallVector<Value> indices;
                                     for (int64_t d = 0; d < type.getRank(); ++d)
                                       indices.push_back(linalg::IndexOp::create(inner, at, d));
                                     linalg::YieldOp::create(inner, at, body(inner, indices));
                                   })
      .getResult(0);
}

struct ExtractSliceModel : TensorModel<ExtractSliceModel, tensor::ExtractSliceOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    return extractSliceRule(cast<tensor::ExtractSliceOp>(op));
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    return addSliceToKey(cast<tensor::ExtractSliceOp>(op), key);
  }
  bool passesPartial(Operation *op, sharding::ReduceKind kind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t>) const {
    // A slice with a dynamic offset is a contribution to a sum only.
    bool isAdded = llvm::is_contained(cast<tensor::ExtractSliceOp>(op).getStaticOffsets(),
                                      ShapedType::kDynamic);
    return operands == ArrayRef<int64_t>{0} && (kind == sharding::ReduceKind::sum || !isAdded);
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    RankedTensorType type = context.getLocalType(0);
    auto slice = cast<tensor::ExtractSliceOp>(op);
    for (const DimRule &dim : context.getRule().operands[0])
      if (context.getRule().factors[dim.factors[0]].kind == FactorKind::reduction &&
          !context.getFactorAxes()[dim.factors[0]].empty())
        return SmallVector<Value>{sliceOfOwners(slice, context)};
    LocalSlice at(context, slice, context.getOperandSharding(0), type.getShape(),
                  cast<RankedTensorType>(context.getOperand(0).getType()));
    return SmallVector<Value>{tensor::ExtractSliceOp::create(context.builder, op->getLoc(), type,
                                                             context.getOperand(0), at.offsets,
                                                             at.sizes, at.strides)};
  }

private:
  /// The device's elements of a slice with a dynamic offset, zeros elsewhere.
  static Value sliceOfOwners(tensor::ExtractSliceOp op, PartitionContext &context) {
    OpBuilder &b = context.builder;
    Location loc = op.getLoc();
    RankedTensorType type = context.getLocalType(0);
    Value local = context.getOperand(0);
    auto localType = cast<RankedTensorType>(local.getType());
    SmallVector<int64_t> fullShape; // of the slice, including dropped dimensions
    llvm::SmallBitVector dropped = op.getDroppedDims();
    size_t next = 0;
    for (int64_t d = 0; d < localType.getRank(); ++d)
      fullShape.push_back(dropped.test(d) ? 1 : type.getDimSize(next++));
    TensorSharding whole = context.getOperandSharding(0);
    LocalSlice at(context, op, whole, type.getShape(), localType);
    SmallVector<std::optional<OwnedSlice>> owned(localType.getRank());
    SmallVector<int64_t> shape;
    for (auto [d, dim] : llvm::enumerate(context.getRule().operands[0])) {
      shape.push_back(fullShape[d]);
      bool isAdded = context.getRule().factors[dim.factors[0]].kind == FactorKind::reduction;
      if (whole.dims[d].empty() || !isAdded)
        continue;
      owned[d] = OwnedSlice::of(context, op, d, dim.factors[0], localType.getDimSize(d));
      at.offsets[d] = owned[d]->offset;
      at.sizes[d] = b.getIndexAttr(shape[d] = owned[d]->size);
    }
    auto nearType = RankedTensorType::get(shape, type.getElementType());
    Value near =
        tensor::ExtractSliceOp::create(b, loc, nearType, local, at.offsets, at.sizes, at.strides);
    return generate(b, loc, type, [&](OpBuilder &body, ValueRange indices) {
      SmallVector<Value> places;
      Value isOwned;
      size_t next = 0;
      for (int64_t d = 0; d < localType.getRank(); ++d) {
        Value i = dropped.test(d) ? arith::ConstantIndexOp::create(body, loc, 0).getResult()
                                  : indices[next++];
        places.push_back(owned[d] ? owned[d]->place(body, loc, i, isOwned) : i);
      }
      Value element = tensor::ExtractOp::create(body, loc, near, places);
      Value nothing =
          arith::ConstantOp::create(body, loc, identityOfSum(body, type.getElementType()));
      return arith::SelectOp::create(body, loc, isOwned, element, nothing).getResult();
    });
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
    auto insert = cast<tensor::InsertSliceOp>(op);
    Value source = context.getOperand(0);
    TensorSharding whole = context.getResultSharding(0);
    for (int64_t d = 0; d < whole.rank(); ++d)
      if (!whole.dims[d].empty() &&
          insert.getStaticSizes()[d] != insert.getDestType().getDimSize(d))
        return SmallVector<Value>{insertByOwners(insert, context)};
    LocalSlice at(context, insert, whole, cast<RankedTensorType>(source.getType()).getShape());
    return SmallVector<Value>{tensor::InsertSliceOp::create(context.builder, op->getLoc(), source,
                                                            context.getOperand(1), at.offsets,
                                                            at.sizes, at.strides)};
  }

private:
  /// Each device writes its elements of the slice: it reads as many elements of its part as the
  /// slice has and may reach, and writes them back with those of the slice.
  static Value insertByOwners(tensor::InsertSliceOp op, PartitionContext &context) {
    OpBuilder &b = context.builder;
    Location loc = op.getLoc();
    Value source = context.getOperand(0), local = context.getOperand(1);
    auto sourceType = cast<RankedTensorType>(source.getType());
    auto localType = cast<RankedTensorType>(local.getType());
    TensorSharding whole = context.getResultSharding(0);
    llvm::SmallBitVector dropped = op.getDroppedDims();
    LocalSlice at(context, op, whole, sourceType.getShape());
    struct Dim {
      std::optional<OwnedSlice> owned; ///< cut, with a dynamic offset
      int64_t factor = -1; ///< cut, with a static offset: elements [first, end) of the whole
      int64_t first = 0, end = 0;
      int64_t size = 0; ///< of the slice
    };
    SmallVector<Dim> dims(localType.getRank());
    SmallVector<int64_t> shape;
    for (auto [d, dim] : llvm::enumerate(dims)) {
      dim.size = op.getStaticSizes()[d];
      int64_t extent = op.getDestType().getDimSize(d), offset = op.getStaticOffsets()[d];
      int64_t chunk = localType.getDimSize(d);
      int64_t factor = context.getRule().results[0][d].factors[0];
      if (whole.dims[d].empty()) {
        shape.push_back(dim.size);
        continue;
      }
      shape.push_back(chunk);
      at.offsets[d] = b.getIndexAttr(0);
      if (dim.size == extent)
        continue;
      if (ShapedType::isDynamic(offset)) {
        dim.owned = OwnedSlice::of(context, op, d, factor, chunk);
        at.offsets[d] = dim.owned->offset;
        shape[d] = dim.owned->size;
      } else {
        dim.factor = factor;
        dim.first = offset;
        dim.end = offset + dim.size;
      }
    }
    for (auto [size, extent] : llvm::zip_equal(at.sizes, shape))
      size = b.getIndexAttr(extent);
    auto nearType = RankedTensorType::get(shape, localType.getElementType());
    Value near =
        tensor::ExtractSliceOp::create(b, loc, nearType, local, at.offsets, at.sizes, at.strides);
    Value written = generate(b, loc, nearType, [&](OpBuilder &body, ValueRange indices) {
      auto constant = [&](int64_t v) { return arith::ConstantIndexOp::create(body, loc, v); };
      SmallVector<Value> places;
      Value isOwned;
      for (auto [d, dim] : llvm::enumerate(dims)) {
        Value place = indices[d];
        if (dim.owned) {
          place = dim.owned->source(body, loc, place, dim.size, isOwned);
        } else if (dim.factor >= 0) {
          Value global = context.getGlobalIteration(body, loc, dim.factor, place);
          using Predicate = arith::CmpIPredicate;
          Value low = arith::CmpIOp::create(body, loc, Predicate::sge, global, constant(dim.first));
          Value high = arith::CmpIOp::create(body, loc, Predicate::slt, global, constant(dim.end));
          Value inside = arith::AndIOp::create(body, loc, low, high);
          isOwned =
              isOwned ? arith::AndIOp::create(body, loc, isOwned, inside).getResult() : inside;
        }
        if (!dropped.test(d))
          places.push_back(place);
      }
      Value element = tensor::ExtractOp::create(body, loc, source, places);
      Value old = tensor::ExtractOp::create(body, loc, near, indices);
      return arith::SelectOp::create(body, loc, isOwned, element, old).getResult();
    });
    return tensor::InsertSliceOp::create(b, loc, written, local, at.offsets, at.sizes, at.strides);
  }
};

} // namespace

void dist::attachSliceRules(MLIRContext *context) {
  tensor::PadOp::attachInterface<PadModel>(*context);
  tensor::ExtractSliceOp::attachInterface<ExtractSliceModel>(*context);
  tensor::InsertSliceOp::attachInterface<InsertSliceModel>(*context);
}
