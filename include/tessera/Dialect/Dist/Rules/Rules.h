//===- Rules.h - Deriving the sharding rule of an op ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sharding rule of an op, through ShardingRuleOpInterface: what can be cut, and the
// resulting shardings. Rules of linalg ops are derived from indexing maps, iterator
// types and bodies; ops of other dialects without maps have hand-written rules.
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

/// The rule of an op, with operands and results in the op's order (values that are not ranked
/// tensors have no dimensions). Empty if the op has no rule and must be replicated; `why` then has
/// the reason.
std::optional<sharding::ShardingRule> getShardingRule(mlir::Operation *op,
                                                      std::string *why = nullptr);

/// Attaches ShardingRuleOpInterface to the ops of `linalg`, `tensor`, `arith`, `math` and `dist`,
/// which must be loaded. The dist dialect does so when a context loads it.
void attachShardingRules(mlir::MLIRContext *context);

/// A rule that cuts nothing: every dimension is a separate factor that must be whole.
sharding::ShardingRule replicatedRule(mlir::Operation *op);

/// Whether the op maps contributions to contributions: if each of `operands` is the
/// `kind`-reduction of the devices' values and every other operand is whole, then the result is the
/// same reduction of the devices' results. For sums this is joint linearity, derived from the body;
/// the accumulators of a reduction then belong to the operands. Rounding to fewer bits is not
/// linear: contributions stay wide until they are reduced, unless the op is marked (Rounding.h).
/// Ops that only move elements pass every kind.
///
///   add %a, %b              {0, 1}, not {0}: the other operand would be counted n times
///   multiply %a, %b         {0} or {1}, not {0, 1}
///   reduce sum %a to %init  {0, 1}
///
/// Operands in `unknown` may be contributions or whole: the result is true if one choice for them
/// makes it true.
bool passesPartial(mlir::Operation *op, sharding::ReduceKind kind, llvm::ArrayRef<int64_t> operands,
                   llvm::ArrayRef<int64_t> unknown = {});
/// The operands, including some of `partial`, that must be contributions for the result to be one:
/// as many of `partial` as possible, then the fewest others. Empty if there are none.
llvm::SmallVector<int64_t> operandsToPass(mlir::Operation *op, sharding::ReduceKind kind,
                                          llvm::ArrayRef<int64_t> partial);
/// Whether the result is a sum of contributions if all tensors that an op reads are, as those of
/// additions, pads with zeros and reshapes.
bool passesAllOperands(mlir::Operation *op);

/// Whether an op computes its result only from scalars: a constant, a splat, a fill, an iota. Any
/// part of it is cheaper to rematerialize than to move. False for null.
bool isMadeOfScalars(mlir::Operation *op);

/// Whether a value is a fill or splat of a reduction's identity: the contributions of all devices
/// and the whole are equal. `avg` has none.
bool isIdentityFill(mlir::Value value, sharding::ReduceKind kind);

/// `local`, a device's part of the source of a pad, padded in the dimensions that are whole in
/// `result`: the windows of cut dimensions contain their padding. `padding` is the local value of a
/// pad value that is not constant.
mlir::Value padWholeDims(mlir::OpBuilder &b, mlir::tensor::PadOp op, mlir::Value local,
                         const sharding::TensorSharding &result, mlir::Value padding = {});

/// The reduction of result `index` of a linalg op over its reduction loops, if the body matches
/// one.
std::optional<sharding::ReduceKind> matchReductionKind(mlir::linalg::LinalgOp op, unsigned index);
/// The body op that combines the accumulator of result `index` with a new value, or null.
mlir::Operation *matchCombiner(mlir::linalg::LinalgOp op, unsigned index);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_RULES_H
