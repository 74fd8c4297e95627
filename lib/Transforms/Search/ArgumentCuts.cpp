//===- ArgumentCuts.cpp - Consequences of cuts of arguments ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArgumentCuts.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Limits on the number of argument dimensions whose cuts are propagated; fewer for larger
/// programs, so that all of them together visit about this number of ops.
static constexpr int64_t kMostTried = 32, kLeastTried = 6, kOpsVisited = 200000;
/// Number of dimensions with plans.
static constexpr size_t kMostSeeds = 2;
/// The least fraction of the computation that a cut must save.
static constexpr double kLeastGain = 0.01;
/// Tolerance for cuts that are about as good as the best.
static constexpr double kAsGood = 1.1;

ArgumentCuts::ArgumentCuts(func::FuncOp function, const MeshTable &meshes, const OpCosts &costs)
    : function(function), graph(function, meshes), costs(costs), mesh(meshes.begin()->second),
      meshName(FlatSymbolRefAttr::get(meshes.begin()->first)) {
  for (BlockArgument argument : function.getArguments())
    tensors.push_back(graph.tensorOf(argument));
  for (int64_t a = 0; a < mesh.numAxes(); ++a)
    if (mesh.shape[a] > 1)
      axes.push_back(AxisRef::full(mesh, a));
  for (int64_t tensor : graph.fed)
    if (tensor >= 0)
      fed.insert(tensor);
  findState();
}

std::vector<Seed> ArgumentCuts::findSeeds() const {
  std::vector<Seed> seeds;
  std::set<std::pair<unsigned, size_t>> reached;
  const double whole = secondsOf(graph);
  auto left = std::clamp<int64_t>(
      kOpsVisited / std::max<int64_t>(1, static_cast<int64_t>(graph.nodes.size())), kLeastTried,
      kMostTried);
  for (unsigned argument : byFirstUse()) {
    const TensorState &state = graph.tensors[tensors[argument]];
    if (!fed.empty() && fed.count(tensors[argument]))
      continue;
    for (size_t dim = 0; dim < state.given.dims.size(); ++dim) {
      AxisList cut = axesFor(state, dim);
      if (cut.empty() || reached.count({argument, dim}) || left-- <= 0)
        continue;
      const PropagationGraph spread = spreadFrom(argument, dim, cut).graph;
      bool cutsWeights = false;
      for (unsigned other = 0; other < tensors.size(); ++other)
        for (size_t d = 0; tensors[other] >= 0 && d < rankOf(other); ++d)
          if (gained(spread, other, d)) {
            reached.insert({other, d});
            cutsWeights = cutsWeights || fed.count(tensors[other]) > 0;
          }
      if (double seconds = secondsOf(spread); seconds < (1 - kLeastGain) * whole)
        seeds.push_back({argument, dim, seconds, cutsWeights});
    }
  }
  // No weight has the batch dimension. Among about equally good candidates the first one wins.
  double best[2] = {std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::infinity()};
  for (const Seed &seed : seeds)
    best[seed.cutsWeights] = std::min(best[seed.cutsWeights], seed.seconds);
  auto rankOfSeed = [&](const Seed &seed) {
    bool isAsGood = seed.seconds <= kAsGood * best[seed.cutsWeights];
    return std::tuple(seed.cutsWeights, !isAsGood, isAsGood ? 0 : seed.seconds);
  };
  llvm::stable_sort(seeds,
                    [&](const Seed &a, const Seed &b) { return rankOfSeed(a) < rankOfSeed(b); });
  seeds.resize(std::min(seeds.size(), kMostSeeds), Seed{0, 0});
  return seeds;
}

/// Optimizer state does not affect the loss: in a step with feeds the results that feed nothing,
/// otherwise any result.
void ArgumentCuts::findState() {
  for (auto [result, argument] : llvm::zip(graph.results, graph.fed)) {
    if (result < 0 || (argument >= 0 && !fed.empty()))
      continue;
    std::set<int64_t> needed{result};
    SmallVector<int64_t> work{result};
    while (!work.empty()) {
      int64_t tensor = work.pop_back_val();
      for (int64_t n : graph.nodesOf[tensor]) {
        const RuleNode &node = graph.nodes[n];
        auto operands = ArrayRef(node.tensors).take_front(node.rule.operands.size());
        if (llvm::is_contained(ArrayRef(node.tensors).drop_front(operands.size()), tensor))
          for (int64_t operand : operands)
            if (operand >= 0 && needed.insert(operand).second)
              work.push_back(operand);
      }
    }
    for (int64_t tensor : tensors)
      if (!needed.count(tensor))
        unneeded.insert(tensor);
  }
}

size_t ArgumentCuts::rankOf(unsigned argument) const {
  return graph.tensors[tensors[argument]].given.dims.size();
}

SmallVector<unsigned> ArgumentCuts::byFirstUse() const {
  llvm::DenseMap<int64_t, unsigned> argumentOf; // looked up only
  for (unsigned argument = 0; argument < tensors.size(); ++argument)
    if (tensors[argument] >= 0)
      argumentOf[tensors[argument]] = argument;
  SmallVector<unsigned> order;
  for (const RuleNode &node : graph.nodes)
    for (int64_t tensor : node.tensors)
      if (auto it = argumentOf.find(tensor); it != argumentOf.end()) {
        order.push_back(it->second);
        argumentOf.erase(it);
      }
  return order;
}

bool ArgumentCuts::isOpen(const TensorState &tensor, const AxisRef &axis) {
  return llvm::any_of(tensor.given.open, [&](const AxisRef &open) { return open.contains(axis); });
}

AxisList ArgumentCuts::axesFor(const TensorState &tensor, size_t dim) const {
  AxisList taken;
  for (bool divides : {true, false}) {
    int64_t parts = sizeOf(tensor.given.dims[dim]), extent = tensor.type.getDimSize(dim);
    for (const AxisRef &axis : axes)
      if (isOpen(tensor, axis) &&
          (divides ? extent % (parts * axis.size) == 0 : parts * axis.size <= extent)) {
        taken.push_back(axis);
        parts *= axis.size;
      }
    if (!taken.empty())
      break;
  }
  return taken;
}

TensorSharding ArgumentCuts::cutBy(const TensorState &tensor, size_t dim, const AxisList &cut) {
  TensorSharding sharding = tensor.given;
  for (const AxisRef &axis : cut)
    if (isOpen(tensor, axis))
      sharding.dims[dim].push_back(axis);
  sharding.dims[dim] = mergeAxes(std::move(sharding.dims[dim]));
  return canonical(sharding.closed());
}

TensorSharding ArgumentCuts::cutWeight(const TensorState &tensor, const AxisList &cut) {
  SmallVector<size_t> dims = llvm::to_vector(llvm::seq<size_t>(0, tensor.given.dims.size()));
  llvm::stable_sort(dims, [&](size_t a, size_t b) {
    return tensor.type.getDimSize(a) > tensor.type.getDimSize(b);
  });
  AxisList open;
  llvm::copy_if(cut, std::back_inserter(open),
                [&](const AxisRef &axis) { return isOpen(tensor, axis); });
  for (size_t dim : dims)
    if (tensor.type.getDimSize(dim) % (sizeOf(tensor.given.dims[dim]) * sizeOf(open)) == 0)
      return cutBy(tensor, dim, open);
  return canonical(tensor.given.closed());
}

ArgumentCuts::Spread ArgumentCuts::spreadFrom(unsigned argument, size_t dim,
                                              const AxisList &cut) const {
  Spread spread{graph, {}};
  auto begin = [&](unsigned at, size_t d) {
    TensorState &state = spread.graph.tensors[tensors[at]];
    state.sharding = spread.graph.keep(cutBy(state, d, cut));
    spread.cut.emplace(at, *state.sharding);
    propagateAxes(spread.graph, nullptr);
  };
  begin(argument, dim);
  const int64_t extent = graph.tensors[tensors[argument]].type.getDimSize(dim);
  for (unsigned other = 0; other < tensors.size() && !fed.empty(); ++other) {
    if (tensors[other] < 0 || fed.count(tensors[other]) || gained(spread.graph, other))
      continue;
    const TensorState &state = graph.tensors[tensors[other]];
    for (size_t d = 0; d < state.given.dims.size(); ++d)
      if (state.type.getDimSize(d) == extent && !state.given.open.empty()) {
        begin(other, d);
        break;
      }
  }
  return spread;
}

bool ArgumentCuts::gained(const PropagationGraph &spread, unsigned argument, size_t dim) const {
  const TensorState &state = spread.tensors[tensors[argument]];
  return state.sharding->dims[dim] != state.given.dims[dim];
}

bool ArgumentCuts::gained(const PropagationGraph &spread, unsigned argument) const {
  return llvm::any_of(llvm::seq<size_t>(0, rankOf(argument)),
                      [&](size_t dim) { return gained(spread, argument, dim); });
}

/// Seconds of computation per device if every op has the cuts of its tensors.
double ArgumentCuts::secondsOf(const PropagationGraph &spread) const {
  double seconds = 0;
  for (const RuleNode &node : spread.nodes) {
    if (!node.op || node.op->getNumResults() == 0 || !hasCost(node.op))
      continue;
    Strategy strategy{Strategies::merge(spread, node, std::numeric_limits<int64_t>::max(), true),
                      {}};
    seconds += tripsOf(node.op) * secondsUnder(costs, spread, node, strategy);
  }
  return seconds;
}
