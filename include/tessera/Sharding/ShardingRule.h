//===- ShardingRule.h - Which loops of an op may be cut ---------*- C++ -*-===//
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

enum class FactorKind {
  parallel,  ///< iterations are independent and appear in the results
  reduction, ///< iterations combine by `reduction`: cutting it makes the results partial, apart
             ///< from those that run over it
  replicate, ///< must not be cut
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::parallel;
  ReduceKind reduction = ReduceKind::sum;
};

/// Elements of an operand that a result takes over: iteration to + i * toStep of a factor reads
/// element from + i * fromStep of an operand's dimension, for i in [0, count); others read nothing.
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

/// How one dimension of a tensor is made of factors. A dimension of one factor may be a window of
/// it: iteration i reads the indices [i * stride + shift, i * stride + shift + extent). It is one
/// also where each iteration reads its own index but the dimension has another extent than the
/// factor. One of another extent that is no window has parts of its own size: keys of a ring.
struct DimRule {
  std::vector<int64_t> factors; ///< major first; empty for a dimension of extent 1
  int64_t stride = 1;
  int64_t shift = 0;
  int64_t extent = 1;
  bool isWindow = false;
  /// Of an operand that is read by segment; its dimension has `segmentOf` elements.
  std::optional<Segment> segment = {};
  int64_t segmentOf = 0;
  /// Whether the operand holds no more than the segment where the factor is whole, too.
  bool isNarrow = false;

  bool readsAll() const {
    return segment && segment->from == 0 && segment->fromStep == 1 && segment->count == segmentOf;
  }
};

/// One rule a dimension; a tensor without dimensions, or something that is no tensor, has none.
using TensorRule = std::vector<DimRule>;

/// The rule of one op. An operand that is the accumulator of a result starts its reductions, so it
/// becomes partial with it.
struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<TensorRule> operands;
  std::vector<TensorRule> results;
  std::vector<int64_t> accumulatorOf; ///< by operand: the result that it starts, or -1
  /// By result, empty for none: whether the op combines the parts of its reductions itself, so that
  /// the result is whole.
  std::vector<bool> completes;
  /// Whether it only moves elements, so that partials of any reduction pass from operand 0.
  bool movesOnly = false;

  bool isElementwise() const;
};

/// A rule in one line: the factors of every dimension of every operand and result, then the extent
/// of each factor, and what may not be cut or is reduced.
///   ([i, k], [k, j], [i, j]) -> ([i, j]) {i = 8, j = 16, k = 4} sum over k, operand 2 accumulates
///   ([i * 2 - 1 .. + 3]) -> ([i]) {i = 8}            windows: stride 2, shift -1, extent 3
///   ([ij]) -> ([i, j]) {i = 2, j = 6}                one dimension of two factors, major first
std::string toString(const ShardingRule &rule);

/// The axes that cut each factor of a rule.
using FactorAxes = std::vector<AxisList>;

/// Identity rule between tensors of one shape: operand i and result i agree in every dimension.
ShardingRule identityRule(const std::vector<int64_t> &shape);

/// Distributes the axes of a dimension over its factors: the major factor takes what divides it,
/// the next what is left once it is cut through. Axes that no factor can take are dropped.
///   (a=2, b=6) cut by 4 -> a: (1)2, b: (2)2
void projectDim(const ShardingRule &rule, const DimRule &dim, const AxisList &axes,
                FactorAxes &factorAxes);
/// The factors' axes that one tensor's sharding implies (its partial axes apart).
FactorAxes project(const ShardingRule &rule, const TensorRule &tensor,
                   const TensorSharding &sharding);

/// Drops axes that a rule does not support: of `replicate` factors, of an axis that two factors
/// share (the first keeps it), of a factor of a reshaped dimension whose parts would not be boxes.
FactorAxes legalize(const ShardingRule &rule, FactorAxes axes);

/// The sharding of operand `index` when the factors are cut by `axes` (legal): its dimensions,
/// windows, and for an accumulator the partial axes of its result.
TensorSharding operandSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes);
/// The sharding of result `index` then: partial over the axes of every reduction factor.
TensorSharding resultSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes);

//===----------------------------------------------------------------------===//
// The sharding of an op
//===----------------------------------------------------------------------===//

/// A partial axis of an op's result that its operands bring: the op takes contributions and makes
/// contributions, instead of having them reduced first.
struct Forward {
  PartialAxis partial;
  std::vector<int64_t> operands; ///< ascending; the op is linear in them, taken together
  bool operator==(const Forward &) const = default;
};

/// How an op is distributed: which axes run over which of its loops, and which contributions it
/// forwards. Everything else follows from this and the rule: how operands and results are sharded,
/// what is partial, what a device computes.
struct OpSharding {
  FactorAxes factors;            ///< by factor of the rule
  std::vector<Forward> forwards; ///< at most one for an axis
  bool operator==(const OpSharding &) const = default;

  /// The sharding of an op that every device computes whole.
  static OpSharding whole(const ShardingRule &rule) {
    return {FactorAxes(rule.factors.size()), {}};
  }
  bool isWhole() const;
};

/// The sharding that operand `index` must have, and the one that result `index` then has.
///   matmul (m, k) x (k, n), factors m: dp, k: tp
///     operand 0 [shard(0) over dp, shard(1) over tp], result [shard(0) over dp, partial over tp]
TensorSharding operandSharding(const ShardingRule &rule, int64_t index, const OpSharding &op);
TensorSharding resultSharding(const ShardingRule &rule, int64_t index, const OpSharding &op);

/// What of the rule an op sharding contradicts, as a clause for a message; empty where nothing:
/// as many factors as the rule has, no axis used twice, no factor cut that must be whole, parts of
/// reshaped dimensions that are boxes, forwards that name operands. Linearity is not checked.
std::string findContradiction(const Mesh &mesh, const ShardingRule &rule, const OpSharding &op);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_SHARDINGRULE_H
