//===- OpShardings.cpp - An op's cut, read back from the IR ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/OpShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

OpShardings dist::deriveOpShardings(Operation *op, const MeshTable &meshes) {
  OpShardings result;
  std::optional<sharding::ShardingRule> rule = getShardingRule(op);
  result.rule = rule ? std::move(*rule) : replicatedRule(op);
  auto lies = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    ShardingAttr attr = type ? getSharding(value) : ShardingAttr();
    if (!attr)
      return TensorSharding::replicated(type ? type.getRank() : 0);
    return resolveVerified(attr, meshes, type);
  };
  for (Value value : llvm::concat<Value>(llvm::to_vector<4>(op->getResults()),
                                         llvm::to_vector<4>(op->getOperands())))
    if (isa<RankedTensorType>(value.getType()))
      if (ShardingAttr attr = getSharding(value)) {
        result.mesh = attr.getMesh();
        break;
      }
  std::vector<TensorSharding> results, operands;
  for (Value value : op->getResults())
    results.push_back(lies(value));
  for (Value value : op->getOperands())
    operands.push_back(lies(value).withoutPartial());
  result.axes = sharding::deriveFactorAxes(result.rule, results, operands);
  for (auto [index, value] : llvm::enumerate(op->getOperands())) {
    if (!result.mesh || !isa<RankedTensorType>(value.getType())) {
      result.operands.push_back({});
      continue;
    }
    result.operands.push_back(ShardingAttr::get(
        result.mesh, meshes.get(result.mesh),
        sharding::operandSharding(result.rule, index, result.axes), op->getContext()));
  }
  return result;
}
