//===- StrategyProblem.cpp - The joint choice of all shardings ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/StrategyProblem.h"

#include "tessera/Planning/OpenResults.h"

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Sharding/Selections.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

StrategyProblem::StrategyProblem(const PropagationGraph &graph, StrategyPrices prices)
    : graph(graph), prices(std::move(prices)), makers(graph.tensors.size()),
      fedBy(graph.tensors.size(), -1) {
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (const RuleNode &node = graph.nodes[n]; decidesStrategy(node))
      for (size_t i = node.rule.operands.size(); i < node.tensors.size(); ++i)
        if (node.tensors[i] >= 0)
          makers[node.tensors[i]] = {static_cast<int64_t>(n), i};
  for (size_t r = 0; r < graph.results.size(); ++r)
    if (graph.results[r] >= 0)
      fedBy[graph.results[r]] = graph.fed[r];
  for (const RuleNode &node : graph.nodes)
    if (!node.op)
      for (int64_t adder : additionsOf(node))
        if (graph.nodes[adder].rule.isElementwise()) // not one that stacks values of iterations
          addAdder(adder);
}

void StrategyProblem::build(StrategySource &source) {
  problem = {};
  nodes.assign(graph.nodes.size(), {});
  homes.assign(graph.tensors.size(), {});
  places.assign(graph.tensors.size(), {});
  sends.clear();
  tables.clear();
  knownPlaces.clear();
  addOps(source);
  addHomes(source);
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    // Values that depend only on scalars are recomputed at each use.
    int64_t maker = makers[t].node;
    if (!isFed(t) && isOpen(t) && !(maker >= 0 && isMadeOfScalars(graph.nodes[maker].op)))
      addTensor(t, source);
  }
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void StrategyProblem::addOps(StrategySource &source) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!decidesStrategy(graph.nodes[n]))
      continue;
    GraphNode &node = nodes[n];
    node.candidates = source.ofOp(n);
    if (node.candidates.kept >= 0)
      continue;
    node.problemNode = static_cast<int64_t>(problem.nodes.size());
    node.seconds = &secondsOf(n, node.candidates.strategies);
    Operation *op = graph.nodes[n].op;
    solver::Node &own = problem.nodes.emplace_back();
    own.name = op->getName().getStringRef().str();
    own.coordinates = node.candidates.labels;
    // The op's own iterations count, so that no plan undoes annotated cuts to save a few bytes.
    double trips = tripsOf(op);
    for (double seconds : *node.seconds)
      own.cost.push_back(trips * seconds);
  }
}

void StrategyProblem::addHomes(StrategySource &source) {
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (makers[t].node >= 0 || isFed(t))
      continue;
    StrategySource::OfTensor candidates = source.ofTensor(t);
    if (candidates.shardings.empty())
      continue;
    const ShardingList &shardings = intern(candidates.shardings);
    homes[t] = candidates.isFixed
                   ? StrategyEnd{-1, &shardings}
                   : addNode(shardings, std::move(candidates.labels), graph.tensors[t].name);
  }
}

StrategyEnd StrategyProblem::addNode(const ShardingList &shardings, solver::Coordinates labels,
                                     std::string name) {
  StrategyEnd end{static_cast<int64_t>(problem.nodes.size()), &shardings};
  solver::Node &node = problem.nodes.emplace_back();
  node.name = std::move(name);
  node.cost.assign(shardings.of.size(), 0);
  node.coordinates = std::move(labels);
  return end;
}

StrategyEnd StrategyProblem::endOf(size_t n, size_t position) {
  const GraphNode &node = nodes[n];
  const ShardingList &all = shardingsOf(n, position, node.candidates.strategies);
  if (node.problemNode >= 0)
    return {node.problemNode, &all};
  return {-1, &intern({&all.under(node.candidates.kept)})};
}

StrategyEnd StrategyProblem::homeOf(size_t tensor) {
  if (makers[tensor].node >= 0)
    return endOf(makers[tensor].node, makers[tensor].position);
  return homes[isFed(tensor) ? fedBy[tensor] : tensor];
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

/// Whether the producer of a tensor or one of its users has a choice.
bool StrategyProblem::isOpen(size_t tensor) const {
  auto isChoosing = [&](int64_t node) {
    int64_t last = graph.nodes[node].tensors.back();
    return nodes[node].problemNode >= 0 || (last >= 0 && homes[last].node >= 0);
  };
  return homes[tensor].node >= 0 || llvm::any_of(graph.nodesOf[tensor], isChoosing);
}

/// Connects the producer of a tensor with its users. What reads a carry outside of its loop reads
/// the value of the last iteration, once.
void StrategyProblem::addTensor(size_t tensor, StrategySource &source) {
  StrategyEnd own = homeOf(tensor);
  const TensorState &state = graph.tensors[tensor];
  SmallVector<User> users, outside;
  bool keepsProducedSharding = false;
  for (int64_t n : graph.nodesOf[tensor]) {
    const RuleNode &node = graph.nodes[n];
    SmallVector<User> &group = state.loop && isOutside(state, node) ? outside : users;
    for (size_t i = 0; i < node.rule.operands.size(); ++i) {
      if (node.tensors[i] != static_cast<int64_t>(tensor))
        continue;
      if (nodes[n].candidates.strategies) {
        group.push_back({endOf(n, i), adds(n, i)});
        continue;
      }
      StrategyEnd reader = homeOf(node.tensors.back()); // control flow or a constraint
      if (!reader.shardings)
        keepsProducedSharding = true;
      else if (reader.node < 0 || reader.node != own.node)
        group.push_back({reader, accumulates(node)});
    }
  }
  // A result with other users has the sharding of its place.
  if (keepsProducedSharding && users.empty() && outside.empty() && own.node >= 0)
    users.push_back({addProducedPlace(tensor, own), false});
  if (!outside.empty())
    connect(tensor, own, outside, tripsOf(state.loop), source);
  connect(tensor, own, users, tripsOfTensor(tensor), source);
}

bool StrategyProblem::isOutside(const TensorState &carry, const RuleNode &user) const {
  Operation *of = user.op ? user.op : graph.tensors[user.tensors.back()].loop;
  return !of || !carry.loop->isAncestor(of);
}

/// A single user directly, several through a place, so that a sharding that several need is sent
/// once.
void StrategyProblem::connect(size_t tensor, const StrategyEnd &own, ArrayRef<User> users,
                              double trips, StrategySource &source) {
  auto tripsOfUse = [&](const User &user) { return Trips{trips, user.accumulates ? 1 : trips}; };
  if (users.empty())
    return;
  if (users.size() == 1)
    return addEdge(tensor, own, users.front().end, tripsOfUse(users.front()));
  StrategyEnd place = places[tensor] = addPlace(
      tensor, own, llvm::map_to_vector(users, [](auto &user) { return user.end; }), source);
  addEdge(tensor, own, place, {trips, trips});
  for (const User &user : users)
    addEdge(tensor, place, user.end, tripsOfUse(user));
}

/// The op that alone reads a tensor, of a carry in its loop; -1 if there is none, or control flow
/// reads it.
int64_t StrategyProblem::onlyReader(int64_t tensor) const {
  const TensorState &state = graph.tensors[tensor];
  int64_t reader = -1;
  for (int64_t n : graph.nodesOf[tensor]) {
    const RuleNode &node = graph.nodes[n];
    bool isProducer = node.op ? n == makers[tensor].node : node.tensors.back() == tensor;
    if (isProducer || (state.loop && isOutside(state, node)))
      continue;
    if (!node.op || (reader >= 0 && reader != n))
      return -1;
    reader = n;
  }
  return reader;
}

SmallVector<int64_t> StrategyProblem::additionsOf(const RuleNode &tie) const {
  SmallVector<int64_t> path;
  int64_t value = tie.tensors.back(), yielded = tie.tensors.front();
  if (tie.op || !graph.tensors[value].loop || makers[yielded].node < 0)
    return {};
  Operation *loop = graph.tensors[value].loop;
  while (value != yielded) {
    int64_t n = onlyReader(value);
    if (n < 0 || graph.nodes[n].op->getParentOp() != loop)
      return {};
    const RuleNode &node = graph.nodes[n];
    auto *read = llvm::find(node.tensors, value);
    size_t operands = node.rule.operands.size();
    if (node.tensors.size() != operands + 1 ||
        operandsToPass(node.op, sharding::ReduceKind::sum, {int64_t(read - node.tensors.begin())})
            .empty())
      return {};
    path.push_back(n);
    value = node.tensors.back();
    // Another op may stack values of iterations. Behind a product a carry is no sum any more.
    if (!node.rule.isElementwise() && (path.size() > 1 || value != yielded))
      return {};
  }
  return path;
}

/// Adds an op whose result is added to a carry alone, and those that its operands come from.
void StrategyProblem::addAdder(int64_t n) {
  if (!adders.insert(n).second)
    return;
  for (int64_t tensor : graph.nodes[n].tensors) {
    int64_t maker = tensor < 0 ? -1 : makers[tensor].node;
    if (maker >= 0 && maker != n && onlyReader(tensor) == n &&
        graph.nodes[maker].op->getBlock() == graph.nodes[n].op->getBlock() &&
        passesAllOperands(graph.nodes[maker].op))
      addAdder(maker);
  }
}

/// Whether an operand is what an iteration adds to a loop's carry: reduced with it after the loop.
bool StrategyProblem::adds(int64_t n, size_t position) const {
  return adders.contains(n) && !operandsToPass(graph.nodes[n].op, sharding::ReduceKind::sum,
                                               {static_cast<int64_t>(position)})
                                    .empty();
}

/// A function result without a placement: keeps the producer's sharding, with contributions
/// scattered.
StrategyEnd StrategyProblem::addProducedPlace(size_t tensor, const StrategyEnd &maker) {
  const TensorState &state = graph.tensors[tensor];
  const AxisList &all = TensorSharding::allOpen(*state.mesh, 0).open;
  ShardingRefs results;
  for (const TensorSharding *sharding : maker.shardings->distinct)
    if (const TensorSharding *own = graph.keep(scattered(*sharding, state.type.getShape(), all));
        !llvm::is_contained(results, own))
      results.push_back(own);
  return addNode(intern(results), {}, {});
}

/// Shardings in which several users can share a reshard: all in which the tensor is produced or
/// read, except windows. With a last place, only those that several ends name.
ShardingRefs StrategyProblem::placesBetween(const StrategyEnd &from, ArrayRef<StrategyEnd> users,
                                            const TensorSharding *last) const {
  ShardingRefs result, once;
  auto add = [&](const TensorSharding *sharding, bool isShared) {
    if (!sharding->windows.empty())
      sharding = graph.keep(withoutSelections(*sharding));
    if (sharding->windows.empty() && !llvm::is_contained(result, sharding))
      (isShared ? result : once).push_back(sharding);
  };
  if (last)
    add(last, true);
  for (const TensorSharding *sharding : from.shardings->distinct)
    add(sharding, true);
  for (const StrategyEnd &user : users) {
    ShardingRefs named;
    std::swap(named, once);
    for (const TensorSharding *sharding : user.shardings->distinct)
      add(sharding, !last || llvm::is_contained(named, sharding));
    once.append(named);
  }
  return result;
}

StrategyEnd StrategyProblem::addPlace(size_t tensor, const StrategyEnd &from,
                                      ArrayRef<StrategyEnd> users, StrategySource &source) {
  const TensorState &state = graph.tensors[tensor];
  const TensorSharding *last = source.lastPlaceOf(tensor);
  AddressKey key{state.mesh, last, from.shardings};
  for (const StrategyEnd &user : users)
    key.push_back(user.shardings);
  PlaceList &list = knownPlaces[std::move(key)];
  if (!list.shardings) {
    ShardingRefs all = placesBetween(from, users, last);
    list = {&intern(all), source.labelsOf(all, *state.mesh)};
  }
  return addNode(*list.shardings, list.labels, state.name);
}

solver::EdgeTable StrategyProblem::tableBetween(size_t tensor, const StrategyEnd &from,
                                                const StrategyEnd &to, Trips trips) {
  if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >
      prices.timeLimit)
    isApproximate = true;
  const ShardingList &sources = *from.shardings, &targets = *to.shardings;
  std::vector<double> distinct;
  price(pricesOf(tensor), sources, targets, isApproximate, distinct);
  for (auto [i, seconds] : llvm::enumerate(distinct))
    seconds *=
        sources.distinct[i / targets.distinct.size()]->isPartial() ? trips.reduced : trips.all;
  solver::EdgeTable table{
      static_cast<int64_t>(sources.of.size()), static_cast<int64_t>(targets.of.size()), {}};
  table.cost.reserve(table.rows * table.columns);
  for (int64_t row : sources.of)
    for (int64_t column : targets.of)
      table.cost.push_back(distinct[row * static_cast<int64_t>(targets.distinct.size()) + column]);
  return table;
}

void StrategyProblem::addEdge(size_t tensor, const StrategyEnd &from, const StrategyEnd &to,
                              Trips trips) {
  if (from.node < 0 && to.node < 0)
    return;
  if (from.node < 0 || to.node < 0) { // the cost belongs to the end with a choice
    solver::Node &open = problem.nodes[std::max(from.node, to.node)];
    solver::EdgeTable table = tableBetween(tensor, from, to, trips);
    for (size_t s = 0; s < table.cost.size(); ++s)
      open.cost[s] += table.cost[s];
    return;
  }
  auto [known, isNew] = tables.try_emplace({&tableOf(tensor), from.shardings, to.shardings, trips},
                                           std::ssize(problem.tables));
  if (isNew)
    problem.tables.push_back(tableBetween(tensor, from, to, trips));
  problem.edges.push_back({from.node, to.node, known->second});
  sends.push_back({static_cast<int64_t>(tensor), from, to, trips.all});
}

//===----------------------------------------------------------------------===//
// Prices
//===----------------------------------------------------------------------===//

double StrategyProblem::tripsOfTensor(size_t tensor) const {
  if (int64_t maker = makers[tensor].node; maker >= 0)
    return tripsOf(graph.nodes[maker].op);
  double trips = 1;
  if (Operation *loop = graph.tensors[tensor].loop)
    return tripsOf(&loop->getRegion(0).front().back());
  if (graph.tensors[tensor].isFixed)
    for (int64_t node : graph.nodesOf[tensor])
      if (Operation *op = graph.nodes[node].op)
        trips = std::max(trips, tripsOf(op));
  return trips;
}

StrategyProblem::ReshardPrices &StrategyProblem::pricesOf(size_t tensor) {
  const TensorState &state = graph.tensors[tensor];
  ReshardPrices *&known = reshards[{state.mesh, state.type}];
  if (!known) {
    if (!planner)
      planner = &plannerOf(state.type.getContext(), Objective::time, prices.topology);
    ReshardTable *table = &planner->table(*state.mesh, shapeOf(state.type),
                                          bytesPerElement(state.type.getElementType()));
    std::unique_ptr<ReshardPrices> &own = reshardsOfTable[table];
    if (!own)
      own.reset(new ReshardPrices{table});
    known = own.get();
  }
  return *known;
}

size_t StrategyProblem::ReshardPrices::placeOf(size_t number) {
  if (places.size() <= number)
    places.resize(number + 1, -1);
  if (places[number] < 0)
    places[number] = size++;
  return places[number];
}

/// Appends the seconds of one reshard from each distinct source to each distinct target. Uses an
/// approximate cost if the exact one is unknown and time has run out.
void StrategyProblem::price(ReshardPrices &known, const ShardingList &from, const ShardingList &to,
                            bool approximates, std::vector<double> &result) {
  auto placesOf = [&](const ShardingList &list) {
    return llvm::map_to_vector(list.numbers, [&](size_t number) { return known.placeOf(number); });
  };
  SmallVector<size_t> rows = placesOf(from), columns = placesOf(to);
  auto rowOf = [&](ReshardPrices::Rows &table, size_t row) -> std::vector<double> & {
    if (std::ssize(table) < known.size)
      table.resize(known.size);
    table[row].resize(known.size, std::numeric_limits<double>::quiet_NaN());
    return table[row];
  };
  result.reserve(result.size() + from.distinct.size() * to.distinct.size());
  for (size_t s = 0; s < from.distinct.size(); ++s) {
    const TensorSharding &source = *from.distinct[s];
    std::vector<double> &exact = rowOf(known.exact, rows[s]);
    std::vector<double> &own = approximates ? rowOf(known.approximateRows, rows[s]) : exact;
    for (size_t t = 0; t < to.distinct.size(); ++t) {
      const TensorSharding &target = *to.distinct[t];
      size_t column = columns[t];
      double seconds = std::isnan(exact[column]) ? own[column] : exact[column];
      if (std::isnan(seconds)) {
        bool isSent = &source != &target && !hasSelection(source, target);
        seconds = own[column] =
            isSent ? prices.ofReshard + known.table->seconds(source, target, approximates) : 0;
      }
      result.push_back(seconds);
    }
  }
}

double StrategyProblem::reshardSeconds(size_t tensor, const TensorSharding *from,
                                       const TensorSharding *to) {
  std::vector<double> seconds;
  price(pricesOf(tensor), intern({from}), intern({to}), /*approximates=*/false, seconds);
  return seconds.front();
}

const ShardingList &StrategyProblem::intern(const ShardingRefs &byStrategy) {
  std::unique_ptr<const ShardingList> &known =
      knownShardings[AddressKey(byStrategy.begin(), byStrategy.end())];
  if (known)
    return *known;
  auto list = std::make_unique<ShardingList>();
  for (const TensorSharding *sharding : byStrategy) {
    auto it = llvm::find(list->distinct, sharding);
    list->of.push_back(it - list->distinct.begin());
    if (it == list->distinct.end()) {
      list->distinct.push_back(sharding);
      list->numbers.push_back(numbers.try_emplace(sharding, numbers.size()).first->second);
    }
  }
  known = std::move(list);
  return *known;
}

StrategyProblem::ListFacts &StrategyProblem::factsOf(const StrategyList &list) {
  std::unique_ptr<ListFacts> &facts = knownLists[list.get()];
  if (!facts)
    facts.reset(new ListFacts{list, {}, {}});
  return *facts;
}

const ShardingList &StrategyProblem::shardingsOf(size_t n, size_t position,
                                                 const StrategyList &strategies) {
  const RuleNode &node = graph.nodes[n];
  ListFacts &facts = factsOf(strategies);
  facts.shardings.resize(node.tensors.size());
  const ShardingList *&known = facts.shardings[position];
  if (!known) {
    ShardingRefs shardings;
    for (const Strategy &strategy : *strategies)
      shardings.push_back(graph.keep(shardingUnder(node, position, strategy)));
    known = &intern(shardings);
  }
  return *known;
}

const OpCosts &StrategyProblem::opCosts() {
  if (!costs)
    costs.emplace(graph.ops.front()->getParentOfType<func::FuncOp>(), prices.topology);
  return *costs;
}

const std::vector<double> &StrategyProblem::secondsOf(size_t n, const StrategyList &strategies) {
  const RuleNode &node = graph.nodes[n];
  const Mesh &mesh = meshOf(graph, node);
  OpCosts::Work work = isAlone ? OpCosts::workAlone(node.op) : opCosts().workOf(node.op);
  std::vector<double> sentInside;
  if (!isa<linalg::LinalgOp>(node.op)) { // their iterations are independent
    FactorAxes cut(node.rule.factors.size());
    for (AxisList &axes : cut) {
      for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
        axes.push_back(AxisRef::full(mesh, axis));
      sentInside.push_back(OpCosts::communicationSeconds(prices.topology, node.op, cut, mesh));
      axes.clear();
    }
  }
  std::vector<double> &known = factsOf(strategies).seconds[{&mesh, work, std::move(sentInside)}];
  if (!known.empty())
    return known;
  ShardingRefs of(node.tensors.size());
  for (size_t s = 0; s < strategies->size(); ++s) {
    for (size_t i = 0; i < of.size(); ++i)
      of[i] = node.tensors[i] < 0 ? nullptr : &shardingsOf(n, i, strategies).under(s);
    known.push_back(secondsUnder(prices.topology, work, graph, node, (*strategies)[s], of));
  }
  return known;
}
