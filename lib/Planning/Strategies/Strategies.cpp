//===- Strategies.cpp - Strategies that claims allow for each op ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Strategies.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Sharding/Selections.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

TensorSharding dist::shardingUnder(const RuleNode &node, size_t position,
                                   const Strategy &strategy) {
  size_t numOperands = node.rule.operands.size();
  return position < numOperands
             ? operandSharding(node.rule, static_cast<int64_t>(position), strategy)
             : resultSharding(node.rule, static_cast<int64_t>(position - numOperands), strategy);
}

bool dist::allows(const TensorState &tensor, const TensorSharding &state) {
  for (size_t d = 0; d < state.dims.size(); ++d) {
    if (!isPrefix(tensor.given.dims[d], state.dims[d]))
      return false;
    for (const AxisRef &axis : removePrefix(tensor.given.dims[d], state.dims[d]))
      if (llvm::none_of(tensor.given.open,
                        [&](const AxisRef &open) { return open.contains(axis); }))
        return false;
  }
  return true;
}

bool dist::decidesStrategy(const RuleNode &node) {
  return node.op && node.op->getNumResults() > 0 && !isa<ShardTensorOp>(node.op);
}

const Mesh &dist::meshOf(const PropagationGraph &graph, const RuleNode &node) {
  int64_t tensor = *llvm::find_if(node.tensors, [](int64_t t) { return t >= 0; });
  return *graph.tensors[tensor].mesh;
}

double dist::secondsUnder(const OpCosts &costs, const PropagationGraph &graph, const RuleNode &node,
                          const Strategy &strategy) {
  SmallVector<TensorSharding> shardings(node.tensors.size());
  SmallVector<const TensorSharding *> addresses;
  for (size_t i = 0; i < node.tensors.size(); ++i) {
    if (node.tensors[i] >= 0)
      shardings[i] = shardingUnder(node, i, strategy);
    addresses.push_back(&shardings[i]);
  }
  return secondsUnder(costs.machine(), costs.workOf(node.op), graph, node, strategy, addresses);
}

double dist::secondsUnder(const Topology &topology, const OpCosts::Work &work,
                          const PropagationGraph &graph, const RuleNode &node,
                          const Strategy &strategy, ArrayRef<const TensorSharding *> shardings) {
  double iterations = 1;
  SmallVector<double> elements;
  for (size_t i = 0; i < node.tensors.size(); ++i) {
    elements.push_back(1);
    if (node.tensors[i] < 0)
      continue;
    ArrayRef<int64_t> shape = graph.tensors[node.tensors[i]].type.getShape();
    if (!shardings[i]->windows.empty()) {
      for (int64_t extent : localShape(*shardings[i], {shape.begin(), shape.end()}))
        elements.back() *= static_cast<double>(extent);
      continue;
    }
    for (auto [extent, axes] : llvm::zip_equal(shape, shardings[i]->dims))
      elements.back() *= static_cast<double>(ceilDiv(extent, sizeOf(axes)));
  }
  for (size_t f = 0; f < strategy.factors.size(); ++f)
    iterations *= static_cast<double>(
        std::max<int64_t>(1, ceilDiv(node.rule.factors[f].size, sizeOf(strategy.factors[f]))));
  const Mesh &mesh = meshOf(graph, node);
  return OpCosts::seconds(topology, work, iterations, elements, mesh.numDevices()) +
         OpCosts::communicationSeconds(topology, node.op, strategy.factors, mesh);
}

/// Adds a new strategy to a list, within bounds.
bool Strategies::addTo(List &list, Strategy strategy) const {
  if (list.size() >= mostStrategies || llvm::is_contained(list, strategy))
    return false;
  list.push_back(std::move(strategy));
  return true;
}

Strategies::Strategies(const PropagationGraph &graph, const Topology &topology)
    : graph(graph), topology(topology), states(graph.tensors.size()) {
  // Equal nodes have equal strategies.
  AddressMap<std::shared_ptr<const List>> known;
  auto none = std::make_shared<const List>();
  for (const RuleNode &node : graph.nodes) {
    if (!decidesStrategy(node)) {
      strategies.push_back(none);
      continue;
    }
    std::shared_ptr<const List> &list = known[graph.keyOf(node)];
    if (!list)
      list = std::make_shared<const List>(fromClaims(node));
    strategies.push_back(list);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (std::shared_ptr<const List> list = strategies[n]; list->size() > 1) {
      for (const Strategy &strategy : *list)
        spread(n, strategy);
      passOnOperands(n);
    }
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].given.open.empty())
      shareFinerUses(t);
  spreadAll();
}

void Strategies::extend(ArrayRef<Seed> seeds, bool spreads) {
  isExtended = true;
  mostStrategies *= 2;
  mostStates *= 2;
  for (const Seed &seed : seeds)
    if (seed.tensor >= 0)
      addState(seed.tensor, seed.state, /*isSeed=*/true);
    else if (add(seed.node, seed.strategy) && spreads)
      spread(seed.node, seed.strategy);
  spreadAll();
}

/// Visits the ops around every state of `work`, which may grow in the process.
void Strategies::spreadAll() {
  for (size_t w = 0; w < work.size(); ++w) {
    auto [tensor, state] = work[w];
    for (int64_t node : graph.nodesOf[tensor])
      for (size_t i = 0; i < graph.nodes[node].tensors.size(); ++i)
        if (graph.nodes[node].tensors[i] == tensor && !follows(graph.nodes[node], i))
          visit(node, i, state);
  }
  work.clear();
  shareLists();
}

/// Shares one list between nodes with the same rule and strategies, for caching.
void Strategies::shareLists() {
  llvm::DenseMap<const ShardingRule *, SmallVector<std::shared_ptr<const List>, 2>> known;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    std::shared_ptr<const List> &own = strategies[n];
    if (own->size() < 2)
      continue;
    SmallVector<std::shared_ptr<const List>, 2> &lists = known[&graph.nodes[n].rule];
    auto same = llvm::find_if(lists, [&](auto &list) { return list == own || *list == *own; });
    if (same == lists.end())
      lists.push_back(own);
    else
      own = *same;
  }
}

bool Strategies::add(size_t node, Strategy strategy) {
  List own = *strategies[node];
  if (!addTo(own, std::move(strategy)))
    return false;
  bool hasChoice = own.size() == 2;
  strategies[node] = std::make_shared<const List>(std::move(own));
  if (hasChoice)
    passOnOperands(node);
  return true;
}

/// Later passes place reductions around ops without a choice. An op with a choice may have to
/// forward the contributions of its operands.
void Strategies::passOnOperands(size_t index) {
  const RuleNode &node = graph.nodes[index];
  for (size_t i = 0; i < node.rule.operands.size(); ++i) {
    if (follows(node, i) || graph.nodesOf[node.tensors[i]].empty())
      continue;
    auto producer = static_cast<size_t>(graph.nodesOf[node.tensors[i]].front());
    const RuleNode &from = graph.nodes[producer];
    if (producer == index || strategies[producer]->empty())
      continue;
    for (size_t r = from.rule.operands.size(); r < from.tensors.size(); ++r)
      if (from.tensors[r] == node.tensors[i])
        if (TensorSharding made = shardingUnder(from, r, strategies[producer]->front());
            made.isPartial())
          visit(index, i, made);
  }
}

Strategies::List Strategies::fromClaims(const RuleNode &node) const {
  List list;
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::max();
  Claims all = claimsOf(node);
  if (all.empty()) {
    addTo(list, {FactorAxes(node.rule.factors.size()), {}});
    return list;
  }
  // Uncontested claims are final at any cost: a cut on which all tensors with the factor agree
  // divides the work as annotated. Finding a cheaper plan is the task of dist-search.
  Claims agreed = uncontested(node, all);
  all.insert(all.begin(), agreed.begin(), agreed.end());
  bool contested = false;
  for (const Claim &a : all)
    for (const Claim &b : all)
      contested = contested || (a.factor == b.factor ? *a.axes != *b.axes
                                                     : llvm::any_of(*a.axes, [&](const AxisRef &x) {
                                                         return overlapsAny(*b.axes, x);
                                                       }));
  size_t numOperands = node.rule.operands.size();
  // The results' claims first, then those of the operands, which add reductions.
  if (contested) {
    Claims resultsFirst = all;
    for (Claim &claim : resultsFirst)
      if (claim.position >= numOperands)
        claim.weight = kFirst;
    addTo(list, {settle(node.rule, std::move(resultsFirst)), {}});
  }
  addTo(list, {settle(node.rule, all), {}});
  auto ofOperand = [&](const Claim &claim) {
    return claim.position < numOperands && claim.order >= 0;
  };
  auto isAgreed = [&](const Claim &claim) {
    return llvm::is_contained(llvm::map_range(agreed, [](auto &a) { return a.factor; }),
                              claim.factor);
  };
  if (llvm::any_of(all, [&](auto &claim) { return ofOperand(claim) && !isAgreed(claim); })) {
    Claims results = all;
    llvm::erase_if(results, ofOperand);
    addTo(list, {settle(node.rule, std::move(results)), {}});
  }
  addAlternatives(node, all, list);
  if (!contested)
    return list;
  for (const Claim &claim : all) {
    Claims first = all;
    first.insert(first.begin(), claim);
    first.front().weight = kFirst;
    first.front().order = -1;
    addTo(list, {settle(node.rule, std::move(first)), {}});
  }
  return list;
}

/// Whether an operand is read in windows of a factor, which overlap if it is cut.
static bool isReadInWindows(const ShardingRule &rule, int64_t factor) {
  return llvm::any_of(rule.operands, [&](const TensorRule &operand) {
    return llvm::any_of(
        operand, [&](const DimRule &dim) { return dim.isWindow && dim.factors.front() == factor; });
  });
}

/// What a device sends in the time of this many latencies. Smaller parts are gathered rather than
/// exchanged and gathered, or exchanged twice: that takes more messages, which the costs of plans
/// leave out.
static constexpr double kLatenciesToSplit = 0.25, kLatenciesToSplitTwice = 1;

/// Moves axes that two factors claim, or one factor that is read in windows, to other factors that
/// the op proposes. If an axis does not divide such a factor, a minor part of it moves there, and
/// the rest stays: 8 devices on 6 heads cut these in 2 and the claimed factor in 4.
void Strategies::addAlternatives(const RuleNode &node, const Claims &all, List &list) const {
  auto distributed = dyn_cast<ShardingRuleOpInterface>(node.op);
  if (!distributed)
    return;
  SmallVector<int64_t> alternatives = distributed.getAlternatives();
  if (alternatives.empty())
    return;
  const Mesh &mesh = meshOf(graph, node);
  LinkModel links = topology.linksOf(mesh);
  for (int64_t preferred : alternatives) {
    for (const Claim &claim : all) {
      bool isRead = isReadInWindows(node.rule, claim.factor), isContested = isRead;
      int64_t least = std::numeric_limits<int64_t>::max(); // bytes of a gathered part
      for (const Claim &other : all) {
        bool isRival = other.factor != claim.factor && *other.axes == *claim.axes;
        isContested |= isRival;
        bool isWindow = llvm::any_of(ruleOf(node, other.position), [&](const DimRule &dim) {
          return dim.isWindow && dim.factors.front() == claim.factor;
        });
        if (!isRival && !isWindow)
          continue;
        const TensorState &tensor = graph.tensors[node.tensors[other.position]];
        int64_t bytes = tensor.bytes;
        for (const AxisList &axes : tensor.sharding->dims)
          bytes /= sizeOf(axes);
        least = std::min(least, bytes);
      }
      if (!isContested || claim.factor == preferred)
        continue;
      Claims rest = all;
      llvm::erase_if(rest, [&](const Claim &other) {
        return llvm::any_of(*claim.axes,
                            [&](const AxisRef &axis) { return overlapsAny(*other.axes, axis); });
      });
      Link link = links.linkOf(mesh, *claim.axes);
      auto takesLatencies = [&](double count) {
        return static_cast<double>(least) >= count * link.alpha * link.rate;
      };
      SmallVector<int64_t> takers{preferred};
      if (takesLatencies(kLatenciesToSplitTwice))
        llvm::copy_if(alternatives, std::back_inserter(takers),
                      [&](int64_t factor) { return factor != preferred; });
      FactorAxes axes = settle(node.rule, std::move(rest));
      AxisList left = *claim.axes;
      for (int64_t factor : takers) {
        AxisList kept, moved;
        int64_t size = node.rule.factors[factor].size, taken = sizeOf(axes[factor]);
        int64_t parts = sizeOf(left), fitting = std::gcd(size / taken, parts);
        if (factor == claim.factor || size % taken != 0 || fitting == 1 ||
            !splitAt(left, parts / fitting, kept, moved))
          continue;
        axes[factor].insert(axes[factor].end(), moved.begin(), moved.end());
        axes[factor] = mergeAxes(std::move(axes[factor]));
        left = kept;
      }
      if (sizeOf(left) == sizeOf(*claim.axes) ||
          (!left.empty() && (!takesLatencies(kLatenciesToSplit) || !axes[claim.factor].empty())))
        continue;
      if (!left.empty())
        axes[claim.factor] = left;
      addTo(list, {legalize(node.rule, std::move(axes)), {}});
    }
  }
}

void Strategies::spread(size_t index, const Strategy &strategy) {
  const RuleNode &node = graph.nodes[index];
  for (size_t i = 0; i < node.tensors.size(); ++i)
    if (!follows(node, i) || isComputedStart(node.tensors[i]))
      addState(node.tensors[i], shardingUnder(node, i, strategy));
}

/// Whether a tensor, with which a reduction starts, is computed from other tensors element by
/// element, as the rows of a look-up are where an index is out of range. What makes it may follow
/// the reduction.
bool Strategies::isComputedStart(int64_t tensor) const {
  if (tensor < 0 || graph.nodesOf[tensor].empty())
    return false;
  const RuleNode &maker = graph.nodes[graph.nodesOf[tensor].front()];
  return maker.op && maker.rule.isElementwise() && maker.tensors.back() == tensor &&
         !isMadeOfScalars(maker.op);
}

void Strategies::shareFinerUses(int64_t tensor) {
  std::vector<std::pair<int64_t, size_t>> users;
  for (int64_t node : graph.nodesOf[tensor])
    for (size_t i = 0; i < graph.nodes[node].rule.operands.size(); ++i)
      if (graph.nodes[node].tensors[i] == tensor && !follows(graph.nodes[node], i) &&
          !strategies[node]->empty())
        users.push_back({node, i});
  if (users.size() < 2)
    return;
  TensorSharding own = canonical(graph.tensors[tensor].sharding->closed());
  std::vector<TensorSharding> finer;
  for (auto [node, i] : users) {
    TensorSharding state =
        withoutSelections(shardingUnder(graph.nodes[node], i, strategies[node]->front()));
    if (state != own && !state.isPartial() && state.windows.empty() &&
        !llvm::is_contained(finer, state))
      finer.push_back(std::move(state));
  }
  for (const TensorSharding &state : finer)
    for (auto [node, i] : users)
      visit(node, i, state);
}

void Strategies::addState(int64_t tensor, const TensorSharding &needed, bool isSeed) {
  const TensorSharding state = withoutSelections(needed);
  const TensorState &own = graph.tensors[tensor];
  if ((own.isFixed && !(own.loop && isExtended && !state.isPartial())) || !state.windows.empty() ||
      !allows(own, state) || state == canonical(own.sharding->closed()))
    return;
  if (!llvm::is_contained(states[tensor], state)) {
    if (states[tensor].size() >= mostStates)
      return;
    states[tensor].push_back(state);
  } else if (!isSeed) {
    return;
  }
  work.push_back({tensor, state});
}

void Strategies::visit(size_t index, size_t position, const TensorSharding &state) {
  const RuleNode &node = graph.nodes[index];
  if (!node.op && isExtended && !state.isPartial())
    addState(node.tensors[position == 0 ? 1 : 0], state); // a loop's carry, or what becomes one
  if (strategies[index]->empty() || strategies[index]->size() >= mostStrategies)
    return;
  Claims claims = claimsOf(node);
  llvm::erase_if(claims, [&](const Claim &claim) { return claim.position == position; });
  // Axes that the state does not use are available to the others only if they do not undo it.
  claim(node, position, state, std::numeric_limits<int64_t>::max(), claims);
  if (state.isPartial() && position < node.rule.operands.size()) {
    passOn(index, position, state, claims);
    return;
  }
  auto addSettled = [&](const Claims &claims) {
    Strategy strategy{settle(node.rule, claims), {}};
    if (add(index, strategy))
      spread(index, strategy);
  };
  addSettled(claims);
  if (!isExtended)
    return;
  // The op may also follow the state exactly: the tensor's factors are cut as in the state.
  const TensorRule &rule = ruleOf(node, position);
  llvm::erase_if(claims, [&](const Claim &claim) {
    return claim.position != position && llvm::any_of(rule, [&](const DimRule &dim) {
             return llvm::is_contained(dim.factors, claim.factor);
           });
  });
  addSettled(claims);
  // Or it is cut as its result is needed and no further: its operands are brought there, which
  // may take less than reducing contributions, as those of a look-up in a small cut table.
  if (position < node.rule.operands.size())
    return;
  llvm::erase_if(claims, [&](const Claim &claim) { return claim.position != position; });
  addSettled(claims);
}

/// The op forwards the contributions if it is linear in them.
void Strategies::passOn(size_t index, size_t position, const TensorSharding &state,
                        const Claims &claims) {
  const RuleNode &node = graph.nodes[index];
  Strategy strategy;
  Claims rest = claims;
  llvm::erase_if(rest, [&](const Claim &claim) {
    return llvm::any_of(state.partial, [&](const PartialAxis &partial) {
      return overlapsAny(*claim.axes, partial.axis);
    });
  });
  strategy.factors = settle(node.rule, std::move(rest));
  for (const PartialAxis &partial : state.partial) {
    SmallVector<int64_t> through =
        operandsToPass(node.op, partial.kind, {static_cast<int64_t>(position)});
    if (through.empty())
      return;
    strategy.forwards.push_back({partial, {through.begin(), through.end()}});
  }
  if (add(index, strategy))
    spread(index, strategy);
}
