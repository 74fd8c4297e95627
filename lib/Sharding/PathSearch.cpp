//===- PathSearch.cpp - The shortest path over placements -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PathSearch.h"

#include <algorithm>

namespace tessera::sharding {

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

size_t PathSearch::Hash::operator()(const TensorSharding &state) const {
  size_t hash = 0;
  auto add = [&](int64_t value) {
    hash = (hash ^ static_cast<size_t>(value)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  };
  for (const AxisList &axes : state.dims) {
    add(-1);
    for (const AxisRef &axis : axes)
      add(axis.axis << 40 ^ axis.pre << 20 ^ axis.size);
  }
  for (const PartialAxis &part : state.partial)
    add(part.axis.axis << 40 ^ part.axis.pre << 20 ^ part.axis.size);
  add(std::ssize(state.windows));
  return hash;
}

TensorSharding PathSearch::refine(const TensorSharding &sharding) {
  if (parts.empty())
    computeParts();
  TensorSharding result = sharding;
  if (!nested) {
    result.open.clear();
    return canonical(result);
  }
  auto split = [&](const AxisRef &axis) {
    AxisList list;
    for (const AxisRef &part : parts)
      if (axis.size > 1 ? axis.contains(part) && part.size > 1 : part == axis)
        list.push_back(part);
    if (list.empty())
      list.push_back(axis);
    return list;
  };
  for (AxisList &axes : result.dims) {
    AxisList refined;
    for (const AxisRef &axis : axes)
      for (const AxisRef &part : split(axis))
        refined.push_back(part);
    axes = std::move(refined);
  }
  std::vector<PartialAxis> partial;
  for (const PartialAxis &axis : result.partial)
    for (const AxisRef &part : split(axis.axis))
      partial.push_back({part, axis.kind});
  std::sort(partial.begin(), partial.end());
  result.partial = std::move(partial);
  result.open.clear();
  return result;
}

void PathSearch::computeParts() {
  std::vector<std::set<int64_t>> cuts(problem.mesh.numAxes());
  for (int64_t axis = 0; axis < problem.mesh.numAxes(); ++axis)
    cuts[axis] = {1, problem.mesh.shape[axis]};
  for (const TensorSharding *sharding : {&problem.source, &problem.target})
    for (const AxisRef &axis : sharding->usedAxes()) {
      cuts[axis.axis].insert(axis.pre);
      cuts[axis.axis].insert(axis.pre * axis.size);
    }
  for (int64_t axis = 0; axis < problem.mesh.numAxes(); ++axis) {
    if (problem.mesh.shape[axis] == 1)
      parts.push_back({axis, 1, 1});
    for (auto it = cuts[axis].begin(); std::next(it) != cuts[axis].end(); ++it) {
      nested = nested && *std::next(it) % *it == 0;
      parts.push_back({axis, *it, *std::next(it) / *it});
    }
  }
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

void PathSearch::relax(Move move) {
  if (forbidden && move.kind == forbidden->kind && canonical(move.source) == forbidden->source &&
      canonical(move.target) == forbidden->target)
    return;
  Traffic traffic = graph.trafficOf(move);
  double seconds = links.seconds(problem.mesh, move.axes, move.kind, traffic);
  Cost cost = currentCost + Cost::of(objective, seconds, traffic);
  // A move costs a little even if it sends nothing: of equal chains the shortest wins.
  cost.third += 1e-3;
  // At equal bytes, collectives that every library has are preferred to an exchange.
  if (move.kind == CollectiveKind::exchange && objective == Objective::bytes)
    cost.first += 0.5;
  auto [it, fresh] = best.try_emplace(move.target);
  Node &node = it->second;
  if (!fresh && (node.done || node.cost <= cost))
    return;
  if (!fresh)
    queue.erase({node.cost, &it->first});
  node.cost = cost;
  queue.insert({cost, &it->first});
  node.move = std::move(move);
  node.traffic = traffic;
  node.seconds = seconds;
}

/// Boxes of many devices take long to compute, so moves that depend on them wait until their lower
/// bound is the least of all costs.
void PathSearch::defer(Move move) {
  Traffic least = graph.leastTrafficOf(move);
  double seconds = links.seconds(problem.mesh, move.axes, move.kind, least);
  deferred.insert({currentCost + Cost::of(objective, seconds, least), std::move(move)});
}

void PathSearch::settle(Move move) {
  if (move.kind != CollectiveKind::permute || graph.isPermutation(move))
    relax(std::move(move));
}

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

PathSearch::PathSearch(const ReshardProblem &problem, Objective objective, const LinkModel &links)
    : problem(problem), graph(problem.mesh, problem.shape, problem.bytesPerElement),
      objective(objective), links(links) {
  source = refine(problem.source);
  target = refine(problem.target);
  walk.source = &source;
  walk.target = &target;
  for (const AxisRef &part : parts)
    if (!source.isFree(part) || !target.isFree(part))
      walk.axes.push_back(part);
  // If windows overlap, only an exchange can create or move them: reduce, exchange, make partial.
  // The same holds if source and target split an axis into parts without common parts.
  walk.isExchangeOnly = !nested || !source.windows.empty() || !target.windows.empty();
  walk.scattersFreely = parts.size() <= 4;
  // For the objective time, sums are left to the reductions of a library, which have better
  // algorithms than one message per pair.
  walk.exchangesReduce = objective == Objective::bytes;
}

std::optional<ReshardPlan> PathSearch::run() {
  queue.insert({Cost{}, &best.try_emplace(source).first->first});
  while (!queue.empty() || !deferred.empty()) {
    if (!deferred.empty() && (queue.empty() || deferred.begin()->first <= queue.begin()->cost)) {
      Move move = std::move(deferred.extract(deferred.begin()).mapped());
      current = move.source;
      currentCost = best[current].cost;
      settle(std::move(move));
      continue;
    }
    auto [cost, state] = *queue.begin();
    queue.erase(queue.begin());
    if (*state == target)
      return trace();
    best.find(*state)->second.done = true;
    current = *state;
    currentCost = cost;
    expand();
  }
  return std::nullopt;
}

void PathSearch::expand() {
  graph.forEachMove(current, walk, [&](Move move) {
    bool takesLong = move.kind == CollectiveKind::permute || move.kind == CollectiveKind::exchange;
    takesLong ? defer(std::move(move)) : relax(std::move(move));
  });
}

ReshardPlan PathSearch::trace() {
  ReshardPlan plan;
  for (TensorSharding at = target; at != source;) {
    Node &node = best[at];
    Move move = std::move(node.move);
    at = move.source;
    plan.seconds += node.seconds;
    plan.traffic += node.traffic;
    finish(move);
    plan.moves.push_back(std::move(move));
  }
  std::reverse(plan.moves.begin(), plan.moves.end());
  return plan;
}

void PathSearch::finish(Move &move) {
  move.axes = mergeAxes(std::move(move.axes));
  move.source = canonical(std::move(move.source));
  move.target = canonical(std::move(move.target));
}

} // namespace tessera::sharding
