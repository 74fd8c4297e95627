//===- Strategies.h - Strategies that claims allow for each op --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_STRATEGIES_H
#define TESSERA_PLANNING_STRATEGIES_H

#include "tessera/Planning/PropagationGraph.h"

#include "tessera/Planning/OpCosts.h"

namespace tessera::dist {

/// A candidate distribution of an op.
using Strategy = sharding::OpSharding;
/// The strategies of an op. Ops that share a list share a rule, too.
using StrategyList = std::shared_ptr<const std::vector<Strategy>>;

/// The sharding of tensor `position` of a node (operands first, then results) under a strategy:
/// required of an operand, produced for a result. Canonical.
sharding::TensorSharding shardingUnder(const RuleNode &node, size_t position,
                                       const Strategy &strategy);

/// The candidate strategies of every op. An op whose tensors agree has one. If tensors contest an
/// axis, each of them may win it, and the consequences for the op's other tensors spread to
/// neighboring ops, up to annotated tensors.
class Strategies {
public:
  /// A candidate beyond the claims: a strategy of a node, or a sharding of a tensor.
  struct Seed {
    int64_t node = -1;
    Strategy strategy = {};
    int64_t tensor = -1;
    sharding::TensorSharding state = {};
  };

  /// The latencies of `topology` decide which candidates with more messages exist.
  Strategies(const PropagationGraph &graph, const sharding::Topology &topology);

  /// Adds seeds, and if `spreads` their consequences for neighboring ops, beyond the previous
  /// bounds. Strategies keep their indices.
  void extend(llvm::ArrayRef<Seed> seeds, bool spreads);

  /// The axes of a rule's factors if every tensor keeps its sharding as far as possible: the
  /// heaviest tensor with a factor fixes its axes, longer lists extend them. Tensors with a
  /// priority beyond `round` make no claims, and unless `broadcasts` neither do broadcast operands
  /// of elementwise ops: a bias should follow the value to which it is added.
  static sharding::FactorAxes merge(const PropagationGraph &graph, const RuleNode &node,
                                    int64_t round, bool broadcasts);

  /// Never empty for an op with results; empty for ties of control flow and for constraints.
  const std::vector<Strategy> &of(size_t node) const { return *strategies[node]; }
  const StrategyList &listOf(size_t node) const { return strategies[node]; }
  /// The candidates of a tensor beside its propagated sharding.
  const std::vector<sharding::TensorSharding> &statesOf(size_t tensor) const {
    return states[tensor];
  }

private:
  using List = std::vector<Strategy>;

  /// The claim of one tensor on one factor.
  struct Claim {
    int64_t factor;
    const sharding::AxisList *axes; ///< of the tensor's sharding, or kept in `Claims::split`
    int64_t weight;                 ///< heavier claims are settled first
    int64_t order;
    size_t position; ///< of the tensor in the node
  };
  struct Claims : llvm::SmallVector<Claim, 8> {
    /// Axes of one dimension divided among several factors.
    llvm::SmallVector<std::shared_ptr<const sharding::FactorAxes>, 0> split;
  };

  // Claims.cpp
  static sharding::FactorAxes settle(const sharding::ShardingRule &rule, Claims claims);
  static void claim(const RuleNode &node, size_t position, const sharding::TensorSharding &sharding,
                    int64_t weight, Claims &claims);
  Claims claimsOf(const RuleNode &node) const;
  static Claims uncontested(const RuleNode &node, const Claims &all);

  // Strategies.cpp
  List fromClaims(const RuleNode &node) const;
  void addAlternatives(const RuleNode &node, const Claims &all, List &list) const;
  bool add(size_t node, Strategy strategy);
  void spread(size_t node, const Strategy &strategy);
  bool isComputedStart(int64_t tensor) const;
  /// If some uses cut an annotated tensor further, other uses may share that cut.
  void shareFinerUses(int64_t tensor);
  /// A seed is visited also if it was a candidate before: extended, ops may do more with it.
  void addState(int64_t tensor, const sharding::TensorSharding &state, bool isSeed = false);
  void visit(size_t node, size_t position, const sharding::TensorSharding &state);
  void spreadAll();
  void shareLists();
  bool addTo(List &list, Strategy strategy) const;
  void passOnOperands(size_t node);
  void passOn(size_t node, size_t position, const sharding::TensorSharding &state,
              const Claims &claims);

  const PropagationGraph &graph;
  sharding::Topology topology;
  /// Bounds on the number of candidates if many claims conflict.
  size_t mostStrategies = 8, mostStates = 5;
  bool isExtended = false;
  /// By node; nodes of one rule that have the same strategies share a list.
  std::vector<std::shared_ptr<const List>> strategies;
  std::vector<std::vector<sharding::TensorSharding>> states; ///< by tensor, except propagated
  std::vector<std::pair<int64_t, sharding::TensorSharding>> work;
};

/// Whether the annotation of a tensor allows its dimensions the sharding `state`.
bool allows(const TensorState &tensor, const sharding::TensorSharding &state);

/// Whether an op has a strategy: it is neither control flow nor a constraint.
bool decidesStrategy(const RuleNode &node);

/// The mesh that an op with a rule is cut over.
const sharding::Mesh &meshOf(const PropagationGraph &graph, const RuleNode &node);
/// Seconds of one execution of an op under a strategy, on the busiest device.
double secondsUnder(const OpCosts &costs, const PropagationGraph &graph, const RuleNode &node,
                    const Strategy &strategy);
/// The same for known work and shardings.
double secondsUnder(const sharding::Topology &topology, const OpCosts::Work &work,
                    const PropagationGraph &graph, const RuleNode &node, const Strategy &strategy,
                    llvm::ArrayRef<const sharding::TensorSharding *> shardings);

/// The rule of tensor `position` of a node, operands first.
const sharding::TensorRule &ruleOf(const RuleNode &node, size_t position);

/// Whether tensor `position` makes no claims: the accumulator of a reduction follows its result.
bool follows(const RuleNode &node, size_t position);

/// Whether tensor `position` of an elementwise op lacks one of its factors.
bool isBroadcast(const RuleNode &node, size_t position);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_STRATEGIES_H
