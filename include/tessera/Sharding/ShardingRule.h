//===- ShardingRule.h - Loops of an op that may be cut ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op is represented as a nest of loops, its *factors*. A rule lists the factors of
// every dimension of every operand and result. Cutting a factor over
// mesh axes then determines the sharding of each tensor.
//
//   matmul  (m, k) x (k, n) + (m, n) -> (m, n)     m, n parallel, k reduction(sum)
//   reshape (a b, c) -> (a, b, c)                  a dimension of two factors, major first
//   conv    input dimension = window of oh: stride 2, extent 3
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_SHARDINGRULE_H
#define TESSERA_SHARDING_SHARDINGRULE_H

#include "tessera/Sharding/Layout.h"

namespace tessera::sharding {

/// What cutting a loop of an op over devices means for its results.
enum class FactorKind {
  parallel,  ///< iterations are independent and appear in the results
  reduction, ///< iterations combine by `reduction`: cutting it makes the results partial,
             ///< except those that the factor indexes
  replicate, ///< must be whole on every device
};

/// A loop of an op: its trip count, and how its iterations combine. `reduction` is read only if the
/// kind is reduction.
struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::parallel;
  ReduceKind reduction = ReduceKind::sum;
};

/// Elements of an operand that a result takes over: iteration to + i * toStep of a factor reads
/// element from + i * fromStep of an operand's dimension, for i in [0, count); other iterations
/// read nothing.
///
///   rows 10 to 19 of a table are rows 0 to 9 of the result   from 10, count 10
///   the second operand of a concatenation, behind 5 rows     to 5, count = its extent
///   n rows reversed                                          to n - 1, toStep -1, count n
struct Segment {
  int64_t from = 0;
  int64_t fromStep = 1; ///< positive
  int64_t to = 0;
  int64_t toStep = 1; ///< not 0
  int64_t count = 0;
  bool operator==(const Segment &) const = default;
};

/// The factors of one dimension of a tensor. A dimension of one factor may be a window of it:
/// iteration i reads the indices [i * stride + shift, i * stride + shift + extent). It is also a
/// window if each iteration reads its own index but the extents of dimension and factor differ. A
/// dimension of another extent that is not a window has parts of its own size: keys of a ring.
struct DimRule {
  std::vector<int64_t> factors; ///< major first; empty for a dimension of extent 1
  int64_t stride = 1;
  int64_t shift = 0;
  int64_t extent = 1;
  bool isWindow = false;
  /// Of an operand that is read by segment.
  std::optional<Segment> segment = {};
  int64_t operandSize = 0; ///< of a dimension that is read by segment or window
  /// Whether the operand holds only the segment even if the factor is not cut.
  bool isNarrow = false;

  bool readsAll() const {
    return segment && segment->from == 0 && segment->fromStep == 1 && segment->count == operandSize;
  }
};

/// One rule per dimension; empty for tensors of rank 0 and values that are not tensors.
using TensorRule = std::vector<DimRule>;

/// The rule of one op. An operand that is the accumulator of a result is the initial value of its
/// reductions, so it becomes partial with the result.
struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<TensorRule> operands;
  std::vector<TensorRule> results;
  std::vector<int64_t> accumulatorOf; ///< by operand: the result that it initializes, or -1
  /// By result, empty for none: whether the op itself combines the parts of its reductions, so that
  /// the result is whole.
  std::vector<bool> completes;
  /// Whether the op only moves elements, so that partials of any reduction pass from operand 0.
  bool movesOnly = false;

  bool isElementwise() const;
};

/// A rule in one line: the factors of every dimension of every operand and result, then the extent
/// of each factor, and the factors that must be whole or are reduced.
///   ([i, k], [k, j], [i, j]) -> ([i, j]) {i = 8, j = 16, k = 4} sum over k, operand 2 accumulates
///   ([i * 2 - 1 .. + 3]) -> ([i]) {i = 8}            windows: stride 2, shift -1, extent 3
///   ([ij]) -> ([i, j]) {i = 2, j = 6}                one dimension of two factors, major first
std::string toString(const ShardingRule &rule);

/// The axes that cut each factor of a rule.
using FactorAxes = std::vector<AxisList>;

/// Identity rule between tensors of one shape: operand i and result i agree in every dimension.
ShardingRule identityRule(const std::vector<int64_t> &shape);

/// Distributes the axes of a dimension over its factors: the major factor takes the axes that
/// divide it, the next one the rest once the major factor is cut completely. Axes that no factor
/// can take are dropped.
///   (a=2, b=6) cut by 4 -> a: (1)2, b: (2)2
void projectDim(const ShardingRule &rule, const DimRule &dim, const AxisList &axes,
                FactorAxes &factorAxes);
/// The factors' axes implied by one tensor's sharding, without its partial axes.
FactorAxes project(const ShardingRule &rule, const TensorRule &tensor,
                   const TensorSharding &sharding);

/// Drops axes that a rule does not support: of `replicate` factors, of an axis that two factors
/// share (the first keeps it), of a factor of a reshaped dimension whose parts would not be boxes.
FactorAxes legalize(const ShardingRule &rule, FactorAxes axes);

/// The sharding of operand `index` for the (legal) factor axes `axes`: its dimensions, windows, and
/// for an accumulator the partial axes of its result.
TensorSharding operandSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes);
/// The corresponding sharding of result `index`: partial over the axes of every reduction factor.
TensorSharding resultSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes);

//===----------------------------------------------------------------------===//
// The sharding of an op
//===----------------------------------------------------------------------===//

/// A partial axis of an op's result that comes from its operands: the op maps contributions to
/// contributions, instead of having them reduced first.
struct Forward {
  PartialAxis partial;
  std::vector<int64_t> operands; ///< ascending; the op is jointly linear in them
  bool operator==(const Forward &) const = default;
};

/// The distribution of an op: the axes that cut each of its loops, and the contributions that it
/// forwards. These and the rule determine everything else: the shardings of operands and results,
/// partial axes, and the work per device.
///
/// Of a factor with a window each device executes the iterations of the window, which may overlap
/// with those of others and reach beyond the loop, instead of its own part.
struct OpSharding {
  FactorAxes factors;               ///< by factor of the rule
  std::vector<Forward> forwards;    ///< at most one per axis
  std::vector<Window> windows = {}; ///< ascending by factor, which is their `dim`
  bool operator==(const OpSharding &) const = default;

  /// The sharding of an op that every device computes whole.
  static OpSharding whole(const ShardingRule &rule) {
    return {FactorAxes(rule.factors.size()), {}};
  }
  bool isWhole() const;
  /// The window of a factor; null if it has none.
  const Window *windowOf(int64_t factor) const;
};

/// The iterations of a factor that each device executes.
DimLayout factorLayout(const ShardingRule &rule, const OpSharding &op, int64_t factor);

/// The sharding that operand `index` must have, and the resulting one of result `index`.
///   matmul (m, k) x (k, n), factors m: dp, k: tp
///     operand 0 [shard(0) over dp, shard(1) over tp], result [shard(0) over dp, partial over tp]
TensorSharding operandSharding(const ShardingRule &rule, int64_t index, const OpSharding &op);
TensorSharding resultSharding(const ShardingRule &rule, int64_t index, const OpSharding &op);

/// The contradiction between an op sharding and its rule, as a clause for a message; empty if there
/// is none. Checks: as many factors as the rule has, no axis used twice, no cut of a factor that
/// must be whole, parts of reshaped dimensions that are boxes, forwards that name operands, windows
/// of factors whose operands have such windows. Linearity is not checked.
std::string findContradiction(const Mesh &mesh, const ShardingRule &rule, const OpSharding &op);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_SHARDINGRULE_H
