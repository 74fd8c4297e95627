//===- Rules.h - Reading a sharding rule off an op --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What may be cut in an op, and what its results then are. Linalg ops are read
// off their indexing maps, iterator types and bodies; ops without maps have a
// rule by hand, a file a dialect: to add one, write its function there and name
// it in that file's table.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_RULES_H
#define TESSERA_DIALECT_DIST_RULES_RULES_H

#include "tessera/Sharding/ShardingRule.h"

#include "mlir/IR/Operation.h"

#include <optional>

namespace mlir::linalg {
class LinalgOp;
}

namespace tessera::dist {

/// The rule of an op, its operands and results in the op's order (what is no ranked tensor has no
/// dimensions). Empty when the op has no rule and must be replicated; `why` then says the reason.
std::optional<sharding::ShardingRule> getShardingRule(mlir::Operation *op,
                                                      std::string *why = nullptr);

/// One dialect's rules.
std::optional<sharding::ShardingRule> getLinalgRule(mlir::linalg::LinalgOp op);
std::optional<sharding::ShardingRule> getTensorRule(mlir::Operation *op);

/// A rule that cuts nothing: every dimension is a factor of its own that must be whole.
sharding::ShardingRule replicatedRule(mlir::Operation *op);

/// How result `index` of a linalg op combines over its reduction loops, when its body says so.
std::optional<sharding::ReduceKind> matchReductionKind(mlir::linalg::LinalgOp op, unsigned index);
/// The body op that combines the accumulator of result `index` with a new value, or null.
mlir::Operation *matchCombiner(mlir::linalg::LinalgOp op, unsigned index);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_RULES_H
