//===- RuleTable.h - Sharding rules shared by structure ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program of many layers says the same few things again and again: ops that
// differ in nothing that a rule reads share one rule, which is then read off
// once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_RULETABLE_H
#define TESSERA_DIALECT_DIST_RULES_RULETABLE_H

#include "tessera/Sharding/ShardingRule.h"
#include "tessera/Support/AddressMap.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <deque>

namespace tessera::dist {

/// Rules of ops, each kept as long as the table. Neither copied nor moved: rules are pointed to.
class RuleTable {
public:
  RuleTable() = default;
  RuleTable(const RuleTable &) = delete;
  RuleTable &operator=(const RuleTable &) = delete;

  /// What `getShardingRule` says of the op; null where it says nothing, with the reason in `why`.
  const sharding::ShardingRule *lookup(mlir::Operation *op, std::string *why = nullptr);
  /// The same, and for an op without a rule one that cuts nothing.
  const sharding::ShardingRule &lookupOrWhole(mlir::Operation *op);
  /// The rule between two tensors of equal sharding.
  const sharding::ShardingRule &identity(mlir::RankedTensorType type);
  /// Keeps another rule, as of an op that has none.
  const sharding::ShardingRule &keep(sharding::ShardingRule rule);

private:
  std::deque<sharding::ShardingRule> rules;
  AddressMap<const sharding::ShardingRule *> known;
};

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_RULETABLE_H
