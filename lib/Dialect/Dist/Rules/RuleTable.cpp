//===- RuleTable.cpp - Sharding rules shared by structure -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/RuleTable.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

const ShardingRule &RuleTable::keep(ShardingRule rule) {
  rules.push_back(std::move(rule));
  return rules.back();
}

const ShardingRule &RuleTable::identity(RankedTensorType type) {
  const ShardingRule *&rule = known[{type.getAsOpaquePointer()}];
  if (!rule)
    rule = &keep(identityRule(shapeOf(type)));
  return *rule;
}

const ShardingRule *RuleTable::lookup(Operation *op, std::string *why) {
  auto distributed = dyn_cast<ShardingRuleOpInterface>(op);
  AddressKey key{op->getName().getAsOpaquePointer()};
  for (Type type : op->getOperandTypes())
    key.push_back(type.getAsOpaquePointer());
  for (Type type : op->getResultTypes())
    key.push_back(type.getAsOpaquePointer());
  bool shared = distributed && distributed.addToRuleKey(key);
  if (shared)
    if (auto it = known.find(key); it != known.end())
      return it->second;
  std::optional<ShardingRule> rule = getShardingRule(op, why);
  if (!rule)
    return nullptr;
  const ShardingRule &kept = keep(std::move(*rule));
  if (shared)
    known.emplace(std::move(key), &kept);
  return &kept;
}

const ShardingRule &RuleTable::lookupOrWhole(Operation *op) {
  if (const ShardingRule *rule = lookup(op))
    return *rule;
  AddressKey key{nullptr};
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())}) {
    for (Type type : types)
      key.push_back(type.getAsOpaquePointer());
    key.push_back(nullptr);
  }
  const ShardingRule *&rule = known[std::move(key)];
  if (!rule)
    rule = &keep(replicatedRule(op));
  return *rule;
}
