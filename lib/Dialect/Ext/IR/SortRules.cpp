//===- SortRules.cpp - Distribution of sorts ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lines are sorted independently. If the sorted dimension itself is sharded, and
//
//   * all elements are needed: lines are made whole, each on one device if another
//     dimension can be sharded instead (an all-to-all before the sort and one after),
//     else on every device, which keeps its part;
//   * the first k are needed: each device finds those of its part, and the first k of
//     all are among these n * k, which every device gets.
//
// Candidates are in device order, so that the sort is stable.
//
//===----------------------------------------------------------------------===//

#include "Local.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::AxisList;
using sharding::TensorSharding;

std::optional<sharding::ShardingRule> SortOp::getShardingRule() {
  dist::RuleBuilder builder(*this);
  for (auto [dim, extent] : llvm::enumerate(getShape())) {
    int64_t factor = builder.factor(extent), wanted = factor;
    if (dim == getDim() && getLimit())
      wanted = builder.factor(getCount(), sharding::FactorKind::replicate);
    for (unsigned index = 0; index < getNumOperands(); ++index)
      builder.operand(index, dim, factor).result(index, dim, wanted);
  }
  return builder.take();
}

int64_t SortOp::getOperationsPerIteration() {
  int64_t depth = std::max<int64_t>(2, std::min(getShape()[getDim()], getCount() + 1));
  return static_cast<int64_t>(getKeys()) * llvm::Log2_64_Ceil(depth);
}

/// The factor of a dimension of the operands.
static unsigned factorOf(SortOp op, unsigned dim) {
  return dim + (op.getLimit() && dim > op.getDim() ? 1 : 0);
}

bool SortOp::isEquivariant(int64_t factor) {
  auto dims = llvm::seq<unsigned>(0, getShape().size());
  return llvm::any_of(
      dims, [&](unsigned dim) { return dim != getDim() && factorOf(*this, dim) == factor; });
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

namespace {
struct MoveCost {
  int64_t wireBytes = 0;
  double seconds = 0;
  MoveCost operator+(const MoveCost &other) const {
    return {wireBytes + other.wireBytes, seconds + other.seconds};
  }
};
} // namespace

/// The cost of resharding all operands, of `shape`.
static MoveCost costOfMove(SortOp op, const std::vector<int64_t> &shape, const TensorSharding &from,
                           const TensorSharding &to, const sharding::Mesh &mesh,
                           sharding::ReshardPlanner &planner) {
  MoveCost cost;
  for (Value input : op.getInputs()) {
    const sharding::ReshardPlan &plan =
        planner.plan({mesh, shape, dist::bytesPerElement(getElementTypeOrSelf(input.getType())),
                      sharding::canonical(from), sharding::canonical(to)});
    cost = cost + MoveCost{plan.traffic.wireBytes, plan.seconds};
  }
  return cost;
}

/// A sharding with whole lines: another dimension sharded by the axes as well, or none. The choice
/// is by bytes: gathered lines are also sorted by every device. Adds the costs of both moves.
static TensorSharding planWholeLines(SortOp op, const TensorSharding &cut,
                                     const sharding::Mesh &mesh, sharding::ReshardPlanner &planner,
                                     double &seconds) {
  std::vector<int64_t> shape = op.getShape().vec();
  TensorSharding best = cut;
  best.dims[op.getDim()].clear();
  MoveCost least = costOfMove(op, shape, cut, best, mesh, planner);
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    TensorSharding other = cut;
    llvm::append_range(other.dims[dim], other.dims[op.getDim()]);
    if (dim == op.getDim() || shape[dim] < sharding::sizeOf(other.dims[dim]))
      continue;
    other.dims[op.getDim()].clear();
    MoveCost both = costOfMove(op, shape, cut, other, mesh, planner) +
                    costOfMove(op, shape, other, cut, mesh, planner);
    if (both.wireBytes < least.wireBytes) {
      least = both;
      best = other;
    }
  }
  seconds = least.seconds;
  return best;
}

/// The shape of the candidates of all devices for the first k of each line.
static std::vector<int64_t> shapeOfCandidates(SortOp op, const AxisList &axes) {
  std::vector<int64_t> shape = op.getShape().vec();
  int64_t devices = sharding::sizeOf(axes);
  shape[op.getDim()] =
      devices * std::min(op.getCount(), sharding::ceilDiv(shape[op.getDim()], devices));
  return shape;
}

double SortOp::getCommunicationSeconds(const sharding::FactorAxes &axes, const sharding::Mesh &mesh,
                                       sharding::ReshardPlanner &planner) {
  if (axes[getDim()].empty() || llvm::is_contained(getShape(), 0))
    return 0;
  TensorSharding cut = TensorSharding::replicated(getShape().size());
  for (unsigned dim = 0; dim < cut.dims.size(); ++dim)
    cut.dims[dim] = axes[factorOf(*this, dim)];
  double seconds = 0;
  if (!getLimit()) {
    planWholeLines(*this, cut, mesh, planner, seconds);
    return seconds;
  }
  TensorSharding whole = cut;
  whole.dims[getDim()].clear();
  return costOfMove(*this, shapeOfCandidates(*this, cut.dims[getDim()]), cut, whole, mesh, planner)
      .seconds;
}

//===----------------------------------------------------------------------===//
// A device's part
//===----------------------------------------------------------------------===//

static RankedTensorType withShape(Value value, ArrayRef<int64_t> shape) {
  return cast<RankedTensorType>(value.getType()).clone(shape);
}

static SmallVector<Value> sortLocally(SortOp op, OpBuilder &b, ValueRange inputs, int64_t keys,
                                      std::optional<int64_t> limit) {
  IntegerAttr count = limit ? b.getI64IntegerAttr(*limit) : IntegerAttr();
  auto local = SortOp::create(b, op.getLoc(), op.getDimensionAttr(), b.getI64IntegerAttr(keys),
                              op.getDescendingAttr(), count, inputs);
  return SmallVector<Value>(local.getResults());
}

/// Sorts whole lines on one device or on all, and moves them back.
static SmallVector<Value> sortWholeLines(SortOp op, dist::PartitionContext &context) {
  TensorSharding cut = context.getOperandSharding(0);
  double seconds = 0;
  TensorSharding lines = planWholeLines(op, cut, context.getMesh(), context.getPlanner(), seconds);
  auto typeOf = [&](unsigned index) {
    return cast<RankedTensorType>(op->getOperand(index).getType());
  };
  SmallVector<Value> values;
  for (unsigned index = 0; index < op.getNumOperands(); ++index)
    values.push_back(context.reshard(context.getOperand(index), typeOf(index), cut, lines));
  values = sortLocally(op, context.builder, values, op.getKeys(), std::nullopt);
  for (auto [index, value] : llvm::enumerate(values))
    value = context.reshard(value, typeOf(index), lines, cut);
  return values;
}

/// A key that sorts elements last that do not exist: element i of a line does if i % `part` +
/// i / `part` * `step` is less than `extent`. Parts begin at `begin`.
static Value existence(SortOp op, OpBuilder &b, ArrayRef<int64_t> shape, Value begin, int64_t part,
                       int64_t step, int64_t extent) {
  Location loc = op.getLoc();
  // False comes first.
  auto predicate = op.getDescending() ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge;
  return Local{b, loc}.pointwise({}, {}, shape, {b.getI1Type()}, [&](OpBuilder &inner, ValueRange) {
    auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(inner, loc, value); };
    Value i = linalg::IndexOp::create(inner, loc, op.getDim());
    Value device = arith::DivUIOp::create(inner, loc, i, number(part));
    Value own = arith::RemUIOp::create(inner, loc, i, number(part));
    Value before = arith::MulIOp::create(inner, loc, device, number(step));
    Value at = arith::AddIOp::create(inner, loc, begin ? begin : number(0),
                                     arith::AddIOp::create(inner, loc, before, own));
    return SmallVector<Value>{arith::CmpIOp::create(inner, loc, predicate, at, number(extent))};
  })[0];
}

/// Sorts each part for its first elements, then these. Undefined elements of an uneven part are
/// sorted last by an additional first key, which each device computes.
static SmallVector<Value> sortCandidates(SortOp op, dist::PartitionContext &context) {
  OpBuilder &b = context.builder;
  unsigned dim = op.getDim();
  TensorSharding cut = context.getOperandSharding(0), whole = cut;
  whole.dims[dim].clear();
  SmallVector<Value> values;
  for (unsigned index = 0; index < op.getNumOperands(); ++index)
    values.push_back(context.getOperand(index));
  auto shapeOf = [&]() { return cast<RankedTensorType>(values[0].getType()).getShape().vec(); };
  std::vector<int64_t> part = shapeOf(), candidates = shapeOfCandidates(op, cut.dims[dim]);
  int64_t extent = op.getShape()[dim], count = std::min(op.getCount(), part[dim]);
  auto sort = [&](Value key, int64_t limit) {
    if (key)
      values.insert(values.begin(), key);
    values = sortLocally(op, b, values, op.getKeys() + (key ? 1 : 0), limit);
    if (key)
      values.erase(values.begin());
  };
  bool isUneven = context.isUneven(dim);
  Value key;
  if (isUneven) {
    Value begin = arith::MulIOp::create(b, op.getLoc(), context.getDeviceIndex(cut.dims[dim]),
                                        arith::ConstantIndexOp::create(b, op.getLoc(), part[dim]));
    key = existence(op, b, part, begin, part[dim], 0, extent);
  }
  sort(key, count);
  for (Value &value : values)
    value = context.reshard(value, withShape(value, candidates), cut, whole);
  if (isUneven)
    key = existence(op, b, shapeOf(), {}, count, part[dim], extent);
  sort(key, op.getCount());
  return values;
}

FailureOr<SmallVector<Value>> SortOp::partition(dist::PartitionContext &context) {
  const AxisList &axes = context.getFactorAxes()[getDim()];
  if (sharding::sizeOf(axes) == 1 || llvm::is_contained(getShape(), 0)) // limit 0 as well
    return context.cloneOp();
  return getLimit() ? sortCandidates(*this, context) : sortWholeLines(*this, context);
}
