//===- Rules.cpp - Deriving the sharding rule of an op --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "Models.h"

#include "tessera/Dialect/Dist/IR/ShardingInterfaces.cpp.inc"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Adds one factor per dimension of every tensor in `types`.
static void addWholeDims(TypeRange types, std::vector<TensorRule> &tensors, ShardingRule &rule) {
  for (Type type : types) {
    TensorRule dims;
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (int64_t extent : tensor.getShape()) {
        dims.push_back({{static_cast<int64_t>(rule.factors.size())}});
        rule.factors.push_back({extent, FactorKind::replicate, sharding::ReduceKind::sum});
      }
    tensors.push_back(std::move(dims));
  }
}

bool dist::isMadeOfScalars(Operation *op) {
  auto distributed = dyn_cast_or_null<ShardingRuleOpInterface>(op);
  return distributed && distributed.isMadeOfScalars();
}

bool dist::isInAllTensors(Operation *op, int64_t factor) {
  std::optional<ShardingRule> rule = getShardingRule(op);
  if (!rule || rule->factors[factor].kind != FactorKind::parallel)
    return false;
  auto isDimOf = [&](const TensorRule &tensor) {
    return tensor.empty() || llvm::any_of(tensor, [&](const DimRule &dim) {
             return llvm::equal(dim.factors, ArrayRef<int64_t>{factor}) && !dim.isWindow &&
                    !dim.segment;
           });
  };
  return llvm::all_of(rule->operands, isDimOf) && llvm::all_of(rule->results, isDimOf);
}

ShardingRule dist::replicatedRule(Operation *op) {
  ShardingRule rule;
  addWholeDims(op->getOperandTypes(), rule.operands, rule);
  addWholeDims(op->getResultTypes(), rule.results, rule);
  rule.accumulatorOf.assign(op->getNumOperands(), -1);
  return rule;
}

std::optional<ShardingRule> dist::getShardingRule(Operation *op, std::string *why) {
  if (auto distributed = dyn_cast<ShardingRuleOpInterface>(op))
    if (std::optional<ShardingRule> rule = distributed.getShardingRule())
      return rule;
  bool hasTensor = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
                   llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  if (!hasTensor)
    return replicatedRule(op);
  if (why)
    *why = ("'" + op->getName().getStringRef() + "' has no sharding rule").str();
  return std::nullopt;
}

void dist::attachShardingRules(MLIRContext *context) {
  attachElementwiseRules(context);
  attachLinalgRules(context);
  attachRearrangeRules(context);
  attachSliceRules(context);
  attachTensorRules(context);
}
