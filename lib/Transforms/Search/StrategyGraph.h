//===- StrategyGraph.h - A function as a problem of the search --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   op                    a node; its strategies are the candidates of its cuts, its cost the
//                         roofline of what one device then does
//   argument, loop carry, a node; its strategies are the shardings that the
//   constraint            annotation leaves (the *home* of the tensor)
//   tensor of several     one node more, the *place* where it lies for its users: what two
//   users                 of them need alike is sent once
//   from home to place,   an edge; its table has the modelled time of the reshard between
//   from place to user    what one strategy leaves and another needs
//
// Equal ops share their strategies and tables by content, so a program of repeated
// layers is built at the price of one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_STRATEGYGRAPH_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_STRATEGYGRAPH_H

#include "../Propagate/StrategyEdges.h"
#include "Candidates.h"

#include "tessera/Solver/Problem.h"

#include <chrono>
#include <limits>
#include <map>
#include <optional>

namespace tessera::dist {

/// What propagation alone decides: the plan to beat.
struct PropagatedPlan {
  std::vector<sharding::TensorSharding> shardings; ///< by tensor, closed: of arguments and carries
  std::vector<Strategy> strategies;                ///< by node of the graph
};

/// Bytes of memory that a tensor takes on a device: buffers have the arena's alignment.
double bytesOnDevice(const sharding::TensorSharding &sharding, mlir::RankedTensorType type);

class StrategyGraph {
public:
  struct Options {
    bool fullyUseDevices = true; ///< contractions use every mesh axis where their sizes allow
    size_t mostStrategies = 256;
    /// Seconds after which reshards are no longer priced by their best plans, see ReshardTable.
    double timeLimit = std::numeric_limits<double>::infinity();
  };

  /// `graph` before propagation: its tensors have what the user wrote. Both must outlive this.
  StrategyGraph(const PropagationGraph &graph, const PropagatedPlan &propagated,
                sharding::ReshardPlanner &planner, const OpCosts &costs, const Options &options);

  const solver::Problem &problem() const { return result; }
  /// Gives the problem memory: of each tensor its bytes where its home or op puts it times
  /// `atHome`, and its bytes where its place puts it times `atPlace`. By tensor.
  void setMemory(const std::vector<double> &atHome, const std::vector<double> &atPlace);
  /// The fewest bytes on a device that a home leaves for a tensor; 0 where there is none.
  double leastBytes(int64_t tensor) const;
  bool hasPlace(int64_t tensor) const { return place[tensor].node >= 0; }
  /// The node of the problem that says where; -1: it has none.
  int64_t placeNodeOf(int64_t tensor) const { return place[tensor].node; }
  /// By node of the problem the strategies that propagation alone takes; -1 for places.
  const std::vector<int64_t> &propagatedChoice() const { return propagatedOf; }

  /// Seconds of a choice without its communication.
  double computeSeconds(const std::vector<int64_t> &choice) const;
  /// Whether time ran out while reshards were priced: the problem's prices of them are then those
  /// of one chain that always works, and no bound follows from them.
  bool hasHurriedPrices() const { return isHurried; }
  /// What a choice costs by the best chains, whatever the problem says.
  double exactCost(const std::vector<int64_t> &choice);
  /// What no choice can do without: the least of each node.
  double leastCompute() const;
  /// The sharding with which a tensor is produced, partial or not.
  sharding::TensorSharding shardingOf(int64_t tensor, const std::vector<int64_t> &choice) const;
  /// Where a tensor is brought for its users; nothing without several.
  std::optional<sharding::TensorSharding> placeOf(int64_t tensor,
                                                  const std::vector<int64_t> &choice) const;
  /// The strategy of a node of the graph, null for what has none.
  const Strategy *strategyOf(int64_t node, const std::vector<int64_t> &choice) const;
  /// Seconds of all reshards of a tensor from one way to lie to another, in an execution.
  double reshardSeconds(int64_t tensor, const sharding::TensorSharding &from,
                        const sharding::TensorSharding &to);
  /// The candidate shardings of a tensor that a home or an op produces; not empty.
  const std::vector<sharding::TensorSharding> &homesOf(int64_t tensor) const {
    return lists[home[tensor].shardings].distinct;
  }
  /// All strategies of a node of the graph that has a choice.
  const std::vector<Strategy> &strategiesOf(int64_t node) const {
    return kinds[kindOfNode[node]].strategies;
  }
  int64_t numStrategies(int64_t node) const { return std::ssize(result.nodes[node].cost); }
  /// Whether the code generator copies an operand of a node into rows.
  bool isCopied(int64_t node, size_t operand) const { return operand < 2 && copied[node][operand]; }
  /// The node of the problem for a node of the graph, -1 where it has no choice.
  int64_t problemNodeOf(int64_t node) const { return problemNode[node]; }
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
  int64_t homeOf(int64_t tensor) const { return home[tensor].node; }

private:
  /// Shardings by strategy, with equal ones named once.
  struct ShardingList {
    std::vector<sharding::TensorSharding> distinct;
    std::vector<int64_t> of;
  };
  /// A node of the problem, as one tensor sees it.
  struct End {
    int64_t node = -1;      ///< of the problem
    int64_t shardings = -1; ///< list of shardings
  };
  /// What an edge is the reshard of.
  struct Sent {
    int64_t tensor;
    End from, to;
    double trips;
  };
  /// What equal ops have in common.
  struct Kind {
    std::vector<Strategy> strategies;
    solver::Coordinates labels;
    std::vector<double> seconds;    ///< of one execution
    std::vector<int64_t> shardings; ///< by operand and result
  };

  void addOps(const PropagatedPlan &propagated);
  void addHomes(const PropagatedPlan &propagated);
  void markAnnotated();
  void addTensors();
  void addTensor(int64_t tensor);
  void addEdge(int64_t tensor, const End &from, const End &to, double trips);
  /// Candidates to lie, as places of equal tensors have them alike.
  struct PlacementList {
    int64_t shardings; ///< list of shardings
    solver::Coordinates labels;
  };
  End addPlacements(const PlacementList &placements, std::string name);
  const PlacementList &placementsBetween(const TensorState &state, const End &from,
                                         const std::vector<End> &users);
  int64_t kindOf(int64_t node, const Strategy &propagated);
  bool allowsResults(const RuleNode &node, const Strategy &strategy) const;
  int64_t intern(std::vector<sharding::TensorSharding> shardings);
  const AxisGroups &groupsOf(const sharding::Mesh &mesh);
  double tripsOfTensor(int64_t tensor) const;

  const PropagationGraph &graph;
  sharding::ReshardPlanner &planner;
  const OpCosts &costs;
  Options options;
  TensorReshards reshards;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  solver::Problem result;
  std::vector<int64_t> propagatedOf; ///< by node of the problem
  std::vector<Kind> kinds;
  std::vector<ShardingList> lists;
  std::vector<std::array<bool, 2>> copied;      ///< by node of the graph
  std::vector<int64_t> kindOfNode, problemNode; ///< by node of the graph, -1: none
  std::vector<End> place;                       ///< by tensor, node -1: none
  std::vector<End> home;                        ///< by tensor; of ops' results the op
  std::vector<int64_t> producer;                ///< by tensor: node of the graph, -1: none
  mutable std::map<std::pair<int64_t, int64_t>, double> knownWorking; ///< by kind and strategy
  std::vector<Sent> sent;                                             ///< by edge
  bool isHurried = false;
  std::map<const sharding::Mesh *, AxisGroups> axisGroups; ///< looked up, never iterated
  std::map<std::vector<sharding::TensorSharding>, int64_t> knownLists;
  std::map<std::vector<int64_t>, int64_t> knownKinds;            ///< by all that decides on a kind
  std::map<std::vector<int64_t>, PlacementList> knownPlacements; ///< by mesh and lists
  std::map<
      std::tuple<const sharding::Mesh *, std::vector<int64_t>, int64_t, int64_t, int64_t, double>,
      int64_t>
      knownTables;
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
