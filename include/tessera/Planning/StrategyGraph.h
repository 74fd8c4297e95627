//===- StrategyGraph.h - The search's problem of a function -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The strategy problem (StrategyProblem.h) of all candidates (Candidates.h), and the
// shardings, costs and memory of a choice.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_STRATEGYGRAPH_H
#define TESSERA_PLANNING_STRATEGYGRAPH_H

#include "tessera/Planning/Enumeration.h"

#include <array>
#include <limits>
#include <map>
#include <optional>

namespace tessera::dist {

/// Bytes of a tensor on a device, with the arena's alignment.
double bytesOnDevice(const sharding::TensorSharding &sharding, mlir::RankedTensorType type);

/// The problem of `dist-search` for one function and one mesh.
class StrategyGraph {
public:
  struct Options : Enumeration::Options {
    /// Seconds after which the costs of reshards are approximate, see ReshardTable.
    double timeLimit = std::numeric_limits<double>::infinity();
  };

  /// `graph` before propagation, with only the annotations. It must outlive this.
  StrategyGraph(const PropagationGraph &graph, const PropagatedPlan &propagated,
                const sharding::Topology &topology, const Options &options);

  const solver::Problem &problem() const { return built.problem; }
  /// Sets the memory of the problem: for each tensor its bytes at its home or op times `atHome`,
  /// and its bytes at its place times `atPlace`. By tensor.
  void setMemory(const std::vector<double> &atHome, const std::vector<double> &atPlace);
  /// The least bytes per device of a tensor with a home; 0 for others.
  double leastBytes(int64_t tensor) const;
  bool hasPlace(int64_t tensor) const { return placeNodeOf(tensor) >= 0; }
  /// The node of a tensor's place, or -1.
  int64_t placeNodeOf(int64_t tensor) const { return built.placeOf(tensor).node; }
  /// By node of the problem, the strategies of propagation's plan; -1 for places.
  const std::vector<int64_t> &propagatedChoice() const { return propagatedOf; }

  /// Seconds of a choice without its communication.
  double computeSeconds(const std::vector<int64_t> &choice) const;
  /// Whether the time limit ended the computation of reshard costs: some are then the costs of one
  /// generic chain, which give no bound.
  bool hasApproximatePrices() const { return built.hasApproximatePrices(); }
  /// The cost of a choice by the best chains, also with approximate costs in the problem.
  double exactCost(const std::vector<int64_t> &choice);
  /// The computation time of every choice at least: the sum of each node's minimum.
  double leastCompute() const;
  /// The sharding in which a tensor is produced, possibly partial; from the graph's pool.
  const sharding::TensorSharding &shardingOf(int64_t tensor,
                                             const std::vector<int64_t> &choice) const;
  /// The place of a tensor with several users, from the graph's pool; else null.
  const sharding::TensorSharding *placeOf(int64_t tensor, const std::vector<int64_t> &choice) const;
  /// The strategy of a node of the graph, or null.
  const Strategy *strategyOf(int64_t node, const std::vector<int64_t> &choice) const;
  /// Seconds of all reshards of a tensor from one sharding to another, per execution of the
  /// function.
  double reshardSeconds(int64_t tensor, const sharding::TensorSharding &from,
                        const sharding::TensorSharding &to);
  /// The candidate shardings of a tensor that a home or an op produces; not empty.
  const ShardingRefs &homesOf(int64_t tensor) const { return homes[tensor].shardings->distinct; }
  /// All strategies of a node of the graph with a choice.
  const std::vector<Strategy> &strategiesOf(int64_t node) const {
    return *built.strategiesOf(node);
  }
  int64_t numStrategies(int64_t node) const { return std::ssize(problem().nodes[node].cost); }
  /// Whether the code generator copies an operand of a node into rows.
  bool isCopied(int64_t node, size_t operand) const { return operand < 2 && copied[node][operand]; }
  /// The node of the problem for a node of the graph, -1 without a choice.
  int64_t problemNodeOf(int64_t node) const { return built.nodeOf(node); }
  /// The collectives of a reshard.
  const sharding::ReshardPlan &planOf(int64_t tensor, const sharding::TensorSharding &from,
                                      const sharding::TensorSharding &to) const;
  /// Bytes per device, beside source and target, of the intermediate results of a reshard.
  double bytesOnTheWay(int64_t tensor, const sharding::TensorSharding &from,
                       const sharding::TensorSharding &to) const;
  /// Working set, in bytes per device, of the op that produces a tensor, its first result.
  double workingBytes(int64_t tensor, const std::vector<int64_t> &choice) const;
  /// The node of the problem for a tensor's home, -1 if an op produces the tensor.
  int64_t homeOf(int64_t tensor) const { return homes[tensor].node; }

private:
  void markPropagated(const PropagatedPlan &propagated);
  void markAnnotated();

  const PropagationGraph &graph;
  sharding::ReshardPlanner &planner;
  StrategyProblem built;
  std::vector<StrategyEnd> homes;          ///< by tensor; of ops' results the op
  std::vector<int64_t> propagatedOf;       ///< by node of the problem
  std::vector<std::array<bool, 2>> copied; ///< by node of the graph
  /// By list of strategies and strategy; looked up only.
  mutable llvm::DenseMap<std::pair<const std::vector<Strategy> *, int64_t>, double> knownWorking;
  /// Bytes on the way by source and target: looked up often, without copies of either.
  struct BySharding {
    using is_transparent = void;
    template <typename A, typename B> bool operator()(const A &a, const B &b) const {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    }
  };
  using ShardingPair = std::pair<sharding::TensorSharding, sharding::TensorSharding>;
  mutable llvm::DenseMap<std::pair<const sharding::Mesh *, mlir::Type>,
                         std::map<ShardingPair, double, BySharding>>
      knownBytes; ///< looked up, never iterated
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_STRATEGYGRAPH_H
