//===- ElementwiseRules.cpp - Rules of constants and elementwise ops ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

namespace {

/// Any part of a splat is a splat; other constants are held whole and sliced.
struct ConstantModel : ShardingRuleOpInterface::ExternalModel<ConstantModel, arith::ConstantOp> {
  static SplatElementsAttr getSplat(Operation *op) {
    return dyn_cast<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue());
  }

  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    if (!getSplat(op))
      return replicatedRule(op);
    RuleBuilder builder(op);
    for (auto [dim, extent] : llvm::enumerate(shapeOf(op->getResult(0).getType())))
      builder.result(0, dim, builder.factor(extent));
    return builder.take();
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    key.push_back(getSplat(op) ? op->getName().getAsOpaquePointer() : nullptr);
    return true;
  }
  bool isMadeOfScalars(Operation *) const { return true; }
  int64_t getOperationsPerIteration(Operation *) const { return 0; }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    SplatElementsAttr splat = getSplat(op);
    if (!splat)
      return context.cloneOp();
    return SmallVector<Value>{arith::ConstantOp::create(
        context.builder, op->getLoc(), splat.resizeSplat(context.getLocalType(0)))};
  }
};

/// An op that computes each element from those at the same index. Normalization rewrites such ops
/// on tensors to linalg ops, so they appear only in the local view and in files that skip it. The
/// model serves all such ops of `arith` and `math`; only unused defaults would need its class.
struct ElementwiseModel : ShardingRuleOpInterface::ExternalModel<ElementwiseModel, arith::AddFOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    for (auto [dim, extent] : llvm::enumerate(type ? type.getShape() : ArrayRef<int64_t>())) {
      int64_t factor = builder.factor(extent);
      builder.result(0, dim, factor);
      for (auto [index, operand] : llvm::enumerate(op->getOperandTypes()))
        if (isa<RankedTensorType>(operand))
          builder.operand(index, dim, factor);
    }
    return builder.take();
  }
  bool addToRuleKey(Operation *, AddressKey &) const { return true; }
  bool passesPartial(Operation *op, sharding::ReduceKind kind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t> unknown) const {
    return kind == sharding::ReduceKind::sum && passesSumElementwise(op, operands, unknown);
  }
  bool isEquivariant(Operation *, int64_t) const { return true; }
};

/// A constraint computes nothing; its operand and its result agree in every dimension.
struct ShardTensorModel : ShardingRuleOpInterface::ExternalModel<ShardTensorModel, ShardTensorOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    return identityRule(shapeOf(op->getResult(0).getType()));
  }
  bool addToRuleKey(Operation *, AddressKey &) const { return true; }
  int64_t getOperationsPerIteration(Operation *) const { return 0; }
  bool isEquivariant(Operation *, int64_t) const { return true; }
};

} // namespace

void dist::attachElementwiseRules(MLIRContext *context) {
  arith::ConstantOp::attachInterface<ConstantModel>(*context);
  ShardTensorOp::attachInterface<ShardTensorModel>(*context);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (isa<arith::ArithDialect, math::MathDialect>(name.getDialect()) &&
        name.hasTrait<OpTrait::Elementwise>() && name.hasTrait<OpTrait::OneResult>())
      name.attachInterface<ElementwiseModel>();
}
