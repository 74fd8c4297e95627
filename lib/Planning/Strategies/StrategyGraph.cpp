//===- StrategyGraph.cpp - The search's problem of a function -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/StrategyGraph.h"

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Planning/Gemm.h"
#include "tessera/Planning/MemoryProfile.h"
#include "tessera/Planning/WorkingSet.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

StrategyGraph::StrategyGraph(const PropagationGraph &graph, const PropagatedPlan &propagated,
                             const Topology &topology, const Options &options)
    : graph(graph), planner(plannerOf(graph.ops.front()->getContext(), Objective::time, topology)),
      built(graph, {topology, 0, options.timeLimit}) {
  Enumeration all(graph, propagated, planner, options);
  built.build(all);
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    homes.push_back(built.homeOf(t));
  for (const RuleNode &node : graph.nodes) {
    auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(node.op);
    copied.push_back(linalgOp ? packedOperands(linalgOp) : std::array<bool, 2>{});
  }
  markPropagated(propagated);
  markAnnotated();
}

void StrategyGraph::markPropagated(const PropagatedPlan &propagated) {
  propagatedOf.assign(problem().nodes.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (int64_t node = built.nodeOf(n); node >= 0) {
      const std::vector<Strategy> &own = *built.strategiesOf(n);
      propagatedOf[node] = llvm::find(own, propagated.strategies[n]) - own.begin();
    }
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (built.makerOf(t) < 0 && !built.isFed(t)) {
      const ShardingList &own = *homes[t].shardings;
      const TensorSharding *sharding = graph.keep(canonical(propagated.shardings[t]));
      auto distinct = llvm::find(own.distinct, sharding) - own.distinct.begin();
      propagatedOf[homes[t].node] = llvm::find(own.of, distinct) - own.of.begin();
    }
}

/// Pins the homes with a single allowed sharding, and marks annotated tensors. Without annotations
/// all arguments are free, and everything that they reach is to be decided.
void StrategyGraph::markAnnotated() {
  auto hasAnnotation = [&](const TensorState &tensor) {
    return sizeOf(tensor.given.open) < tensor.mesh->numDevices();
  };
  bool isAny = llvm::any_of(graph.tensors, hasAnnotation);
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const TensorState &state = graph.tensors[t];
    bool isHome = built.makerOf(t) < 0 && !built.isFed(t);
    if (isHome && state.given.open.empty())
      built.problem.pins.push_back({homes[t].node, 0});
    built.problem.nodes[homes[t].node].isAnnotated |= isAny ? hasAnnotation(state) : isHome;
  }
}

double StrategyGraph::reshardSeconds(int64_t tensor, const TensorSharding &from,
                                     const TensorSharding &to) {
  return built.tripsOfTensor(tensor) * built.tableOf(tensor).seconds(from, to);
}

double StrategyGraph::exactCost(const std::vector<int64_t> &choice) {
  double seconds = computeSeconds(choice);
  auto shardingAt = [&](const StrategyEnd &end) { return &end.shardings->under(choice[end.node]); };
  for (const StrategyProblem::Sent &each : built.sent())
    seconds +=
        each.trips * built.reshardSeconds(each.tensor, shardingAt(each.from), shardingAt(each.to));
  return seconds;
}

double StrategyGraph::leastCompute() const {
  double seconds = 0;
  for (const solver::Node &node : problem().nodes)
    seconds += *llvm::min_element(node.cost);
  return seconds;
}

double dist::bytesOnDevice(const TensorSharding &sharding, RankedTensorType type) {
  auto bytes = static_cast<double>(bytesPerElement(type.getElementType()));
  for (int64_t extent : localShape(sharding, shapeOf(type)))
    bytes *= static_cast<double>(extent);
  return alignedBytes(bytes);
}

const ReshardPlan &StrategyGraph::planOf(int64_t tensor, const TensorSharding &from,
                                         const TensorSharding &to) const {
  const TensorState &state = graph.tensors[tensor];
  return planner.plan(
      {*state.mesh, shapeOf(state.type), bytesPerElement(state.type.getElementType()), from, to});
}

double StrategyGraph::bytesOnTheWay(int64_t tensor, const TensorSharding &from,
                                    const TensorSharding &to) const {
  const TensorState &state = graph.tensors[tensor];
  auto &known = knownBytes[{state.mesh, state.type}];
  if (auto it = known.find(std::tie(from, to)); it != known.end())
    return it->second;
  const ReshardPlan &plan = planOf(tensor, from, to);
  double target = bytesOnDevice(to, state.type), most = target;
  for (size_t move = 0; move + 1 < plan.moves.size(); ++move) {
    // The result of a move is live together with that of the next one.
    bool isLast = move + 2 == plan.moves.size();
    double next = isLast ? target : bytesOnDevice(plan.moves[move + 1].target, state.type);
    most = std::max(most, bytesOnDevice(plan.moves[move].target, state.type) + next);
  }
  known.emplace(std::pair(from, to), most - target);
  return most - target;
}

double StrategyGraph::workingBytes(int64_t tensor, const std::vector<int64_t> &choice) const {
  int64_t made = built.makerOf(tensor);
  if (made < 0 || !hasWorkingSet(graph.nodes[made].op))
    return 0;
  const RuleNode &node = graph.nodes[made];
  if (node.tensors[node.rule.operands.size()] != tensor)
    return 0;
  auto [known, isNew] =
      knownWorking.try_emplace({built.strategiesOf(made).get(), choice[built.nodeOf(made)]}, 0);
  if (!isNew)
    return known->second;
  const Strategy &strategy = *strategyOf(made, choice);
  SmallVector<Type> types(node.op->getOperandTypes());
  llvm::append_range(types, node.op->getResultTypes());
  for (auto [i, type] : llvm::enumerate(types))
    if (auto global = dyn_cast<RankedTensorType>(type))
      type = RankedTensorType::get(localShape(shardingUnder(node, i, strategy), shapeOf(global)),
                                   global.getElementType());
  return known->second = dist::workingBytes(node.op, types);
}

/// Bytes per device by distinct sharding.
static std::vector<double> bytesUnder(const ShardingList &shardings, const TensorState &state) {
  std::vector<double> bytes;
  for (const TensorSharding *sharding : shardings.distinct)
    bytes.push_back(bytesOnDevice(*sharding, state.type));
  return bytes;
}

double StrategyGraph::leastBytes(int64_t tensor) const {
  std::vector<double> bytes = bytesUnder(*homes[tensor].shardings, graph.tensors[tensor]);
  return *llvm::min_element(bytes);
}

void StrategyGraph::setMemory(const std::vector<double> &atHome,
                              const std::vector<double> &atPlace) {
  for (solver::Node &node : built.problem.nodes)
    node.memory.assign(node.cost.size(), 0);
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (built.isFed(t))
      continue;
    auto add = [&](const StrategyEnd &end, double weight) {
      if (end.node < 0 || weight == 0)
        return;
      std::vector<double> bytes = bytesUnder(*end.shardings, graph.tensors[t]);
      for (size_t s = 0; s < end.shardings->of.size(); ++s)
        built.problem.nodes[end.node].memory[s] += weight * bytes[end.shardings->of[s]];
    };
    add(homes[t], atHome[t]);
    add(built.placeOf(t), atPlace[t]);
  }
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

double StrategyGraph::computeSeconds(const std::vector<int64_t> &choice) const {
  double seconds = 0;
  for (size_t node = 0; node < problem().nodes.size(); ++node)
    seconds += problem().nodes[node].cost[choice[node]];
  return seconds;
}

const TensorSharding &StrategyGraph::shardingOf(int64_t tensor,
                                                const std::vector<int64_t> &choice) const {
  return homes[tensor].shardings->under(choice[homes[tensor].node]);
}

const TensorSharding *StrategyGraph::placeOf(int64_t tensor,
                                             const std::vector<int64_t> &choice) const {
  const StrategyEnd &own = built.placeOf(tensor);
  return own.node < 0 ? nullptr : &own.shardings->under(choice[own.node]);
}

const Strategy *StrategyGraph::strategyOf(int64_t node, const std::vector<int64_t> &choice) const {
  int64_t own = built.nodeOf(node);
  return own < 0 ? nullptr : &(*built.strategiesOf(node))[choice[own]];
}
