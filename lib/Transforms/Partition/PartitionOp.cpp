//===- PartitionOp.cpp - Ops on local shapes ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op provides its own local form (ShardingRuleOpInterface); this file implements
// the context that it uses.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Dialect/Dist/Rules/Windows.h"
#include "tessera/Sharding/Selections.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::FactorKind;
using sharding::TensorSharding;

/// The start of a device's part if parts have `chunk` elements.
static Value beginOf(OpBuilder &b, Location loc, Value device, int64_t chunk) {
  return arith::MulIOp::create(b, loc, device, arith::ConstantIndexOp::create(b, loc, chunk));
}

class Partitioner::OpContext : public PartitionContext {
public:
  OpContext(Partitioner &partitioner, Operation *op, Part &part)
      : PartitionContext(op, part.builder), partitioner(partitioner), part(part),
        own(partitioner.shardings.of(op)) {}

  const sharding::ShardingRule &getRule() const override { return own.rule; }
  const sharding::FactorAxes &getFactorAxes() const override { return own.sharding.factors; }
  TensorSharding getOperandSharding(unsigned index) const override {
    return resolveVerified(own.operands[index], partitioner.meshes,
                           op->getOperand(index).getType());
  }
  TensorSharding getResultSharding(unsigned index) const override {
    return partitioner.shardingOf(op->getResult(index));
  }
  Value getOperand(unsigned index) const override { return getLocal(op->getOperand(index)); }
  Value getLocal(Value global) const override { return part.mapping.lookup(global); }
  RankedTensorType getLocalType(unsigned index) const override {
    return partitioner.localTypeOf(op->getResult(index));
  }

  Operation *clone() override {
    Operation *local = builder.clone(*op, part.mapping);
    local->removeAttr(DistDialect::kOpSharding);
    for (OpResult result : local->getResults())
      if (isa<RankedTensorType>(result.getType()))
        result.setType(getLocalType(result.getResultNumber()));
    return local;
  }

  FailureOr<SmallVector<Value>> cloneOp() override {
    for (auto [factor, info] : llvm::enumerate(own.rule.factors))
      if (info.kind == FactorKind::reduction && isUneven(factor))
        return op->emitError() << "'" << op->getName() << "' reduces " << info.size
                               << " iterations over "
                               << sharding::sizeOf(own.sharding.factors[factor])
                               << " devices, which leaves an uneven part that it does not mask; "
                               << "implement 'partition' of ShardingRuleOpInterface, or cut a "
                                  "dimension that the devices divide evenly";
    return SmallVector<Value>(clone()->getResults());
  }

  bool isUneven(unsigned factor) const override {
    return own.sharding.windowOf(factor) ||
           own.rule.factors[factor].size % sharding::sizeOf(own.axesOf(factor)) != 0;
  }

  Value getGlobalIteration(OpBuilder &at, Location loc, unsigned factor, Value local) override {
    sharding::DimLayout iterations = sharding::factorLayout(own.rule, own.sharding, factor);
    auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(at, loc, value); };
    Value begin =
        beginOf(at, loc, partitioner.axisIndex(part, own.mesh, iterations.axes), iterations.step);
    if (iterations.offset != 0)
      begin = arith::AddIOp::create(at, loc, begin, number(iterations.offset));
    if (iterations.divisor != 1)
      begin = arith::CeilDivSIOp::create(at, loc, begin, number(iterations.divisor));
    if (iterations.stride == 1) {
      if (iterations.begin != 0) // of a selection
        begin = arith::AddIOp::create(at, loc, begin, number(iterations.begin));
      return arith::AddIOp::create(at, loc, local, begin);
    }
    Value counted = arith::AddIOp::create(at, loc, local, begin);
    Value global = arith::MulIOp::create(at, loc, counted, number(iterations.stride));
    return arith::AddIOp::create(at, loc, global, number(iterations.begin));
  }

  Value getMaskedOperand(unsigned index, TypedAttr fill) override {
    SmallVector<int64_t> dims;
    for (auto [dim, rule] : llvm::enumerate(own.rule.operands[index]))
      if (rule.factors.size() == 1 && isUneven(rule.factors[0]) &&
          own.rule.factors[rule.factors[0]].kind == FactorKind::reduction)
        dims.push_back(dim);
    return dims.empty() ? getOperand(index) : mask(index, dims, fill);
  }

  Value getCombined(Value local, ArrayRef<int64_t> factors, int64_t reduced,
                    sharding::ReduceKind kind) override {
    SmallVector<int64_t> shape;
    TensorSharding whole = TensorSharding::replicated(factors.size());
    for (auto [dim, factor] : llvm::enumerate(factors)) {
      shape.push_back(own.rule.factors[factor].size);
      whole.dims[dim] = own.axesOf(factor);
    }
    auto global = RankedTensorType::get(shape, getElementTypeOrSelf(local.getType()));
    TensorSharding contributed = whole;
    for (const sharding::AxisRef &axis : own.axesOf(reduced))
      contributed.partial.push_back({axis, kind});
    return partitioner.moveInside(part, op, local, global, own.mesh, contributed, whole,
                                  op->getName().getStringRef() + " combines its parts");
  }

  const sharding::Mesh &getMesh() const override { return partitioner.meshes.get(own.mesh); }
  sharding::ReshardPlanner &getPlanner() const override { return partitioner.planner; }
  Value getDeviceIndex(const sharding::AxisList &axes) override {
    return partitioner.axisIndex(part, own.mesh, axes);
  }
  Value reshard(Value local, RankedTensorType global, const TensorSharding &source,
                const TensorSharding &target) override {
    return partitioner.moveInside(part, op, local, global, own.mesh, source, target,
                                  "required by " + op->getName().getStringRef());
  }

private:
  /// An operand with `fill` at indices of `dims` beyond the tensor.
  Value mask(unsigned operand, ArrayRef<int64_t> dims, TypedAttr fill) {
    OpBuilder &b = builder;
    Location loc = op->getLoc();
    Value local = getOperand(operand);
    auto type = cast<RankedTensorType>(local.getType());
    auto global = cast<RankedTensorType>(op->getOperand(operand).getType());
    TensorSharding sharding = getOperandSharding(operand);
    Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    SmallVector<std::pair<int64_t, Value>> begins;
    for (int64_t d : dims)
      begins.push_back({d, beginOf(b, loc, partitioner.axisIndex(part, own.mesh, sharding.dims[d]),
                                   type.getDimSize(d))});
    auto body = [&](OpBuilder &body, Location loc, ValueRange arguments) {
      Value valid;
      for (auto [d, begin] : begins) {
        Value index =
            arith::AddIOp::create(body, loc, linalg::IndexOp::create(body, loc, d), begin);
        Value inside =
            arith::CmpIOp::create(body, loc, arith::CmpIPredicate::slt, index,
                                  arith::ConstantIndexOp::create(body, loc, global.getDimSize(d)));
        valid = valid ? arith::AndIOp::create(body, loc, valid, inside).getResult() : inside;
      }
      Value beyond = arith::ConstantOp::create(
          body, loc, fill ? fill : body.getZeroAttr(type.getElementType()));
      Value chosen = arith::SelectOp::create(body, loc, valid, arguments[0], beyond);
      linalg::YieldOp::create(body, loc, chosen);
    };
    auto generic = linalg::GenericOp::create(
        b, loc, type, local, init, ArrayRef<AffineMap>{identity, identity}, iterators, body);
    partitioner.annotate(
        generic.getResult(0),
        ShardingAttr::get(own.mesh, partitioner.meshes.get(own.mesh), sharding, b.getContext()),
        global);
    return generic.getResult(0);
  }

  Partitioner &partitioner;
  Part &part;
  const ShardedOp &own;
};

/// Checks that an operand that must be a filled window is one.
static LogicalResult checkFill(Operation *op, unsigned index, ShardingAttr needs) {
  auto distributed = dyn_cast<ShardingRuleOpInterface>(op);
  if (!distributed || !needs || needs.getWindows().empty())
    return success();
  Attribute fill = distributed.getWindowFill(index);
  if (!fill || fillOf(op->getOperand(index)) == fill)
    return success();
  return op->emitError() << "operand " << index << " is a window that is not filled with " << fill
                         << ", as '" << op->getName() << "' needs it; run dist-plan-reshards first";
}

/// Checks that the operands of an op have the shardings that its rule and distribution need.
LogicalResult Partitioner::checkOperands(Operation *op) {
  const ShardedOp &own = shardings.of(op);
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    ShardingAttr has = isa<RankedTensorType>(operand.getType()) ? getSharding(operand) : nullptr;
    ShardingAttr needs = own.operands[index];
    if (failed(checkFill(op, index, needs)))
      return failure();
    if (!has || !needs || has == needs)
      continue;
    if (has.getMesh() == needs.getMesh()) {
      TensorSharding from = shardingOf(operand);
      TensorSharding to = resolveVerified(needs, meshes, operand.getType());
      if (from == to || (isa<tensor::ExtractSliceOp>(op) && sharding::hasSelection(from, to)))
        continue;
    }
    InFlightDiagnostic error = op->emitError();
    error << "operand " << index << " has " << has << ", but '" << op->getName() << "' needs "
          << needs;
    if (OpShardingAttr attr = getOpSharding(op))
      error << " where it is distributed by " << attr;
    else
      error << ", since it has no '" << DistDialect::kOpSharding << "'";
    return error << "; run dist-insert-reshards first";
  }
  return success();
}

LogicalResult Partitioner::lowerOnTensors(Operation *op, Part &part) {
  if (failed(checkOperands(op)))
    return failure();
  OpContext context(*this, op, part);
  auto distributed = dyn_cast<ShardingRuleOpInterface>(op);
  FailureOr<SmallVector<Value>> locals =
      distributed ? distributed.partition(context) : context.cloneOp();
  if (failed(locals))
    return failure();
  // An existing value, such as an operand that needs no padding, has its own sharding.
  auto isNew = llvm::map_to_vector(*locals, [](Value local) {
    Operation *maker = local.getDefiningOp();
    return maker && !maker->hasAttr(DistDialect::kGlobalType);
  });
  for (auto [global, local, isNew] : llvm::zip_equal(op->getResults(), *locals, isNew)) {
    if (isNew)
      define(part, global, local);
    else
      part.mapping.map(global, local);
  }
  return success();
}
