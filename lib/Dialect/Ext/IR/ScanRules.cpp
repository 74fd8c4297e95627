//===- ScanRules.cpp - Distribution of scans ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Along a sharded dimension, each device scans its part; the prefix before the part
// is one element for each line, the exclusive scan of the devices' totals (G.
// Blelloch, "Prefix Sums and Their Applications", 1990):
//
//   device        0        1        2        3
//   x           1 1 1    1 1 1    1 1 1    1         7 + 3 elements over 4
//   local scan  1 2 3    1 2 3    1 2 3    1
//   before        -        3        6        9
//   result      1 2 3    4 5 6    7 8 9   10
//
// The totals are gathered, or passed on in log2(n) rounds (W. Hillis, G. Steele, "Data Parallel
// Algorithms", CACM 29(12), 1986), whichever sends less. No identity is needed: the first device
// uses its scan as it is. Only the last part may be partial, so a forward scan reads no undefined
// element; a reverse scan begins with them and masks them. Of an input that is repeated along
// dimensions, such as one factor for a row of states, one total of them is sent.
//
//===----------------------------------------------------------------------===//

#include "Local.h"
#include "RepeatedDims.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::AxisList;
using sharding::TensorSharding;

std::optional<sharding::ShardingRule> ScanOp::getShardingRule() {
  dist::RuleBuilder builder(*this);
  for (auto [dim, extent] : llvm::enumerate(getShape())) {
    int64_t factor = builder.factor(extent);
    for (unsigned index = 0; index < getNumOperands(); ++index)
      builder.operand(index, dim, factor).result(index, dim, factor);
  }
  return builder.take();
}

bool ScanOp::addToRuleKey(AddressKey &key) {
  key.push_back(getDimensionAttr().getAsOpaquePointer());
  return true;
}

bool ScanOp::isEquivariant(int64_t factor) {
  return factor != getDimension();
}

int64_t ScanOp::getOperationsPerIteration() {
  return std::max<int64_t>(1, std::distance(getBody().begin(), getBody().end()) - 1);
}

//===----------------------------------------------------------------------===//
// The totals of devices
//===----------------------------------------------------------------------===//

namespace {
/// How the totals are communicated.
struct TotalsPlan {
  bool isGathered = true;
  double seconds = 0;
};

/// The totals of one input: one for each device along the dimension, otherwise of the shape and the
/// sharding of the scan's tensors, of extent 1 along dimensions in which they are repeated.
struct Totals {
  std::vector<int64_t> shape;
  TensorSharding sharding;
  llvm::SmallBitVector repeated;
};
} // namespace

static Totals totalsOf(ArrayRef<int64_t> shape, unsigned dim, const TensorSharding &sharding,
                       const llvm::SmallBitVector &repeated) {
  Totals totals{shape.vec(), sharding, repeated};
  totals.shape[dim] = sharding::sizeOf(sharding.dims[dim]);
  for (auto [d, extent] : llvm::enumerate(shape)) {
    // A device without elements has no total.
    if (repeated.test(d) && extent % sharding::sizeOf(sharding.dims[d]) != 0)
      totals.repeated.reset(d);
    if (totals.repeated.test(d)) {
      totals.shape[d] = 1;
      totals.sharding.dims[d].clear();
    }
  }
  return totals;
}

static SmallVector<Totals> totalsOf(ScanOp op, const TensorSharding &sharding) {
  return llvm::map_to_vector(repeatedDims(op), [&](const llvm::SmallBitVector &repeated) {
    return totalsOf(op.getShape(), op.getDim(), sharding, repeated);
  });
}

/// The totals, gathered along the dimension.
static TensorSharding gathered(TensorSharding totals, unsigned dim) {
  totals.dims[dim].clear();
  return totals;
}

/// The sharding under which device i holds the total of device i - distance (or i + distance).
static TensorSharding shifted(TensorSharding totals, unsigned dim, int64_t distance, bool reverse) {
  totals.windows.push_back({dim, 1, reverse ? distance : -distance, 1});
  return totals;
}

static TotalsPlan planTotals(ScanOp op, ArrayRef<Totals> totals, int64_t devices,
                             const sharding::Mesh &mesh, sharding::ReshardPlanner &planner) {
  double seconds = 0;
  auto bytesTo = [&](llvm::function_ref<TensorSharding(const TensorSharding &)> targetOf) {
    int64_t bytes = 0;
    for (auto [input, own] : llvm::zip_first(op.getInputs(), totals)) {
      const sharding::ReshardPlan &plan = planner.plan(
          {mesh, own.shape, dist::bytesPerElement(getElementTypeOrSelf(input.getType())),
           sharding::canonical(own.sharding), sharding::canonical(targetOf(own.sharding))});
      bytes += plan.traffic.wireBytes;
      seconds += plan.seconds;
    }
    return bytes;
  };
  int64_t ofGather = bytesTo([&](const TensorSharding &own) { return gathered(own, op.getDim()); });
  double secondsOfGather = std::exchange(seconds, 0);
  int64_t passedOn = 0;
  for (int64_t distance = 1; distance < devices; distance *= 2)
    passedOn += bytesTo([&](const TensorSharding &own) {
      return shifted(own, op.getDim(), distance, op.getReverse());
    });
  bool isGathered = ofGather < passedOn;
  return {isGathered, isGathered ? secondsOfGather : seconds};
}

double ScanOp::getCommunicationSeconds(const sharding::FactorAxes &axes, const sharding::Mesh &mesh,
                                       sharding::ReshardPlanner &planner) {
  if (axes[getDim()].empty())
    return 0;
  TensorSharding sharding = TensorSharding::replicated(getShape().size());
  sharding.dims.assign(axes.begin(), axes.end());
  return planTotals(*this, totalsOf(*this, sharding), sharding::sizeOf(axes[getDim()]), mesh,
                    planner)
      .seconds;
}

//===----------------------------------------------------------------------===//
// A device's part
//===----------------------------------------------------------------------===//

namespace {

/// Writes one scan along a sharded dimension.
class CutScan {
public:
  CutScan(ScanOp op, dist::PartitionContext &context)
      : op(op), context(context), write{context.builder, op.getLoc()}, dim(op.getDim()),
        sharding(context.getResultSharding(0)), axes(sharding.dims[dim]) {}
  SmallVector<Value> run();

private:
  using Values = SmallVector<Value>;
  /// The ops of the combiner on scalars.
  Values combine(OpBuilder &b, ValueRange before, ValueRange behind);
  /// The same on tensors, which are repeated to the largest extents. Where `isThere` (a scalar) is
  /// false, the result is `behind`.
  Values combineTensors(ValueRange before, ValueRange behind, Value isThere);
  /// Replaces undefined elements at the start of a reverse scan.
  void maskInputs();
  /// Extends the combiner to values and flags, which are false for undefined elements.
  void addFlags(Value isInside);
  Values scan(ValueRange inputs, bool exclusive);
  /// The prefix before this device's part, for each line, and whether there is one.
  Values exclusiveTotals(Values values, Value &isThere);
  /// One element along the dimensions in which totals are repeated.
  void narrow(MutableArrayRef<Value> values);

  ScanOp op;
  dist::PartitionContext &context;
  Local write;
  unsigned dim;
  TensorSharding sharding;
  AxisList axes;
  Values inputs;
  SmallVector<Totals> totals;
  bool isFlagged = false;
};

} // namespace

CutScan::Values CutScan::combine(OpBuilder &b, ValueRange before, ValueRange behind) {
  size_t count = op.getInputs().size();
  IRMapping mapping;
  mapping.map(op.getBody().getArguments().take_front(count), before.take_front(count));
  mapping.map(op.getBody().getArguments().drop_front(count), behind.take_front(count));
  for (Operation &inner : op.getBody().without_terminator())
    b.clone(inner, mapping);
  Values results;
  for (Value yielded : op.getBody().getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(yielded));
  if (!isFlagged)
    return results;
  Location loc = op.getLoc();
  for (auto [result, first, second] : llvm::zip(results, before, behind)) {
    Value right = arith::SelectOp::create(b, loc, behind.back(), result, first);
    result = arith::SelectOp::create(b, loc, before.back(), right, second);
  }
  results.push_back(arith::OrIOp::create(b, loc, before.back(), behind.back()));
  return results;
}

/// The largest extents of tensors.
static SmallVector<int64_t> commonShape(ValueRange values) {
  SmallVector<int64_t> shape;
  for (Value value : values) {
    ArrayRef<int64_t> own = cast<RankedTensorType>(value.getType()).getShape();
    shape.resize(own.size(), 1);
    for (auto [extent, mine] : llvm::zip(shape, own))
      extent = std::max(extent, mine);
  }
  return shape;
}

/// Reads a tensor of extents 1 or those of `shape`.
static AffineMap repeatedMap(Builder &b, Value value, ArrayRef<int64_t> shape) {
  SmallVector<AffineExpr> exprs;
  for (auto [d, extent] : llvm::enumerate(cast<RankedTensorType>(value.getType()).getShape()))
    exprs.push_back(extent == shape[d] ? b.getAffineDimExpr(d) : b.getAffineConstantExpr(0));
  return AffineMap::get(shape.size(), 0, exprs, b.getContext());
}

CutScan::Values CutScan::combineTensors(ValueRange before, ValueRange behind, Value isThere) {
  OpBuilder &b = context.builder;
  Values operands(before);
  llvm::append_range(operands, behind);
  SmallVector<int64_t> shape = commonShape(operands);
  SmallVector<AffineMap> maps =
      llvm::map_to_vector(operands, [&](Value value) { return repeatedMap(b, value, shape); });
  SmallVector<Type> elements;
  for (Value value : behind)
    elements.push_back(getElementTypeOrSelf(value.getType()));
  return write.pointwise(operands, maps, shape, elements, [&](OpBuilder &inner, ValueRange args) {
    ValueRange second = args.drop_front(before.size());
    Values results = combine(inner, args.take_front(before.size()), second);
    if (isThere)
      for (auto [result, own] : llvm::zip(results, second))
        result = arith::SelectOp::create(inner, op.getLoc(), isThere, result, own);
    return results;
  });
}

void CutScan::narrow(MutableArrayRef<Value> values) {
  for (auto [value, own] : llvm::zip(values, totals))
    for (unsigned d : own.repeated.set_bits())
      if (cast<RankedTensorType>(value.getType()).getDimSize(d) != 1)
        value = write.slice(value, d, context.builder.getIndexAttr(0), 1);
}

void CutScan::addFlags(Value isInside) {
  inputs.push_back(isInside);
  // Flags are those of the dimension alone.
  llvm::SmallBitVector others(op.getShape().size(), true);
  others.reset(dim);
  totals.push_back(totalsOf(op.getShape(), dim, sharding, others));
  isFlagged = true;
}

void CutScan::maskInputs() {
  OpBuilder &b = context.builder;
  auto type = cast<RankedTensorType>(inputs[0].getType());
  Value begin = arith::MulIOp::create(b, op.getLoc(), context.getDeviceIndex(axes),
                                      write.index(type.getDimSize(dim)));
  Value isInside = write.isInside(type.getShape(), dim, begin, op.getShape()[dim]);
  if (!op.getIdentity())
    return addFlags(isInside);
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  for (auto [input, identity] : llvm::zip(inputs, op.getIdentityAttr())) {
    Type element = getElementTypeOrSelf(input.getType());
    input = write.pointwise(
        {input, isInside}, {map, map}, type.getShape(), {element},
        [&](OpBuilder &inner, ValueRange args) {
          Value fill = arith::ConstantOp::create(inner, op.getLoc(), cast<TypedAttr>(identity));
          return Values{arith::SelectOp::create(inner, op.getLoc(), args[1], args[0], fill)};
        })[0];
  }
}

CutScan::Values CutScan::scan(ValueRange operands, bool exclusive) {
  OpBuilder &b = context.builder;
  auto local = ScanOp::create(b, op.getLoc(), operands.getTypes(), op.getDimensionAttr(),
                              exclusive ? b.getUnitAttr() : UnitAttr(), op.getReverseAttr(),
                              operands, isFlagged ? ArrayAttr() : op.getIdentityAttr());
  Block &body = local.getCombiner().emplaceBlock();
  for (int side = 0; side < 2; ++side)
    for (Value operand : operands)
      body.addArgument(getElementTypeOrSelf(operand.getType()), op.getLoc());
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  YieldOp::create(inner, op.getLoc(),
                  combine(inner, body.getArguments().take_front(operands.size()),
                          body.getArguments().drop_front(operands.size())));
  return Values(local.getResults());
}

CutScan::Values CutScan::exclusiveTotals(Values values, Value &isThere) {
  OpBuilder &b = context.builder;
  Location loc = op.getLoc();
  int64_t devices = sharding::sizeOf(axes);
  Value device = context.getDeviceIndex(axes);
  // The number of devices before this one, in the order of the scan.
  Value before = op.getReverse()
                     ? arith::SubIOp::create(b, loc, write.index(devices - 1), device).getResult()
                     : device;
  auto hasBefore = [&](int64_t distance) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, before, write.index(distance));
  };
  auto moveTo = [&](llvm::function_ref<TensorSharding(const TensorSharding &)> targetOf) {
    Values moved;
    for (auto [value, own] : llvm::zip(values, totals))
      moved.push_back(context.reshard(
          value, RankedTensorType::get(own.shape, getElementTypeOrSelf(value.getType())),
          own.sharding, targetOf(own.sharding)));
    return moved;
  };
  isThere = hasBefore(1);
  narrow(values);
  if (planTotals(op, totals, devices, context.getMesh(), context.getPlanner()).isGathered) {
    Values all = moveTo([&](const TensorSharding &own) { return gathered(own, dim); });
    SmallVector<int64_t> shape = commonShape(all);
    for (Value &value : all)
      if (cast<RankedTensorType>(value.getType()).getShape() != ArrayRef<int64_t>(shape))
        value = write.pointwise({value}, {repeatedMap(b, value, shape)}, shape,
                                {getElementTypeOrSelf(value.getType())},
                                [](OpBuilder &, ValueRange args) { return Values(args); })[0];
    Values prefixes = scan(all, /*exclusive=*/false);
    // The total of the neighbor; any for the first device.
    Value next = arith::AddIOp::create(b, loc, device, write.index(op.getReverse() ? 1 : -1));
    Value clamped = arith::MinSIOp::create(
        b, loc, arith::MaxSIOp::create(b, loc, next, write.index(0)), write.index(devices - 1));
    for (Value &prefix : prefixes)
      prefix = write.slice(prefix, dim, clamped, 1);
    return prefixes;
  }
  Values prefixes;
  for (int64_t distance = 1; distance < devices; distance *= 2) {
    Values received = moveTo(
        [&](const TensorSharding &own) { return shifted(own, dim, distance, op.getReverse()); });
    Value isReceived = hasBefore(distance);
    prefixes = prefixes.empty() ? received : combineTensors(received, prefixes, isReceived);
    narrow(prefixes);
    if (distance * 2 < devices) {
      values = combineTensors(received, values, isReceived);
      narrow(values);
    }
  }
  return prefixes;
}

SmallVector<Value> CutScan::run() {
  for (unsigned index = 0; index < op.getNumOperands(); ++index)
    inputs.push_back(context.getOperand(index));
  totals = totalsOf(op, sharding);
  if (op.getReverse() && context.isUneven(dim))
    maskInputs();
  Values local = scan(inputs, op.getExclusive());
  int64_t extent = cast<RankedTensorType>(local[0].getType()).getDimSize(dim);
  OpFoldResult last = context.builder.getIndexAttr(op.getReverse() ? 0 : extent - 1);
  Values lasts, lastInputs;
  for (auto [result, input] : llvm::zip(local, inputs)) {
    lasts.push_back(write.slice(result, dim, last, 1));
    lastInputs.push_back(write.slice(input, dim, last, 1));
  }
  if (op.getExclusive())
    lasts = combineTensors(lasts, lastInputs, {});
  Value isThere;
  Values before = exclusiveTotals(std::move(lasts), isThere);
  Values results = combineTensors(before, local, isThere);
  results.resize(op.getNumResults()); // without the flags
  return results;
}

FailureOr<SmallVector<Value>> ScanOp::partition(dist::PartitionContext &context) {
  const AxisList &axes = context.getFactorAxes()[getDim()];
  if (sharding::sizeOf(axes) == 1 || llvm::is_contained(getShape(), 0))
    return context.cloneOp();
  return CutScan(*this, context).run();
}
