//===- RuleTable.h - Sharding rules shared by structure ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program of many layers repeats few different ops: ops that are equal in everything
// that a rule depends on share one rule, which is derived once.
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

/// The rules of ops, kept as long as the table. Neither copied nor moved, since rules are pointed
/// to.
class RuleTable {
public:
  RuleTable() = default;
  RuleTable(const RuleTable &) = delete;
  RuleTable &operator=(const RuleTable &) = delete;

  /// The result of `getShardingRule`; null if the op has no rule, with the reason in `why`.
  const sharding::ShardingRule *lookup(mlir::Operation *op, std::string *why = nullptr);
  /// The same; for an op without a rule one that cuts nothing.
  const sharding::ShardingRule &lookupOrWhole(mlir::Operation *op);
  /// The rule between two tensors with equal shardings.
  const sharding::ShardingRule &identity(mlir::RankedTensorType type);
  /// Keeps another rule, such as that of an op without one.
  const sharding::ShardingRule &keep(sharding::ShardingRule rule);

private:
  std::deque<sharding::ShardingRule> rules;
  AddressMap<const sharding::ShardingRule *> known;
};

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_RULETABLE_H
