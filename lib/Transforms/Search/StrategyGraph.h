//===- StrategyGraph.h - A function as a problem of the search --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The strategy problem (Propagate/StrategyProblem.h) of all candidates (Candidates.h),
// and what a choice of it means: shardings, prices, memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_STRATEGYGRAPH_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_STRATEGYGRAPH_H

#include "Enumeration.h"

#include <array>
#include <limits>
#include <map>
#include <optional>

namespace tessera::dist {

/// Bytes of memory that a tensor takes on a device: buffers have the arena's alignment.
double bytesOnDevice(const sharding::TensorSharding &sharding, mlir::RankedTensorType type);

class StrategyGraph {
public:
  struct Options : Enumeration::Options {
    /// Seconds after which reshards are no longer priced by their best plans, see ReshardTable.
    double timeLimit = std::numeric_limits<double>::infinity();
  };

  /// `graph` before propagation: its tensors have what the user wrote. It must outlive this.
  StrategyGraph(const PropagationGraph &graph, const PropagatedPlan &propagated,
                const sharding::Topology &topology, const Options &options);

  const solver::Problem &problem() const { return built.problem; }
  /// Gives the problem memory: of each tensor its bytes where its home or op puts it times
  /// `atHome`, and its bytes where its place puts it times `atPlace`. By tensor.
  void setMemory(const std::vector<double> &atHome, const std::vector<double> &atPlace);
  /// The fewest bytes on a device that a home leaves for a tensor; 0 where there is none.
  double leastBytes(int64_t tensor) const;
  bool hasPlace(int64_t tensor) const { return placeNodeOf(tensor) >= 0; }
  /// The node of the problem that says where; -1: it has none.
  int64_t placeNodeOf(int64_t tensor) const { return built.placeOf(tensor).node; }
  /// By node of the problem the strategies that propagation alone takes; -1 for places.
  const std::vector<int64_t> &propagatedChoice() const { return propagatedOf; }

  /// Seconds of a choice without its communication.
  double computeSeconds(const std::vector<int64_t> &choice) const;
  /// Whether time ran out while reshards were priced: the problem's prices of them are then those
  /// of one chain that always works, and no bound follows from them.
  bool hasHurriedPrices() const { return built.hasHurriedPrices(); }
  /// What a choice costs by the best chains, whatever the problem says.
  double exactCost(const std::vector<int64_t> &choice);
  /// What no choice can do without: the least of each node.
  double leastCompute() const;
  /// The sharding with which a tensor is produced, partial or not; of the graph's pool.
  const sharding::TensorSharding &shardingOf(int64_t tensor,
                                             const std::vector<int64_t> &choice) const;
  /// Where a tensor is brought for its users, of the graph's pool; null without several.
  const sharding::TensorSharding *placeOf(int64_t tensor, const std::vector<int64_t> &choice) const;
  /// The strategy of a node of the graph, null for what has none.
  const Strategy *strategyOf(int64_t node, const std::vector<int64_t> &choice) const;
  /// Seconds of all reshards of a tensor from one way to lie to another, in an execution.
  double reshardSeconds(int64_t tensor, const sharding::TensorSharding &from,
                        const sharding::TensorSharding &to);
  /// The candidate shardings of a tensor that a home or an op produces; not empty.
  const ShardingRefs &homesOf(int64_t tensor) const { return homes[tensor].shardings->distinct; }
  /// All strategies of a node of the graph that has a choice.
  const std::vector<Strategy> &strategiesOf(int64_t node) const {
    return *built.strategiesOf(node);
  }
  int64_t numStrategies(int64_t node) const { return std::ssize(problem().nodes[node].cost); }
  /// Whether the code generator copies an operand of a node into rows.
  bool isCopied(int64_t node, size_t operand) const { return operand < 2 && copied[node][operand]; }
  /// The node of the problem for a node of the graph, -1 where it has no choice.
  int64_t problemNodeOf(int64_t node) const { return built.nodeOf(node); }
  /// The collectives of a reshard.
  const sharding::ReshardPlan &planOf(int64_t tensor, const sharding::TensorSharding &from,
                                      const sharding::TensorSharding &to) const;
  /// Bytes per device, beside source and target, of the intermediate results of a reshard.
  double bytesOnTheWay(int64_t tensor, const sharding::TensorSharding &from,
                       const sharding::TensorSharding &to) const;
  /// Bytes per device that the op which makes a tensor takes beside its operands and results; told
  /// of its first result.
  double workingBytes(int64_t tensor, const std::vector<int64_t> &choice) const;
  /// The node of the problem that says how a tensor is laid by a home, -1 where an op makes it.
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
  using Way = std::pair<sharding::TensorSharding, sharding::TensorSharding>;
  mutable llvm::DenseMap<std::pair<const sharding::Mesh *, mlir::Type>,
                         std::map<Way, double, BySharding>>
      knownBytes; ///< looked up, never iterated
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_STRATEGYGRAPH_H
