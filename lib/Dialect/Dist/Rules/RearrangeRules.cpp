//===- RearrangeRules.cpp - Segments of operands, and of one dimension ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A result made of segments of operands along a cut dimension: each operand moves to
// the windows that the devices need, and then each device selects the operand of each
// element locally.
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
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
// Assembling segments on a device
//===----------------------------------------------------------------------===//

/// The first element of the result that a segment writes, and the end of its range.
static std::pair<int64_t, int64_t> writtenBy(const Segment &segment) {
  int64_t end = segment.to + segment.toStep * (segment.count - 1);
  return {std::min(segment.to, end), std::max(segment.to, end) + 1};
}

static Value indexOf(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

namespace {

/// Assembles the result from the segments of a device, with dimension `dim` cut.
class Assembler {
public:
  Assembler(PartitionContext &context, int64_t dim, int64_t factor, ArrayRef<Segment> segments,
            Attribute fill)
      : context(context), b(context.builder), loc(context.op->getLoc()), dim(dim), factor(factor),
        segments(segments), fill(fill), type(context.getLocalType(0)), chunk(type.getDimSize(dim)),
        isWindow(windowOf(context.getResultSharding(0)).has_value()) {}

  Value assemble() {
    if (segments.size() == 1 && !fill && segments[0].toStep == 1)
      return context.getOperand(0);
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    for (auto [index, segment] : llvm::enumerate(segments)) {
      if (!isAligned(index)) {
        begins.push_back(beginOf(index));
        continue;
      }
      begins.push_back({});
      SmallVector<AffineExpr> exprs(identity.getResults());
      if (segment.toStep < 0)
        exprs[dim] = chunk - 1 - exprs[dim];
      inputs.push_back(context.getOperand(index));
      maps.push_back(AffineMap::get(type.getRank(), 0, exprs, b.getContext()));
    }
    maps.push_back(identity);
    Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    auto body = [&](OpBuilder &body, Location, ValueRange arguments) {
      linalg::YieldOp::create(body, loc, choose(body, arguments));
    };
    return linalg::GenericOp::create(b, loc, type, inputs, init, maps, iterators, body)
        .getResult(0);
  }

private:
  /// The element of an iteration, from the segment that writes it.
  Value choose(OpBuilder &body, ValueRange arguments) {
    Value at =
        context.getGlobalIteration(body, loc, factor, linalg::IndexOp::create(body, loc, dim));
    Value chosen;
    if (fill)
      chosen = arith::ConstantOp::create(body, loc, cast<TypedAttr>(fill));
    size_t next = 0;
    for (auto [index, segment] : llvm::enumerate(segments)) {
      Value element = isAligned(index) ? arguments[next++] : read(body, index, at);
      Value writes = chosen ? isWrittenBy(body, segment, at) : Value();
      chosen = writes ? arith::SelectOp::create(body, loc, writes, element, chosen) : element;
    }
    return chosen;
  }

  /// Null if a segment writes every element.
  Value isWrittenBy(OpBuilder &body, const Segment &segment, Value at) {
    Value all;
    auto demand = [&](arith::CmpIPredicate predicate, Value left, int64_t right) {
      Value holds = arith::CmpIOp::create(body, loc, predicate, left, indexOf(body, loc, right));
      all = all ? arith::AndIOp::create(body, loc, all, holds).getResult() : holds;
    };
    auto [first, end] = writtenBy(segment);
    int64_t step = std::abs(segment.toStep);
    if (segment.count == 0)
      return arith::ConstantOp::create(body, loc, body.getBoolAttr(false));
    if (first > 0 || isWindow) // windows may exceed the tensor
      demand(arith::CmpIPredicate::sge, at, first);
    if (end < context.getRule().factors[factor].size || isWindow)
      demand(arith::CmpIPredicate::slt, at, end);
    if (step > 1) {
      int64_t shift = (step - first % step) % step;
      Value shifted = arith::AddIOp::create(body, loc, at, indexOf(body, loc, shift));
      demand(arith::CmpIPredicate::eq,
             arith::RemUIOp::create(body, loc, shifted, indexOf(body, loc, step)), 0);
    }
    return all;
  }

  std::optional<Window> windowOf(const TensorSharding &sharding) const {
    for (const Window &window : sharding.windows)
      if (window.dim == dim)
        return window;
    return std::nullopt;
  }

  /// Whether elements of the result have the same index in the operand's buffer.
  bool isAligned(size_t index) const {
    std::optional<Window> window = windowOf(context.getOperandSharding(index));
    return std::abs(segments[index].toStep) == 1 && (!window || window->divisor == 1);
  }

  /// The first element of a segment in the device's operand.
  Value beginOf(size_t index) {
    TensorSharding sharding = context.getOperandSharding(index);
    if (sharding.dims[dim].empty())
      return indexOf(b, loc, 0);
    Value device = context.getDeviceIndex(sharding.dims[dim]);
    std::optional<Window> window = windowOf(sharding);
    if (!window) { // the operand is a plain shard
      auto local = cast<RankedTensorType>(context.getOperand(index).getType());
      return arith::MulIOp::create(b, loc, device, indexOf(b, loc, local.getDimSize(dim)));
    }
    Value begin = arith::MulIOp::create(b, loc, device, indexOf(b, loc, window->step));
    begin = arith::AddIOp::create(b, loc, begin, indexOf(b, loc, window->offset));
    if (window->divisor == 1)
      return begin;
    return arith::CeilDivSIOp::create(b, loc, begin, indexOf(b, loc, window->divisor));
  }

  /// The element that a segment with steps writes at `at`; any element if it writes none.
  Value read(OpBuilder &body, size_t index, Value at) {
    const Segment &segment = segments[index];
    Value local = context.getOperand(index);
    int64_t size = cast<RankedTensorType>(local.getType()).getDimSize(dim);
    Value to = indexOf(body, loc, segment.to), zero = indexOf(body, loc, 0);
    Value distance = segment.toStep > 0 ? arith::SubIOp::create(body, loc, at, to).getResult()
                                        : arith::SubIOp::create(body, loc, to, at).getResult();
    Value element =
        arith::DivSIOp::create(body, loc, distance, indexOf(body, loc, std::abs(segment.toStep)));
    element = arith::SubIOp::create(body, loc, element, begins[index]);
    element = arith::MaxSIOp::create(body, loc, element, zero);
    element = arith::MinSIOp::create(body, loc, element, indexOf(body, loc, size - 1));
    SmallVector<Value> indices;
    for (int64_t d = 0; d < type.getRank(); ++d)
      indices.push_back(d == dim ? element : linalg::IndexOp::create(body, loc, d).getResult());
    return tensor::ExtractOp::create(body, loc, local, indices);
  }

  PartitionContext &context;
  OpBuilder &b;
  Location loc;
  int64_t dim, factor;
  ArrayRef<Segment> segments;
  Attribute fill;
  RankedTensorType type;
  int64_t chunk;
  bool isWindow;             ///< of the result
  SmallVector<Value> begins; ///< of segments that are not aligned
};

} // namespace

Value dist::assembleSegments(PartitionContext &context, int64_t dim, int64_t factor,
                             ArrayRef<Segment> segments, Attribute fill) {
  return Assembler(context, dim, factor, segments, fill).assemble();
}

//===----------------------------------------------------------------------===//
// dist.rearrange
//===----------------------------------------------------------------------===//

static Value reversed(OpBuilder &b, Location loc, Value value, int64_t dim) {
  auto type = cast<RankedTensorType>(value.getType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineExpr> exprs(identity.getResults());
  exprs[dim] = type.getDimSize(dim) - 1 - exprs[dim];
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, type, value, init,
             ArrayRef<AffineMap>{AffineMap::get(type.getRank(), 0, exprs, b.getContext()),
                                 identity},
             iterators,
             [](OpBuilder &body, Location at, ValueRange arguments) {
               linalg::YieldOp::create(body, at, arguments[0]);
             })
      .getResult(0);
}

/// Lowers an op whose dimension is whole to ops with kernels; operands hold their segments.
static Value assembleWhole(PartitionContext &context, RearrangeOp op) {
  OpBuilder &b = context.builder;
  Location loc = op.getLoc();
  RankedTensorType type = context.getLocalType(0);
  int64_t dim = op.getDim(), extent = type.getDimSize(dim), covered = 0;
  struct Run {
    int64_t first, step;
    Value value;
  };
  SmallVector<Run> runs;
  bool isDense = true;
  for (unsigned index = 0; index < op.getInputs().size(); ++index) {
    Segment segment = op.getSegment(index);
    Value value = context.getOperand(index);
    covered += segment.count;
    isDense &= std::abs(segment.toStep) == 1;
    if (segment.toStep < 0)
      value = reversed(b, loc, value, dim);
    if (segment.count > 0)
      runs.push_back({writtenBy(segment).first, std::abs(segment.toStep), value});
  }
  llvm::sort(runs, [](const Run &a, const Run &b) { return a.first < b.first; });
  if (covered == extent && isDense) {
    if (runs.size() == 1)
      return runs.front().value;
    return tensor::ConcatOp::create(
        b, loc, type, dim, llvm::map_to_vector(runs, [](const Run &run) { return run.value; }));
  }
  Value result = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  if (covered < extent)
    result = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, ArrayRef<Attribute>(Attribute(op.getFillAttr()))));
  for (const Run &run : runs) {
    SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
    offsets[dim] = b.getIndexAttr(run.first);
    strides[dim] = b.getIndexAttr(run.step);
    SmallVector<OpFoldResult> sizes;
    for (int64_t size : cast<RankedTensorType>(run.value.getType()).getShape())
      sizes.push_back(b.getIndexAttr(size));
    result = tensor::InsertSliceOp::create(b, loc, run.value, result, offsets, sizes, strides);
  }
  return result;
}

namespace {

struct RearrangeModel : TensorModel<RearrangeModel, RearrangeOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    auto rearrange = cast<RearrangeOp>(op);
    RuleBuilder builder(op);
    RankedTensorType type = rearrange.getResult().getType();
    for (int64_t d = 0; d < type.getRank(); ++d) {
      int64_t factor = builder.factor(type.getDimSize(d));
      builder.result(0, d, factor);
      for (auto [index, input] : llvm::enumerate(rearrange.getInputs()))
        if (d == static_cast<int64_t>(rearrange.getDim()))
          builder.segment(index, d, factor, rearrange.getSegment(index),
                          cast<RankedTensorType>(input.getType()).getDimSize(d),
                          /*isNarrow=*/true);
        else
          builder.operand(index, d, factor);
    }
    return builder.take();
  }
  bool passesPartial(Operation *op, sharding::ReduceKind kind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t> unknown) const {
    Attribute fill = cast<RearrangeOp>(op).getFillAttr();
    bool addsNothing =
        !fill || (kind == sharding::ReduceKind::sum &&
                  (matchPattern(fill, m_AnyZeroFloat()) || matchPattern(fill, m_Zero())));
    // Elements with steps are extracted one by one; verifiers cannot prove that linear.
    auto rearrange = cast<RearrangeOp>(op);
    for (unsigned index = 0; index < rearrange.getInputs().size(); ++index)
      addsNothing &= std::abs(rearrange.getSegment(index).toStep) == 1;
    return addsNothing && llvm::all_of(llvm::seq<int64_t>(0, op->getNumOperands()), [&](int64_t i) {
             return llvm::is_contained(operands, i) || llvm::is_contained(unknown, i);
           });
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    auto rearrange = cast<RearrangeOp>(op);
    auto dim = static_cast<int64_t>(rearrange.getDim());
    int64_t factor = context.getRule().results[0][dim].factors[0];
    if (context.getFactorAxes()[factor].empty())
      return SmallVector<Value>{assembleWhole(context, rearrange)};
    SmallVector<Segment> segments;
    for (unsigned index = 0; index < rearrange.getInputs().size(); ++index)
      segments.push_back(rearrange.getSegment(index));
    return SmallVector<Value>{
        assembleSegments(context, dim, factor, segments, rearrange.getFillAttr())};
  }
};

} // namespace

void dist::attachRearrangeRules(MLIRContext *context) {
  RearrangeOp::attachInterface<RearrangeModel>(*context);
}
