//===- StrategyGraph.cpp - A function as a problem of the search -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StrategyGraph.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Planning/Gemm.h"
#include "tessera/Planning/MemoryProfile.h"
#include "tessera/Planning/WorkingSet.h"
#include "tessera/Sharding/Selections.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

StrategyGraph::StrategyGraph(const PropagationGraph &graph, const PropagatedPlan &propagated,
                             ReshardPlanner &planner, const OpCosts &costs, const Options &options)
    : graph(graph), planner(planner), costs(costs), options(options), reshards(graph, planner),
      kindOfNode(graph.nodes.size(), -1), problemNode(graph.nodes.size(), -1),
      place(graph.tensors.size()), home(graph.tensors.size()), producer(graph.tensors.size(), -1) {
  addOps(propagated);
  addHomes(propagated);
  markAnnotated();
  addTensors();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Whether an op decides how it is cut: neither a tie of control flow nor a constraint.
static bool isChoosing(const RuleNode &node) {
  return node.op && node.op->getNumResults() > 0 && !isa<ShardTensorOp>(node.op);
}

/// Whether what the user wrote on an op's results leaves room for a strategy.
bool StrategyGraph::allowsResults(const RuleNode &node, const Strategy &strategy) const {
  for (size_t i = node.rule.operands.size(); i < node.tensors.size(); ++i)
    if (node.tensors[i] >= 0 &&
        !allows(graph.tensors[node.tensors[i]], shardingUnder(node, i, strategy)))
      return false;
  return true;
}

/// Everything that the strategies and costs of an op depend on, as numbers.
static std::vector<int64_t> keyOf(const PropagationGraph &graph, const OpCosts &costs,
                                  const RuleNode &node, const Strategy &propagated) {
  std::vector<int64_t> key;
  auto addAxes = [&](const AxisList &axes) {
    key.push_back(static_cast<int64_t>(axes.size()));
    for (const AxisRef &axis : axes)
      key.insert(key.end(), {axis.axis, axis.pre, axis.size});
  };
  key.push_back(reinterpret_cast<int64_t>(&meshOf(graph, node)));
  key.push_back(operationsOf(node.op));
  key.push_back(isMadeOfScalars(node.op));
  for (double count : costs.loadsAndStores(node.op))
    key.push_back(std::llround(1e6 * count));
  key.push_back(node.rule.movesOnly);
  // What the op sends inside, factor by factor.
  const Mesh &mesh = meshOf(graph, node);
  FactorAxes cut(node.rule.factors.size());
  for (AxisList &axes : cut) {
    for (size_t axis = 0; axis < mesh.shape.size(); ++axis)
      axes.push_back(AxisRef::full(mesh, static_cast<int64_t>(axis)));
    key.push_back(std::llround(1e12 * costs.communicationSeconds(node.op, cut, mesh)));
    axes.clear();
  }
  for (const Factor &factor : node.rule.factors)
    key.insert(key.end(), {factor.size, static_cast<int64_t>(factor.kind),
                           static_cast<int64_t>(factor.reduction)});
  for (const std::vector<TensorRule> *rules : {&node.rule.operands, &node.rule.results})
    for (const TensorRule &rule : *rules) {
      key.push_back(-2);
      for (const DimRule &dim : rule) {
        key.insert(key.end(), {-3, dim.stride, dim.shift, dim.extent, dim.isWindow});
        if (const std::optional<sharding::Segment> &segment = dim.segment)
          key.insert(key.end(), {-5, segment->from, segment->fromStep, segment->to, segment->toStep,
                                 segment->count, dim.segmentOf, dim.isNarrow});
        key.insert(key.end(), dim.factors.begin(), dim.factors.end());
      }
    }
  key.push_back(-4);
  key.insert(key.end(), node.rule.accumulatorOf.begin(), node.rule.accumulatorOf.end());
  for (int64_t tensor : node.tensors) {
    if (tensor < 0) {
      key.push_back(-1);
      continue;
    }
    Type element = graph.tensors[tensor].type.getElementType();
    key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(element.getAsOpaquePointer())));
    for (int64_t extent : graph.tensors[tensor].type.getShape())
      key.push_back(extent);
  }
  for (const AxisList &axes : propagated.factors)
    addAxes(axes);
  for (const Forward &forward : propagated.forwards) {
    addAxes({forward.partial.axis});
    key.push_back(static_cast<int64_t>(forward.partial.kind));
    key.insert(key.end(), forward.operands.begin(), forward.operands.end());
  }
  key.push_back(-5);
  for (const SmallVector<int64_t> &operands : forwardSetsOf(node)) {
    key.push_back(-6);
    key.insert(key.end(), operands.begin(), operands.end());
  }
  for (size_t i = node.rule.operands.size(); i < node.tensors.size(); ++i)
    if (node.tensors[i] >= 0) {
      const TensorSharding &given = graph.tensors[node.tensors[i]].given;
      for (const AxisList &axes : given.dims)
        addAxes(axes);
      addAxes(given.open);
    }
  return key;
}

/// How many devices of its mesh a strategy gives work of their own.
static int64_t devicesUsed(const Strategy &strategy) {
  int64_t devices = 1;
  for (const AxisList &axes : strategy.factors)
    devices *= sizeOf(axes);
  return devices;
}

/// Of a contraction only the strategies remain that use as many devices as any does.
static void keepFullest(Candidates &candidates) {
  int64_t most = 1;
  for (const Strategy &strategy : candidates.strategies)
    most = std::max(most, devicesUsed(strategy));
  Candidates kept;
  for (size_t s = 0; s < candidates.strategies.size(); ++s)
    if (devicesUsed(candidates.strategies[s]) == most) {
      kept.strategies.push_back(candidates.strategies[s]);
      kept.labels.push_back(candidates.labels[s]);
    }
  candidates = std::move(kept);
}

const AxisGroups &StrategyGraph::groupsOf(const Mesh &mesh) {
  auto [it, isNew] = axisGroups.try_emplace(&mesh);
  if (isNew)
    it->second = groupAxes(graph, mesh, planner.linksOf(mesh));
  return it->second;
}

int64_t StrategyGraph::kindOf(int64_t index, const Strategy &propagated) {
  const RuleNode &node = graph.nodes[index];
  std::vector<int64_t> key = keyOf(graph, costs, node, propagated);
  auto [known, isNew] = knownKinds.try_emplace(std::move(key), static_cast<int64_t>(kinds.size()));
  if (!isNew)
    return known->second;
  Candidates candidates = candidatesOf(node, meshOf(graph, node), groupsOf(meshOf(graph, node)),
                                       options.mostStrategies);
  if (options.fullyUseDevices && combinesTensors(node.op))
    keepFullest(candidates);
  Kind kind;
  std::vector<AxisLabels> allLabels;
  for (size_t s = 0; s < candidates.strategies.size(); ++s)
    if (allowsResults(node, candidates.strategies[s])) {
      kind.strategies.push_back(std::move(candidates.strategies[s]));
      allLabels.push_back(std::move(candidates.labels[s]));
    }
  // The plan that propagation alone makes is always among those that are searched.
  if (!llvm::is_contained(kind.strategies, propagated)) {
    kind.strategies.push_back(propagated);
    AxisLabels labels(meshOf(graph, node).numAxes(), kWhole);
    for (size_t f = 0; f < propagated.factors.size(); ++f)
      for (const AxisRef &axis : propagated.factors[f])
        labels[axis.axis] = static_cast<int64_t>(f);
    for (const Forward &forward : propagated.forwards)
      labels[forward.partial.axis.axis] = static_cast<int64_t>(node.rule.factors.size());
    allLabels.push_back(std::move(labels));
  }
  kind.labels = std::move(allLabels);
  for (const Strategy &strategy : kind.strategies)
    kind.seconds.push_back(secondsUnder(costs, graph, node, strategy));
  for (size_t i = 0; i < node.tensors.size(); ++i) {
    std::vector<TensorSharding> shardings;
    for (const Strategy &strategy : kind.strategies)
      shardings.push_back(node.tensors[i] >= 0 ? shardingUnder(node, i, strategy)
                                               : TensorSharding());
    kind.shardings.push_back(intern(std::move(shardings)));
  }
  kinds.push_back(std::move(kind));
  return known->second;
}

int64_t StrategyGraph::intern(std::vector<TensorSharding> shardings) {
  auto [it, isNew] = knownLists.try_emplace(shardings, static_cast<int64_t>(lists.size()));
  if (!isNew)
    return it->second;
  ShardingList list;
  std::map<TensorSharding, int64_t> numbers;
  for (TensorSharding &sharding : shardings) {
    auto [known, fresh] = numbers.try_emplace(sharding, static_cast<int64_t>(list.distinct.size()));
    if (fresh)
      list.distinct.push_back(std::move(sharding));
    list.of.push_back(known->second);
  }
  lists.push_back(std::move(list));
  return it->second;
}

void StrategyGraph::addOps(const PropagatedPlan &propagated) {
  for (const RuleNode &node : graph.nodes) {
    auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(node.op);
    copied.push_back(linalgOp ? packedOperands(linalgOp) : std::array<bool, 2>{});
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const RuleNode &node = graph.nodes[n];
    if (!isChoosing(node))
      continue;
    kindOfNode[n] = kindOf(static_cast<int64_t>(n), propagated.strategies[n]);
    const Kind &kind = kinds[kindOfNode[n]];
    problemNode[n] = static_cast<int64_t>(result.nodes.size());
    solver::Node own;
    own.name = node.op->getName().getStringRef().str();
    own.coordinates = kind.labels;
    double trips = tripsOf(node.op);
    for (double seconds : kind.seconds)
      own.cost.push_back(trips * seconds);
    result.nodes.push_back(std::move(own));
    auto it = llvm::find(kind.strategies, propagated.strategies[n]);
    propagatedOf.push_back(it - kind.strategies.begin());
    for (size_t i = node.rule.operands.size(); i < node.tensors.size(); ++i)
      if (int64_t tensor = node.tensors[i]; tensor >= 0) {
        home[tensor] = {problemNode[n], kind.shardings[i]};
        producer[tensor] = static_cast<int64_t>(n);
      }
  }
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

StrategyGraph::End StrategyGraph::addPlacements(const PlacementList &placements, std::string name) {
  solver::Node node;
  node.name = std::move(name);
  node.cost.assign(lists[placements.shardings].of.size(), 0);
  node.coordinates = placements.labels;
  End end{static_cast<int64_t>(result.nodes.size()), placements.shardings};
  result.nodes.push_back(std::move(node));
  propagatedOf.push_back(-1);
  return end;
}

void StrategyGraph::addHomes(const PropagatedPlan &propagated) {
  for (size_t r = 0; r < graph.results.size(); ++r)
    if (graph.results[r] >= 0 && graph.fed[r] >= 0)
      producer[graph.results[r]] = -2; // one class with the argument that it feeds
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (producer[t] != -1)
      continue;
    const TensorState &state = graph.tensors[t];
    Placements placements = placementsOf(state, groupsOf(*state.mesh), options.mostStrategies);
    TensorSharding sharding = canonical(propagated.shardings[t]);
    auto it = llvm::find(placements.shardings, sharding);
    auto index = it - placements.shardings.begin();
    if (it == placements.shardings.end()) {
      placements.shardings.push_back(sharding);
      placements.labels.push_back(labelsOf(sharding, state.mesh->numAxes()));
    }
    home[t] = addPlacements({intern(std::move(placements.shardings)), std::move(placements.labels)},
                            state.name);
    propagatedOf.back() = index;
    if (state.given.open.empty())
      result.pins.push_back({home[t].node, 0});
  }
  for (size_t r = 0; r < graph.results.size(); ++r)
    if (graph.results[r] >= 0 && graph.fed[r] >= 0)
      home[graph.results[r]] = home[graph.fed[r]];
}

/// Tensors of which the user says anything. Where there is none, arguments are as free as can be,
/// and all that they reach is to be decided.
void StrategyGraph::markAnnotated() {
  auto isSaid = [&](const TensorState &tensor) {
    return sizeOf(tensor.given.open) < tensor.mesh->numDevices();
  };
  bool isAny = llvm::any_of(graph.tensors, isSaid);
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (home[t].node >= 0)
      result.nodes[home[t].node].isAnnotated |=
          isAny ? isSaid(graph.tensors[t]) : producer[t] == -1;
}

double StrategyGraph::tripsOfTensor(int64_t tensor) const {
  return dist::tripsOfTensor(graph, tensor,
                             producer[tensor] >= 0 ? graph.nodes[producer[tensor]].op : nullptr);
}

void StrategyGraph::addTensors() {
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (producer[t] != -2 && !(producer[t] >= 0 && isMadeOfScalars(graph.nodes[producer[t]].op)))
      addTensor(static_cast<int64_t>(t));
}

/// Every way in which a tensor is made or read, but for windows: there a reshard of several can be
/// shared.
const StrategyGraph::PlacementList &
StrategyGraph::placementsBetween(const TensorState &state, const End &from,
                                 const std::vector<End> &users) {
  std::vector<int64_t> key{reinterpret_cast<int64_t>(state.mesh), from.shardings};
  for (const End &user : users)
    key.push_back(user.shardings);
  auto [it, isNew] = knownPlacements.try_emplace(std::move(key));
  if (!isNew)
    return it->second;
  std::vector<TensorSharding> places;
  std::vector<AxisLabels> labels;
  auto add = [&](const End &end) {
    for (const TensorSharding &sharding :
         llvm::map_range(lists[end.shardings].distinct, sharding::withoutSelections))
      if (sharding.windows.empty() && !llvm::is_contained(places, sharding)) {
        places.push_back(sharding);
        labels.push_back(labelsOf(sharding, state.mesh->numAxes()));
      }
  };
  add(from);
  for (const End &user : users)
    add(user);
  it->second = {intern(std::move(places)), std::move(labels)};
  return it->second;
}

void StrategyGraph::addTensor(int64_t tensor) {
  std::vector<End> users;
  for (int64_t n : graph.nodesOf[tensor]) {
    const RuleNode &node = graph.nodes[n];
    bool isRead = !node.op || isa<ShardTensorOp>(node.op);
    if (isRead && node.tensors.front() == tensor && home[node.tensors.back()].node >= 0) {
      if (End reader = home[node.tensors.back()]; reader.node != home[tensor].node)
        users.push_back(reader);
    } else if (problemNode[n] >= 0) {
      for (size_t i = 0; i < node.rule.operands.size(); ++i)
        if (node.tensors[i] == tensor)
          users.push_back({problemNode[n], kinds[kindOfNode[n]].shardings[i]});
    }
  }
  const End &own = home[tensor];
  if (own.node < 0)
    return;
  auto makePlace = [&]() {
    const TensorState &state = graph.tensors[tensor];
    return place[tensor] = addPlacements(placementsBetween(state, own, users), state.name);
  };
  double trips = tripsOfTensor(tensor);
  joinUsers<End>(own, users, makePlace,
                 [&](const End &from, const End &to) { addEdge(tensor, from, to, trips); });
}

double StrategyGraph::reshardSeconds(int64_t tensor, const TensorSharding &from,
                                     const TensorSharding &to) {
  return tripsOfTensor(tensor) * reshards.of(tensor).seconds(from, to);
}

void StrategyGraph::addEdge(int64_t tensor, const End &from, const End &to, double trips) {
  const TensorState &state = graph.tensors[tensor];
  auto [it, isNew] = knownTables.try_emplace({state.mesh, shapeOf(state.type),
                                              bytesPerElement(state.type.getElementType()),
                                              from.shardings, to.shardings, trips},
                                             static_cast<int64_t>(result.tables.size()));
  if (isNew) {
    const ShardingList &sources = lists[from.shardings], &targets = lists[to.shardings];
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >
        options.timeLimit)
      isHurried = true;
    std::vector<double> distinct =
        reshards.of(state).seconds(sources.distinct, targets.distinct, isHurried);
    for (double &seconds : distinct)
      seconds *= trips;
    solver::EdgeTable table{
        static_cast<int64_t>(sources.of.size()), static_cast<int64_t>(targets.of.size()), {}};
    table.cost.reserve(table.rows * table.columns);
    for (int64_t row : sources.of)
      for (int64_t column : targets.of)
        table.cost.push_back(
            distinct[row * static_cast<int64_t>(targets.distinct.size()) + column]);
    result.tables.push_back(std::move(table));
  }
  result.edges.push_back({from.node, to.node, it->second});
  sent.push_back({tensor, from, to, trips});
}

double StrategyGraph::exactCost(const std::vector<int64_t> &choice) {
  double seconds = computeSeconds(choice);
  auto shardingAt = [&](const End &end) -> const TensorSharding & {
    return lists[end.shardings].distinct[lists[end.shardings].of[choice[end.node]]];
  };
  for (const Sent &each : sent) {
    ReshardTable &times = reshards.of(each.tensor);
    seconds += each.trips * times.seconds(shardingAt(each.from), shardingAt(each.to));
  }
  return seconds;
}

double StrategyGraph::leastCompute() const {
  double seconds = 0;
  for (const solver::Node &node : result.nodes)
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
    // What a step makes is there with what the next one makes of it.
    bool isLast = move + 2 == plan.moves.size();
    double next = isLast ? target : bytesOnDevice(plan.moves[move + 1].target, state.type);
    most = std::max(most, bytesOnDevice(plan.moves[move].target, state.type) + next);
  }
  known.emplace(std::pair(from, to), most - target);
  return most - target;
}

double StrategyGraph::workingBytes(int64_t tensor, const std::vector<int64_t> &choice) const {
  int64_t made = producer[tensor];
  if (made < 0 || !hasWorkingSet(graph.nodes[made].op))
    return 0;
  const RuleNode &node = graph.nodes[made];
  if (node.tensors[node.rule.operands.size()] != tensor)
    return 0;
  auto [known, isNew] = knownWorking.try_emplace({kindOfNode[made], choice[problemNode[made]]}, 0);
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

/// Bytes on a device by sharding of a list.
static std::vector<double> bytesUnder(const std::vector<TensorSharding> &shardings,
                                      const TensorState &state) {
  std::vector<double> bytes;
  for (const TensorSharding &sharding : shardings)
    bytes.push_back(bytesOnDevice(sharding, state.type));
  return bytes;
}

double StrategyGraph::leastBytes(int64_t tensor) const {
  if (home[tensor].node < 0)
    return 0;
  std::vector<double> bytes =
      bytesUnder(lists[home[tensor].shardings].distinct, graph.tensors[tensor]);
  return *llvm::min_element(bytes);
}

void StrategyGraph::setMemory(const std::vector<double> &atHome,
                              const std::vector<double> &atPlace) {
  for (solver::Node &node : result.nodes)
    node.memory.assign(node.cost.size(), 0);
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (producer[t] == -2)
      continue;
    const TensorState &state = graph.tensors[t];
    auto add = [&](const End &end, double weight) {
      if (end.node < 0 || weight == 0)
        return;
      const ShardingList &list = lists[end.shardings];
      std::vector<double> bytes = bytesUnder(list.distinct, state);
      for (size_t s = 0; s < list.of.size(); ++s)
        result.nodes[end.node].memory[s] += weight * bytes[list.of[s]];
    };
    add(home[t], atHome[t]);
    add(place[t], atPlace[t]);
  }
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

double StrategyGraph::computeSeconds(const std::vector<int64_t> &choice) const {
  double seconds = 0;
  for (size_t node = 0; node < result.nodes.size(); ++node)
    seconds += result.nodes[node].cost[choice[node]];
  return seconds;
}

TensorSharding StrategyGraph::shardingOf(int64_t tensor, const std::vector<int64_t> &choice) const {
  const End &own = home[tensor];
  const ShardingList &list = lists[own.shardings];
  return list.distinct[list.of[choice[own.node]]];
}

std::optional<TensorSharding> StrategyGraph::placeOf(int64_t tensor,
                                                     const std::vector<int64_t> &choice) const {
  const End &own = place[tensor];
  if (own.node < 0)
    return std::nullopt;
  const ShardingList &list = lists[own.shardings];
  return list.distinct[list.of[choice[own.node]]];
}

const Strategy *StrategyGraph::strategyOf(int64_t node, const std::vector<int64_t> &choice) const {
  return kindOfNode[node] < 0 ? nullptr
                              : &kinds[kindOfNode[node]].strategies[choice[problemNode[node]]];
}
