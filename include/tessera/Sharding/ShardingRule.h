//===- ShardingRule.h - Which loops of an op may be cut ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op is seen as a nest of loops, its *factors*. A rule says of which factors
// every dimension of every operand and result is made; cutting a factor over
// mesh axes then says how each tensor must lie.
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
  reduction, ///< iterations combine by `reduction`: cutting it makes the results partial
  replicate, ///< must not be cut
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::parallel;
  ReduceKind reduction = ReduceKind::sum;
};

/// How one dimension of a tensor is made of factors. A dimension of one factor may be a window of
/// it: iteration i reads the indices [i * stride + shift, i * stride + shift + extent). It is one
/// also where each iteration reads its own index but the dimension has another extent than the
/// factor.
struct DimRule {
  std::vector<int64_t> factors; ///< major first; empty for a dimension of extent 1
  int64_t stride = 1;
  int64_t shift = 0;
  int64_t extent = 1;
  bool isWindow = false;
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
  /// Whether it only moves elements, so that partials of any reduction pass from operand 0.
  bool movesOnly = false;

  bool isElementwise() const;
};

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

/// Drops axes that a rule cannot honour: of `replicate` factors, of an axis that two factors share
/// (the first keeps it), of a factor of a reshaped dimension whose parts would not be boxes.
FactorAxes legalize(const ShardingRule &rule, FactorAxes axes);

/// How operand `index` must lie when the factors are cut by `axes` (legal): its dimensions,
/// windows, and for an accumulator the partial axes of its result.
TensorSharding operandSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes);
/// How result `index` then lies: partial over the axes of every reduction factor.
TensorSharding resultSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes);

/// The factors' axes of an op from its results' shardings: parallel factors are cut as the results
/// are; an axis over which a result is partial goes to the reduction factor that an operand already
/// cuts by it, else to the first that is long enough, else to the first.
FactorAxes deriveFactorAxes(const ShardingRule &rule, const std::vector<TensorSharding> &results,
                            const std::vector<TensorSharding> &operands);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_SHARDINGRULE_H
