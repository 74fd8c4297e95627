//===- ComputeAgain.cpp - Looked-up values in several shardings -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value has one sharding in a plan, and users that need another one read it resharded. Where it
// is larger than what it is computed from, that is moved instead:
//
//   r = table[index]            columns for the forward pass: index is whole, table is by columns
//   ... reshard r to whole      an update needs all rows
//
//   r2 = (reshard table to whole)[index]
//
// Only look-ups and elementwise ops are computed again, and chains of them: their work is that of
// their result. What is already there in the needed sharding is read. Several values of one source,
// as the clamped indices of a look-up and the masked ones of its derivative, are computed from it
// after one move.
//
//===----------------------------------------------------------------------===//

#include "ComputeAgain.h"
#include "Sources.h"
#include "WindowReshards.h"

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Sharding/ReshardPlanner.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

/// Values behind each other that are computed again, and those looked at for one reshard.
static constexpr int kMostDepth = 8, kMostLooks = 100;

static sharding::Topology withoutLatencies(sharding::Topology topology) {
  for (sharding::LinkClass &link : topology.links)
    link.link.alpha = 0;
  return topology;
}

namespace {

class AgainComputer : WindowReshards {
public:
  AgainComputer(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
                const CostOptions &cost)
      : WindowReshards(meshes, shardings), function(function), cost(cost),
        planner(plannerOf(function.getContext(), cost.objective, cost.topology)),
        plannerWithoutLatencies(plannerOf(function.getContext(), sharding::Objective::time,
                                          withoutLatencies(cost.topology))),
        sources(meshes, shardings) {}

  void run() {
    SmallVector<ReshardOp> roots;
    function.walk([&](ReshardOp op) {
      if (!isMovable(op))
        return;
      present[keyOf(op.getOperand(), shardingOf(op.getResult()))].push_back(op);
      if (canBeComputed(op.getOperand()))
        roots.push_back(op);
    });
    if (roots.empty())
      return;
    costs.emplace(function, cost.topology);
    // Decided before any is made: the costs are those of the function as it is.
    llvm::DenseSet<Operation *> chosen;                                 // looked up only
    std::map<std::pair<Block *, Key>, SmallVector<ReshardOp>> bySource; // looked up only
    SmallVector<std::pair<Block *, Key>> order;
    for (ReshardOp op : roots) {
      TensorSharding target = shardingOf(op.getResult());
      auto wayTo = [&](bool goesOn) {
        looks = 0;
        return computed(op.getOperand(), target, op, kMostDepth, goesOn);
      };
      Sent direct = sentTo(op.getOperand(), target, op);
      std::optional<Way> way = wayTo(/*goesOn=*/false);
      if (way && way->total().bytes <= direct.bytes && way->total().seconds() < direct.seconds()) {
        ways[op] = std::move(*way);
        chosen.insert(op);
        continue;
      }
      way = wayTo(/*goesOn=*/true);
      if (!way || way->moves.size() != 1)
        continue;
      std::pair<Block *, Key> key{op->getBlock(), way->moves.begin()->first};
      SmallVector<ReshardOp> &group = bySource[key];
      if (group.empty())
        order.push_back(key);
      group.push_back(op);
      ways[op] = std::move(*way);
    }
    for (auto &key : order)
      if (ArrayRef<ReshardOp> group = bySource[key]; movesLess(group))
        chosen.insert(group.begin(), group.end());
    for (ReshardOp op : roots)
      if (chosen.contains(op)) {
        made.clear();
        Value value = make(op.getOperand(), shardingOf(op.getResult()), op, ways[op]);
        op.getResult().replaceAllUsesWith(value);
        replaced[op] = value;
      }
    if (!chosen.empty())
      eraseUnused();
  }

private:
  /// A value, by number, and the sharding that it is needed in.
  using Key = std::pair<size_t, TensorSharding>;
  Key keyOf(Value value, const TensorSharding &target) {
    return {numbers.try_emplace(value, numbers.size()).first->second, target};
  }

  /// What moves or ops take. Moves at one place are joined later, so that one latency counts.
  struct Sent {
    double rest = 0, latency = 0; ///< seconds
    int64_t bytes = 0;
    double seconds() const { return rest + latency; }
    void add(const Sent &other) {
      rest += other.rest;
      latency = std::max(latency, other.latency);
      bytes += other.bytes;
    }
  };
  /// How a value gets to a sharding.
  struct Way {
    std::map<Key, sharding::OpSharding> ops; ///< that are computed again
    std::map<Key, Sent> moves;               ///< of what they read
    double seconds = 0;                      ///< of the ops

    Sent total() const {
      Sent all{seconds, 0, 0};
      for (const auto &[key, sent] : moves)
        all.add(sent);
      return all;
    }
    void add(const Way &other) {
      ops.insert(other.ops.begin(), other.ops.end());
      moves.insert(other.moves.begin(), other.moves.end());
      seconds += other.seconds;
    }
  };

  /// Whether moving the one source of several values once takes less than moving them.
  bool movesLess(ArrayRef<ReshardOp> group) {
    Sent direct, again = ways[group.front()].moves.begin()->second;
    for (ReshardOp op : group) {
      direct.add(sentTo(op.getOperand(), shardingOf(op.getResult()), op));
      again.rest += ways[op].seconds;
    }
    return again.bytes < direct.bytes && again.seconds() < direct.seconds();
  }

  /// Whether a reshard moves a value within a mesh, without windows and reductions.
  bool isMovable(ReshardOp op) const {
    ShardingAttr from = getSharding(op.getOperand());
    if (!from || from.getMesh() != op.getSharding().getMesh() || op->hasAttr(DistDialect::kMove) ||
        op.getFillAttr())
      return false;
    TensorSharding has = shardingOf(op.getOperand()), needs = shardingOf(op.getResult());
    return !has.isPartial() && !needs.isPartial() && has.windows.empty() && needs.windows.empty() &&
           has != needs;
  }

  /// Whether a value is looked up or computed element by element, by one op alone.
  bool canBeComputed(Value value) {
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (!op || op->getNumResults() != 1 || !op.hasPureTensorSemantics() || !getOpSharding(op) ||
        Sources::isSource(op) ||
        !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
        !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isProjectedPermutation())
      return false;
    const ShardedOp &own = shardings.of(op);
    return own.sharding.forwards.empty() && own.sharding.windows.empty() &&
           op.getNumReductionLoops() == numLookedUp(op);
  }

  /// Reduction loops of which one iteration counts, as an index says.
  static unsigned numLookedUp(linalg::GenericOp op) {
    SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
    return llvm::count_if(selectedLoops(op), [&](const SelectedLoop &selected) {
      return kinds[selected.loop] == utils::IteratorType::reduction;
    });
  }

  /// What moving a value to a sharding takes in front of `at`.
  Sent sentTo(Value value, const TensorSharding &target, ReshardOp at) {
    if (shardingOf(value) == target)
      return {};
    if (target.windows.empty() && isPresent(value, target, at))
      return {};
    auto type = cast<RankedTensorType>(value.getType());
    const sharding::Mesh &mesh = meshes.get(at.getSharding().getMesh());
    sharding::ReshardProblem problem{mesh, shapeOf(type), bytesPerElement(type.getElementType()),
                                     shardingOf(value), target};
    const sharding::ReshardPlan &plan = planner.plan(problem);
    double rest = plannerWithoutLatencies.plan(problem).seconds;
    return {rest, std::max(0.0, plan.seconds - rest), plan.traffic.wireBytes};
  }

  /// A reshard of the value to a sharding that is there in front of another one.
  Value isPresent(Value value, const TensorSharding &target, ReshardOp at) {
    auto known = present.find(keyOf(value, target));
    if (known != present.end())
      for (ReshardOp op : known->second)
        if (op != at && op->getBlock() == at->getBlock() && op->isBeforeInBlock(at))
          return replaced.contains(op) ? replaced.lookup(op) : Value(op.getResult());
    return {};
  }

  /// How a value is computed again in front of `at`; nothing if that is impossible. An operand is
  /// computed again if that takes less time, or, to find what several values have in common, if it
  /// sends no more.
  std::optional<Way> computed(Value value, const TensorSharding &target, ReshardOp at, int depth,
                              bool goesOn) {
    if (depth == 0 || ++looks > kMostLooks || !canBeComputed(value) ||
        value.getDefiningOp()->getBlock() != at->getBlock())
      return std::nullopt;
    Operation *op = value.getDefiningOp();
    FlatSymbolRefAttr name = at.getSharding().getMesh();
    const sharding::Mesh &mesh = meshes.get(name);
    const sharding::ShardingRule &rule = shardings.of(op).rule;
    std::optional<sharding::OpSharding> own = opShardingFor(op, mesh, rule, target);
    if (!own)
      return std::nullopt;
    // Operands may be computed of one source, which is moved once.
    Way apart{{{keyOf(value, target), *own}}, {}, secondsOf(op, *own, mesh)}, together = apart;
    auto isBetter = [&](const Sent &again, const Sent &direct) {
      return again.bytes <= direct.bytes && (goesOn || again.seconds() < direct.seconds());
    };
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Value source = sourceOf(operand, name);
      if (!source || shardingOf(source).isPartial() || !shardingOf(source).windows.empty())
        return std::nullopt;
      TensorSharding need = operandSharding(rule, i, *own);
      if (!need.windows.empty() || need.isPartial())
        return std::nullopt;
      if (Operation *from = source.getDefiningOp(); from && Sources::isSource(from))
        continue;
      Sent direct = sentTo(source, need, at);
      if (direct.bytes == 0)
        continue;
      std::optional<Way> again = computed(source, need, at, depth - 1, goesOn);
      Way moved{{}, {{keyOf(source, need), direct}}, 0};
      apart.add(again && isBetter(again->total(), direct) ? *again : moved);
      together.add(again ? *again : moved);
    }
    return isBetter(together.total(), apart.total()) ? together : apart;
  }

  double secondsOf(Operation *op, const sharding::OpSharding &own, const sharding::Mesh &mesh) {
    const sharding::ShardingRule &rule = shardings.of(op).rule;
    double iterations = 1;
    for (auto [factor, axes] : llvm::zip_equal(rule.factors, own.factors))
      iterations *= static_cast<double>(sharding::ceilDiv(factor.size, sharding::sizeOf(axes)));
    SmallVector<double> elements;
    auto add = [&](Value value, const TensorSharding &sharding) {
      elements.push_back(1);
      for (int64_t extent : localShape(sharding, shapeOf(cast<RankedTensorType>(value.getType()))))
        elements.back() *= static_cast<double>(extent);
    };
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      add(operand, operandSharding(rule, i, own));
    add(op->getResult(0), sharding::resultSharding(rule, 0, own));
    return costs->seconds(op, iterations, elements, mesh.numDevices());
  }

  /// The value in a sharding in front of `at`, computed or moved.
  Value make(Value value, const TensorSharding &target, ReshardOp at, const Way &way) {
    if (shardingOf(value) == target)
      return value;
    if (Value known = made[keyOf(value, target)])
      return known;
    FlatSymbolRefAttr name = at.getSharding().getMesh();
    auto attr = ShardingAttr::get(name, meshes.get(name), target, at.getContext());
    auto own = way.ops.find(keyOf(value, target));
    if (own == way.ops.end()) {
      if (Value there = isPresent(value, target, at))
        return there;
      if (Operation *from = value.getDefiningOp(); from && Sources::isSource(from))
        if (Value source = sources.make(from, attr))
          return source;
      ReshardOp moved =
          reshard(at, at.getLoc(), value, name, target, {}, at->getDiscardableAttrDictionary());
      present[keyOf(value, target)].push_back(moved);
      return moved.getResult();
    }
    Operation *op = value.getDefiningOp();
    const sharding::ShardingRule &rule = shardings.of(op).rule;
    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(
          make(sourceOf(operand, name), operandSharding(rule, i, own->second), at, way));
    OpBuilder builder(at);
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    setOpSharding(copy, name, meshes.get(name), own->second);
    setSharding(copy->getResult(0), attr);
    return made[keyOf(value, target)] = copy->getResult(0);
  }

  /// Erases what was replaced and what only that read, readers first.
  void eraseUnused() {
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (isa<ReshardOp, linalg::GenericOp>(op) || Sources::isSource(op))
        ops.push_back(op);
    });
    for (Operation *op : llvm::reverse(ops))
      if (isa<ReshardOp>(op) ? op->use_empty() : isOpTriviallyDead(op))
        op->erase();
  }

  func::FuncOp function;
  const CostOptions &cost;
  sharding::ReshardPlanner &planner, &plannerWithoutLatencies;
  Sources sources;
  std::optional<OpCosts> costs;
  llvm::DenseMap<Value, size_t> numbers; ///< looked up only
  std::map<Key, SmallVector<ReshardOp>> present;
  int looks = 0;                               ///< for the reshard at hand
  llvm::DenseMap<Operation *, Way> ways;       ///< by root; looked up only
  std::map<Key, Value> made;                   ///< for a root; looked up only
  llvm::DenseMap<Operation *, Value> replaced; ///< roots, by what took their place; looked up only
};

} // namespace

void dist::computeAgain(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
                        const CostOptions &cost) {
  AgainComputer(function, meshes, shardings, cost).run();
}
