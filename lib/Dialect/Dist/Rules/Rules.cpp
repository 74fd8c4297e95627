//===- Rules.cpp - Reading a sharding rule off an op -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Adds one factor a dimension of every tensor in `types`.
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
  if (!op)
    return false;
  if (isa<arith::ConstantOp, tensor::EmptyOp, tensor::SplatOp>(op))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp->getNumResults() == 1 &&
         linalgOp.getNumParallelLoops() == linalgOp.getNumLoops() &&
         llvm::none_of(linalgOp.getDpsInputs(),
                       [](Value input) { return isa<RankedTensorType>(input.getType()); }) &&
         linalgOp.getRegionOutputArgs().front().use_empty() &&
         linalgOp.getDpsInits().front().getDefiningOp<tensor::EmptyOp>();
}

ShardingRule dist::replicatedRule(Operation *op) {
  ShardingRule rule;
  addWholeDims(op->getOperandTypes(), rule.operands, rule);
  addWholeDims(op->getResultTypes(), rule.results, rule);
  rule.accumulatorOf.assign(op->getNumOperands(), -1);
  return rule;
}

std::optional<ShardingRule> dist::getShardingRule(Operation *op, std::string *why) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    if (auto rule = getLinalgRule(linalgOp))
      return rule;
  if (isa<tensor::TensorDialect>(op->getDialect()))
    if (auto rule = getTensorRule(op))
      return rule;
  if (isa<ShardTensorOp>(op))
    return identityRule(shapeOf(op->getResult(0).getType()));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (isa<RankedTensorType>(constant.getType())) {
      // A splat has any part of itself; other constants are held whole and sliced.
      if (!isa<SplatElementsAttr>(constant.getValue()))
        return replicatedRule(op);
      ShardingRule rule = identityRule(shapeOf(constant.getType()));
      rule.operands.clear();
      rule.accumulatorOf.clear();
      return rule;
    }
  }
  bool hasTensor = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
                   llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  if (!hasTensor)
    return replicatedRule(op);
  if (why)
    *why = ("'" + op->getName().getStringRef() + "' has no sharding rule").str();
  return std::nullopt;
}
