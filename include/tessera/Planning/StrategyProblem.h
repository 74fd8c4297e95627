//===- StrategyProblem.h - The joint choice of all shardings ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds the problem that propagation (Decide.cpp) and the search (StrategyGraph.cpp)
// solve. They differ in candidates, in costs of reshards and in the solver's mode:
//
//   op                    a node; its strategies are the candidates of its cuts, its cost the
//                         roofline of the work per device
//   argument, loop carry, a node; its strategies are the candidate shardings: the *home*
//   constraint            of the tensor
//   tensor of several     one more node, the *place*: the sharding from which the users
//   users                 reshard, so that users with equal needs share one reshard
//   from home to place,   an edge; its table has the modelled time of the reshard from the
//   from place to user    sharding under one strategy to that under the other
//
// An end with one candidate is not a node: the tables of its edges are added to the costs of the
// other end. Ops that share a list of strategies share shardings and tables, so building a program
// of repeated layers costs as much as one layer.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_STRATEGYPROBLEM_H
#define TESSERA_PLANNING_STRATEGYPROBLEM_H

#include "tessera/Planning/Strategies.h"

#include "tessera/Sharding/ReshardPlanner.h"
#include "tessera/Sharding/ReshardTable.h"
#include "tessera/Solver/Problem.h"

#include <chrono>
#include <limits>
#include <map>
#include <optional>

namespace tessera::dist {

using ShardingRefs = llvm::SmallVector<const sharding::TensorSharding *, 8>;

/// The sharding of a tensor under each strategy of a node. The shardings are from the graph's pool.
struct ShardingList {
  ShardingRefs distinct;
  llvm::SmallVector<size_t, 8> numbers; ///< of the distinct ones, among all known shardings
  llvm::SmallVector<int64_t, 8> of;     ///< by strategy: its index in `distinct`

  const sharding::TensorSharding &under(int64_t strategy) const { return *distinct[of[strategy]]; }
};

/// One end of an edge: a node of the problem, or a fixed sharding (`node` is -1).
struct StrategyEnd {
  int64_t node = -1;
  const ShardingList *shardings = nullptr; ///< by strategy of the node
};

/// The candidates of a strategy problem.
class StrategySource {
public:
  struct OfOp {
    StrategyList strategies;
    solver::Coordinates labels; ///< may be empty
    int64_t kept = -1;          ///< the fixed strategy; -1: the op is a node
  };
  struct OfTensor {
    ShardingRefs shardings;
    solver::Coordinates labels; ///< may be empty
    bool isFixed = false;       ///< one sharding, without a node
  };

  virtual ~StrategySource() = default;
  /// The candidates of an op with results other than a constraint.
  virtual OfOp ofOp(size_t node) = 0;
  /// The candidates of a tensor without such a producer. No shardings: a function result that keeps
  /// its producer's sharding, with contributions scattered.
  virtual OfTensor ofTensor(size_t tensor) = 0;
  /// The place of a tensor in a plan to improve: other places are then only those that several
  /// users name. Null: there is no such plan.
  virtual const sharding::TensorSharding *lastPlaceOf(size_t /*tensor*/) { return nullptr; }
  /// Labels of shardings of a tensor on a mesh.
  virtual solver::Coordinates labelsOf(const ShardingRefs & /*shardings*/,
                                       const sharding::Mesh & /*mesh*/) {
    return {};
  }
};

/// Parameters of the costs of a strategy problem.
struct StrategyPrices {
  sharding::Topology topology;
  double ofReshard = 0; ///< added to the seconds of every reshard
  /// Seconds after which the costs of reshards are approximate, see ReshardTable.
  double timeLimit = std::numeric_limits<double>::infinity();
};

/// The problem for one function, built from the candidates of a source.
class StrategyProblem {
public:
  /// `graph` must outlive this.
  StrategyProblem(const PropagationGraph &graph, StrategyPrices prices);

  /// Rebuilds the problem, with cached costs.
  void build(StrategySource &source);

  solver::Problem problem;

  /// The reshard of an edge of the problem.
  struct Sent {
    int64_t tensor;
    StrategyEnd from, to;
    double trips;
  };
  const std::vector<Sent> &sent() const { return sends; }
  /// Whether the time limit ended the computation of reshard costs: some are then the costs of one
  /// generic chain, which give no bound.
  bool hasApproximatePrices() const { return isApproximate; }

  /// The node of the problem for a node of the graph, -1 without a choice.
  int64_t nodeOf(size_t node) const { return nodes[node].problemNode; }
  /// The strategies of a node of the graph; null for control flow and constraints.
  const StrategyList &strategiesOf(size_t node) const { return nodes[node].candidates.strategies; }
  /// Seconds of one execution of a node of the problem, by strategy, without its edges.
  const std::vector<double> &secondsOf(size_t node) const { return *nodes[node].seconds; }
  /// The node of the graph that computes a tensor, or -1.
  int64_t makerOf(size_t tensor) const { return makers[tensor].node; }
  /// The sharding in which a tensor is produced.
  StrategyEnd homeOf(size_t tensor);
  /// The place of a tensor; without shardings if it has none.
  const StrategyEnd &placeOf(size_t tensor) const { return places[tensor]; }
  /// Whether a function result is in one class with the argument that it feeds.
  bool isFed(size_t tensor) const { return fedBy[tensor] >= 0; }

  /// The sharding of tensor `position` of a node (operands first) under each of these strategies.
  const ShardingList &shardingsOf(size_t node, size_t position, const StrategyList &strategies);
  /// Seconds of one execution of a node's op, by strategy.
  const std::vector<double> &secondsOf(size_t node, const StrategyList &strategies);
  /// How often a tensor is sent per execution of its function: as often as its producer runs; loop
  /// carries are sent in the body.
  double tripsOfTensor(size_t tensor) const;
  /// Whether a tie gives a loop's carry what an iteration adds to it: contributions to that are
  /// reduced once, after the loop.
  bool accumulates(const RuleNode &tie) const { return !additionsOf(tie).empty(); }
  /// The ops that add to a loop's carry in an iteration, each to what the one before made; empty if
  /// the carry is not such a sum.
  llvm::SmallVector<int64_t> additionsOf(const RuleNode &tie) const;
  /// Sets whether ops are priced as kernels of their own (OpCosts::workAlone) from now on: the
  /// liveness of a whole function, which tells its kernels, takes longer to compute than all else.
  void priceAlone(bool alone) { isAlone = alone; }
  /// The table of a tensor's reshards.
  sharding::ReshardTable &tableOf(size_t tensor) { return *pricesOf(tensor).table; }
  /// Seconds of one reshard of a tensor; both shardings are from the graph's pool.
  double reshardSeconds(size_t tensor, const sharding::TensorSharding *from,
                        const sharding::TensorSharding *to);

private:
  struct Maker {
    int64_t node = -1;
    size_t position = 0;
  };
  struct GraphNode {
    StrategySource::OfOp candidates;
    int64_t problemNode = -1;
    const std::vector<double> *seconds = nullptr;
  };
  struct PlaceList {
    const ShardingList *shardings = nullptr;
    solver::Coordinates labels;
  };
  /// Data shared by ops with the same list of strategies.
  struct ListFacts {
    StrategyList list;                                    ///< keeps the address
    llvm::SmallVector<const ShardingList *, 4> shardings; ///< by position; null: not asked for
    /// By mesh, work, and the seconds of the op's own communication by factor.
    std::map<std::tuple<const sharding::Mesh *, OpCosts::Work, std::vector<double>>,
             std::vector<double>>
        seconds;
  };

  /// Costs of the reshards of tensors of one shape, by source and target; NaN: unknown.
  struct ReshardPrices {
    using Rows = std::vector<std::vector<double>>;
    sharding::ReshardTable *table = nullptr;
    Rows exact = {}, approximateRows = {};
    /// Rows and columns count the shardings that this table was asked for: by number, or -1.
    std::vector<int32_t> places = {};
    int32_t size = 0;

    size_t placeOf(size_t number);
  };

  void addHomes(StrategySource &source);
  void addOps(StrategySource &source);
  void addTensor(size_t tensor, StrategySource &source);
  bool isOpen(size_t tensor) const;
  StrategyEnd endOf(size_t node, size_t position);
  StrategyEnd addNode(const ShardingList &shardings, solver::Coordinates labels, std::string name);
  StrategyEnd addPlace(size_t tensor, const StrategyEnd &from, llvm::ArrayRef<StrategyEnd> users,
                       StrategySource &source);
  ShardingRefs placesBetween(const StrategyEnd &from, llvm::ArrayRef<StrategyEnd> users,
                             const sharding::TensorSharding *last) const;
  StrategyEnd addProducedPlace(size_t tensor, const StrategyEnd &maker);
  /// How often an edge is passed, and how often if it reduces contributions.
  struct Trips {
    double all, reduced;
    auto operator<=>(const Trips &) const = default;
  };
  struct User {
    StrategyEnd end;
    bool accumulates;
  };
  void connect(size_t tensor, const StrategyEnd &own, llvm::ArrayRef<User> users, double trips,
               StrategySource &source);
  bool adds(int64_t node, size_t position) const;
  int64_t onlyReader(int64_t tensor) const;
  void addAdder(int64_t node);
  bool isOutside(const TensorState &carry, const RuleNode &user) const;
  void addEdge(size_t tensor, const StrategyEnd &from, const StrategyEnd &to, Trips trips);
  solver::EdgeTable tableBetween(size_t tensor, const StrategyEnd &from, const StrategyEnd &to,
                                 Trips trips);
  ReshardPrices &pricesOf(size_t tensor);
  void price(ReshardPrices &known, const ShardingList &from, const ShardingList &to,
             bool approximates, std::vector<double> &result);
  const ShardingList &intern(const ShardingRefs &byStrategy);
  ListFacts &factsOf(const StrategyList &list);
  const OpCosts &opCosts();

  const PropagationGraph &graph;
  const StrategyPrices prices;
  std::vector<Maker> makers;      ///< by tensor
  llvm::DenseSet<int64_t> adders; ///< nodes of sums that a carry adds up; never iterated
  std::vector<int64_t> fedBy;     ///< by tensor: the argument that a result feeds, else -1
  // Of the problem:
  std::vector<GraphNode> nodes;           ///< by node of the graph
  std::vector<StrategyEnd> homes, places; ///< by tensor; homes of tensors that no op produces
  std::vector<Sent> sends;
  bool isApproximate = false;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  /// The number of a table in the problem, by its key.
  std::map<
      std::tuple<const sharding::ReshardTable *, const ShardingList *, const ShardingList *, Trips>,
      int64_t>
      tables;
  AddressMap<PlaceList> knownPlaces; ///< by mesh, last place, and shardings of all ends
  // Of all problems; looked up, never iterated:
  std::optional<OpCosts> costs;
  bool isAlone = false;
  sharding::ReshardPlanner *planner = nullptr;
  AddressMap<std::unique_ptr<const ShardingList>> knownShardings;
  llvm::DenseMap<const std::vector<Strategy> *, std::unique_ptr<ListFacts>> knownLists;
  llvm::DenseMap<const sharding::TensorSharding *, size_t> numbers;
  llvm::DenseMap<std::pair<const sharding::Mesh *, mlir::Type>, ReshardPrices *> reshards;
  llvm::DenseMap<const sharding::ReshardTable *, std::unique_ptr<ReshardPrices>> reshardsOfTable;
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_STRATEGYPROBLEM_H
