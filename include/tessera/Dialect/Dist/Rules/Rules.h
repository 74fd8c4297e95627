//===- Rules.h - Reading a sharding rule off an op --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What may be cut in an op, and what its results then are, as it says by
// ShardingRuleOpInterface. Linalg ops are read off their indexing maps, iterator
// types and bodies; ops of other dialects without maps have a rule by hand.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_RULES_H
#define TESSERA_DIALECT_DIST_RULES_RULES_H

#include "tessera/Sharding/ShardingRule.h"

#include "mlir/IR/Operation.h"

#include <optional>

namespace mlir {
class OpBuilder;
namespace linalg {
class LinalgOp;
}
namespace tensor {
class PadOp;
}
} // namespace mlir

namespace tessera::dist {

/// The rule of an op, its operands and results in the op's order (what is no ranked tensor has no
/// dimensions). Empty when the op has no rule and must be replicated; `why` then says the reason.
std::optional<sharding::ShardingRule> getShardingRule(mlir::Operation *op,
                                                      std::string *why = nullptr);

/// Attaches ShardingRuleOpInterface to the ops of `linalg`, `tensor`, `arith`, `math` and `dist`,
/// which must be loaded. The dist dialect does so when a context loads it.
void attachShardingRules(mlir::MLIRContext *context);

/// A rule that cuts nothing: every dimension is a factor of its own that must be whole.
sharding::ShardingRule replicatedRule(mlir::Operation *op);

/// Whether the op maps contributions to contributions: where each of `operands` is the `kind`-
/// reduction of what devices hold, and every other operand is whole, so is the result of what the
/// op makes of them. For sums this is joint linearity, read off the body; a reduction's
/// accumulators belong to the operands then. Rounding to fewer bits is not linear: contributions
/// stay wide until they are reduced, unless the op is marked (Rounding.h). Ops that only move elements pass every kind.
///
///   add %a, %b              {0, 1}, not {0}: the other operand would be counted n times
///   multiply %a, %b         {0} or {1}, not {0, 1}
///   reduce sum %a to %init  {0, 1}
///
/// Operands of which nobody knows whether they are contributions are `unknown`: they are taken for
/// what makes the op right, if anything does.
bool passesPartial(mlir::Operation *op, sharding::ReduceKind kind,
                   llvm::ArrayRef<int64_t> operands, llvm::ArrayRef<int64_t> unknown = {});
/// The operands, among them some of `partial`, that should be contributions for the result to be
/// one: with as many of `partial` as possible, then the fewest others. Empty when there are none.
llvm::SmallVector<int64_t> operandsToPass(mlir::Operation *op, sharding::ReduceKind kind,
                                          llvm::ArrayRef<int64_t> partial);

/// Whether an op makes its result out of nothing but scalars: a constant, a splat, a fill, an iota.
/// Any part of it is cheaper to make again than to move. False for null.
bool isMadeOfScalars(mlir::Operation *op);

/// Whether a value is a fill or splat of the identity of a reduction: as contributions of all
/// devices or as the whole, it is the same. `avg` has none.
bool isIdentityFill(mlir::Value value, sharding::ReduceKind kind);

/// `local`, a device's part of what a pad reads, padded in the dimensions that `result` leaves
/// whole: those that are cut got their padding with their window. `padding` is the local value of a
/// pad value that is not constant.
mlir::Value padWholeDims(mlir::OpBuilder &b, mlir::tensor::PadOp op, mlir::Value local,
                         const sharding::TensorSharding &result, mlir::Value padding = {});

/// How result `index` of a linalg op combines over its reduction loops, when its body says so.
std::optional<sharding::ReduceKind> matchReductionKind(mlir::linalg::LinalgOp op, unsigned index);
/// The body op that combines the accumulator of result `index` with a new value, or null.
mlir::Operation *matchCombiner(mlir::linalg::LinalgOp op, unsigned index);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_RULES_H
