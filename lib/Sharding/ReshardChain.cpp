//===- ReshardChain.cpp - The moves of a reshard --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardChain.h"

#include "tessera/Sharding/Buffers.h"
#include "tessera/Sharding/Layout.h"

#include <algorithm>

namespace tessera::sharding {

/// One halo exchange per window, if each device's own part is in the middle of its windows;
/// otherwise empty.
static std::vector<Move> haloExchanges(const ReshardProblem &problem) {
  const TensorSharding &source = problem.source, &target = problem.target;
  if (!source.windows.empty() || source.dims != target.dims || source.partial != target.partial)
    return {};
  std::vector<Move> moves;
  TensorSharding current = source;
  for (const Window &window : target.windows) {
    int64_t chunk = ceilDiv(problem.shape[window.dim], sizeOf(source.dims[window.dim]));
    if (window.isSelection() || window.divisor != 1 || window.step != chunk || window.offset > 0 ||
        window.offset + window.length < chunk)
      return {};
    Move move;
    move.kind = CollectiveKind::halo_exchange;
    move.axes = source.dims[window.dim];
    move.dim = window.dim;
    move.source = current;
    current.windows.push_back(window);
    move.target = current;
    moves.push_back(std::move(move));
  }
  return moves;
}

static Move exchange(const TensorSharding &source, const TensorSharding &target) {
  Move move;
  move.kind = CollectiveKind::exchange;
  move.source = source;
  move.target = target;
  return move;
}

/// Whether every device has the elements of its target.
static bool isLocal(const ReshardProblem &problem) {
  Layout held = makeLayout(problem.source, problem.shape);
  Layout wanted = makeLayout(problem.target, problem.shape);
  return selectLike(held, wanted) == wanted;
}

ReshardPlan chainOf(const ReshardProblem &problem, bool isFilled, ReshardPlanner &planner) {
  const TensorSharding &source = problem.source, &target = problem.target;
  if (source.windows.empty() && target.windows.empty())
    return planner.plan(problem);
  ReshardPlan chain;
  if (!isFilled && isLocal(problem)) {
    if (source != target)
      chain.moves.push_back(exchange(source, target));
    return chain;
  }
  chain.moves = haloExchanges(problem);
  if (chain.moves.empty())
    chain = planner.plan(problem);
  bool fills = std::any_of(chain.moves.begin(), chain.moves.end(), [](const Move &move) {
    return isByBoxes(move.kind) && !move.target.windows.empty();
  });
  if (chain.moves.empty() ? source != target || isFilled : isFilled && !fills)
    chain.moves.push_back(exchange(chain.moves.empty() ? source : target, target));
  if (chain.seconds > 0 || chain.traffic.count > 0)
    return chain;
  const LinkModel &links = planner.linksOf(problem.mesh);
  for (const Move &move : chain.moves) {
    Traffic traffic = trafficOf(problem, move);
    chain.traffic += traffic;
    chain.seconds += links.seconds(problem.mesh, move.axes, move.kind, traffic);
  }
  return chain;
}

} // namespace tessera::sharding
