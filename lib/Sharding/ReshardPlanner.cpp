//===- ReshardPlanner.cpp - Chains of collectives for a reshard ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardPlanner.h"

#include "Boxes.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace tessera::sharding {

Traffic trafficOf(const ReshardProblem &problem, const Move &move) {
  int64_t group = move.axes.empty() ? problem.mesh.numDevices() : sizeOf(move.axes);
  return trafficOf(move.kind, group, problem.bytesPerElement, problem.mesh,
                   makeLayout(move.source, problem.shape), problem.mesh,
                   makeLayout(move.target, problem.shape));
}

namespace {

/// Beyond this many axis parts in play, axes only go where the source or the target has them.
constexpr size_t kFreeSearchParts = 2;
/// Beyond this many devices an exchange is tried from the source and from what reductions leave of
/// it alone: computing its boxes is quadratic in devices.
constexpr int64_t kExchangeEverywhereDevices = 64;

/// Shortest path over placements (Dijkstra; every cost is >= 0).
///
/// Inside the search every axis is cut into the parts that source and target name, so that a part
/// is moved whole; states are compared in that form and merged only when a move leaves the planner.
class PathSearch {
public:
  PathSearch(const ReshardProblem &problem, Objective objective, const LinkModel &links)
      : problem(problem), objective(objective), links(links) {
    source = refine(problem.source);
    target = refine(problem.target);
    for (const AxisRef &part : parts)
      if (!source.isFree(part) || !target.isFree(part))
        inPlay.push_back(part);
  }

  /// A step that the path must not use.
  const Move *forbidden = nullptr;
  /// The only kind of step that is tried, if set.
  std::optional<CollectiveKind> onlyKind;

  /// The cheapest chain; nothing when what is forbidden leaves none.
  std::optional<ReshardPlan> run() {
    best[source] = {};
    queue.insert({Cost{}, source});
    while (!queue.empty()) {
      auto [cost, state] = *queue.begin();
      queue.erase(queue.begin());
      if (state == target)
        return trace();
      best[state].done = true;
      current = state;
      currentCost = cost;
      expand();
    }
    return std::nullopt;
  }

  /// The one step from source to target.
  std::optional<Move> step() {
    best[source] = {};
    current = source;
    expand();
    auto it = best.find(target);
    if (it == best.end())
      return std::nullopt;
    Move move = it->second.move;
    finish(move);
    return move;
  }

private:
  void expand() {
    // Windows overlap, and only an exchange makes or moves them: reduce, exchange, make partial. So
    // it is where source and target cut an axis into parts that have no common parts.
    bool exchangeOnly = !nested || !source.windows.empty() || !target.windows.empty();
    auto tries = [&](CollectiveKind kind) {
      bool chains = kind != CollectiveKind::all_reduce && kind != CollectiveKind::exchange;
      return (!onlyKind || *onlyKind == kind) && !(exchangeOnly && chains);
    };
    if (tries(CollectiveKind::all_reduce))
      reduceAll();
    if (tries(CollectiveKind::reduce_scatter))
      reduceScatter();
    if (tries(CollectiveKind::slice))
      slice();
    if (tries(CollectiveKind::all_to_all))
      allToAll();
    if (tries(CollectiveKind::all_gather))
      gather();
    if (tries(CollectiveKind::permute))
      permute();
    if (tries(CollectiveKind::exchange))
      exchangeToTarget();
    if (!onlyKind || *onlyKind == CollectiveKind::slice)
      makePartials();
  }

  struct Node {
    Cost cost;
    bool done = false;
    Move move; ///< that led here
  };

  //===--- States --------------------------------------------------------===//

  /// Cuts every axis into the parts that source and target name.
  TensorSharding refine(const TensorSharding &sharding) {
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

  void computeParts() {
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

  /// Whether `axis` may come to cut dimension `dim` on the way.
  bool mayCut(const AxisRef &axis, size_t dim) const {
    if (inPlay.size() <= kFreeSearchParts)
      return true;
    return overlapsAny(target.dims[dim], axis) || overlapsAny(source.dims[dim], axis);
  }

  //===--- Moves ---------------------------------------------------------===//

  /// Whether every device finds what it needs among those that differ from it in `axes` only.
  bool staysInGroup(const AxisList &axes, const TensorSharding &next) const {
    bool even = true;
    for (size_t d = 0; d < problem.shape.size(); ++d)
      even = even && problem.shape[d] % sizeOf(current.dims[d]) == 0 &&
             problem.shape[d] % sizeOf(next.dims[d]) == 0;
    if (even)
      return true;
    // Reduced or kept contributions lie elsewhere by nature: only the boxes count here.
    TensorSharding before = current, after = next;
    before.partial.clear();
    after.partial.clear();
    Layout from = makeLayout(before, problem.shape), to = makeLayout(after, problem.shape);
    std::vector<Box> held;
    for (int64_t position = 0; position < problem.mesh.numDevices(); ++position)
      held.push_back(from.valid(problem.mesh, problem.mesh.coordinate(position)));
    for (const std::vector<int64_t> &group : deviceGroups(problem.mesh, axes))
      for (int64_t position : group) {
        std::vector<Box> missing{to.valid(problem.mesh, problem.mesh.coordinate(position))};
        for (int64_t member : group)
          missing = without(std::move(missing), held[member]);
        if (std::any_of(missing.begin(), missing.end(),
                        [](const Box &box) { return !box.empty(); }))
          return false;
      }
    return true;
  }

  /// Whether every device's part lies within its part of the next: uneven parts of parts are not
  /// always parts of the whole, 5 over 2x2 is 2, 2, 1, 0 and over 2 it is 3, 2.
  bool keepsOwn(const TensorSharding &next) const {
    TensorSharding before = current, after = next;
    before.partial.clear();
    after.partial.clear();
    Layout from = makeLayout(before, problem.shape), to = makeLayout(after, problem.shape);
    for (int64_t position = 0; position < problem.mesh.numDevices(); ++position) {
      std::vector<int64_t> coordinate = problem.mesh.coordinate(position);
      if (!to.valid(problem.mesh, coordinate).contains(from.valid(problem.mesh, coordinate)))
        return false;
    }
    return true;
  }

  /// What is left of boxes without another.
  static std::vector<Box> without(std::vector<Box> boxes, const Box &hole) {
    if (std::none_of(boxes.begin(), boxes.end(), [&](const Box &box) { return meet(box, hole); }))
      return boxes;
    std::vector<Box> rest;
    for (const Box &box : boxes)
      for (Box &piece : subtract(box, hole))
        rest.push_back(std::move(piece));
    return rest;
  }

  void relax(Move move) {
    move.source = current;
    std::sort(move.target.partial.begin(), move.target.partial.end());
    if (onlyKind && (move.kind != *onlyKind || move.target != target))
      return; // one step is asked for, and it must arrive
    if (forbidden && move.kind == forbidden->kind && canonical(move.source) == forbidden->source &&
        canonical(move.target) == forbidden->target)
      return;
    Traffic traffic = trafficOf(problem, move);
    double seconds = links.seconds(problem.mesh, move.axes, move.kind, traffic);
    Cost cost = currentCost + Cost::of(objective, seconds, traffic);
    // A step costs a little even when it sends nothing: of equal chains the shorter is taken.
    cost.third += 1e-3;
    // Of equal bytes a chain of collectives that every library has is better than an exchange.
    if (move.kind == CollectiveKind::exchange && objective == Objective::bytes)
      cost.first += 0.5;
    auto [it, fresh] = best.try_emplace(move.target);
    Node &node = it->second;
    if (!fresh && (node.done || node.cost <= cost))
      return;
    if (!fresh)
      queue.erase({node.cost, it->first});
    node.cost = cost;
    queue.insert({cost, it->first});
    node.move = std::move(move);
  }

  bool isKept(const PartialAxis &part) const {
    return std::find(target.partial.begin(), target.partial.end(), part) != target.partial.end();
  }

  /// All-reduces every partial axis of one reduction that the target does not have, in one group;
  /// and each alone, since another may be better scattered.
  void reduceAll() {
    std::map<ReduceKind, AxisList> byKind;
    for (const PartialAxis &part : current.partial)
      if (!isKept(part)) {
        byKind[part.kind].push_back(part.axis);
        relaxAllReduce({part.axis}, part.kind);
      }
    for (auto &[kind, axes] : byKind)
      if (axes.size() > 1)
        relaxAllReduce(axes, kind);
  }

  void relaxAllReduce(const AxisList &axes, ReduceKind kind) {
    Move move;
    move.kind = CollectiveKind::all_reduce;
    move.axes = axes;
    move.reduction = kind;
    move.target = current;
    std::erase_if(move.target.partial,
                  [&](const PartialAxis &part) { return overlapsAny(axes, part.axis); });
    relax(std::move(move));
  }

  /// Scatters one partial axis, or a run of several of one reduction, behind what cuts a dimension.
  void reduceScatter() {
    for (size_t d = 0; d < current.dims.size(); ++d)
      for (const PartialAxis &first : current.partial) {
        AxisList axes;
        scatterFrom(d, first, axes);
      }
  }

  void scatterFrom(size_t dim, const PartialAxis &part, AxisList &axes) {
    if (isKept(part) || overlapsAny(axes, part.axis) || !mayScatter(part.axis, dim))
      return;
    axes.push_back(part.axis);
    Move move;
    move.kind = CollectiveKind::reduce_scatter;
    move.axes = axes;
    move.dim = static_cast<int64_t>(dim);
    move.reduction = part.kind;
    move.target = current;
    move.target.dims[dim].insert(move.target.dims[dim].end(), axes.begin(), axes.end());
    std::erase_if(move.target.partial,
                  [&](const PartialAxis &other) { return overlapsAny(axes, other.axis); });
    if (staysInGroup(axes, move.target)) {
      relax(move);
      for (const PartialAxis &next : current.partial)
        if (next.kind == part.kind)
          scatterFrom(dim, next, axes);
    }
    axes.pop_back();
  }

  /// A partial axis may also be scattered where nobody has it, when parts divide.
  bool mayScatter(const AxisRef &axis, size_t dim) const {
    if (mayCut(axis, dim))
      return true;
    return parts.size() <= 4 && target.isFree(axis) &&
           problem.shape[dim] % (sizeOf(current.dims[dim]) * axis.size) == 0;
  }

  void slice() {
    for (size_t d = 0; d < current.dims.size(); ++d) {
      // Part by part, and the run of axes that the target has next here at once.
      AxisList axes;
      for (const AxisRef &axis : inPlay)
        if (current.isFree(axis) && mayCut(axis, d) && !target.isFree(axis))
          relaxSlice(d, {axis});
      if (isPrefix(current.dims[d], target.dims[d])) {
        for (const AxisRef &axis : removePrefix(current.dims[d], target.dims[d])) {
          if (!current.isFree(axis))
            break;
          axes.push_back(axis);
          if (axes.size() > 1)
            relaxSlice(d, axes);
        }
      }
    }
  }

  void relaxSlice(size_t dim, const AxisList &axes) {
    Move move;
    move.kind = CollectiveKind::slice;
    move.axes = axes;
    move.dim = static_cast<int64_t>(dim);
    move.target = current;
    move.target.dims[dim].insert(move.target.dims[dim].end(), axes.begin(), axes.end());
    if (staysInGroup({}, move.target))
      relax(std::move(move));
  }

  /// Moves the last axes of one dimension behind those of another.
  void allToAll() {
    for (size_t from = 0; from < current.dims.size(); ++from)
      for (size_t length = 1; length <= current.dims[from].size(); ++length) {
        AxisList tail(current.dims[from].end() - length, current.dims[from].end());
        for (size_t to = 0; to < current.dims.size(); ++to) {
          if (to == from || !std::all_of(tail.begin(), tail.end(),
                                         [&](const AxisRef &axis) { return mayCut(axis, to); }))
            continue;
          Move move;
          move.kind = CollectiveKind::all_to_all;
          move.axes = tail;
          move.dim = static_cast<int64_t>(from);
          move.splitDim = static_cast<int64_t>(to);
          move.target = current;
          move.target.dims[from].resize(current.dims[from].size() - length);
          move.target.dims[to].insert(move.target.dims[to].end(), tail.begin(), tail.end());
          if (staysInGroup(tail, move.target))
            relax(std::move(move));
        }
      }
  }

  void gather() {
    for (size_t d = 0; d < current.dims.size(); ++d)
      for (size_t length = 1; length <= current.dims[d].size(); ++length) {
        Move move;
        move.kind = CollectiveKind::all_gather;
        move.axes.assign(current.dims[d].end() - length, current.dims[d].end());
        move.dim = static_cast<int64_t>(d);
        move.target = current;
        move.target.dims[d].resize(current.dims[d].size() - length);
        if (staysInGroup(move.axes, move.target))
          relax(std::move(move));
      }
    gatherSeveral();
  }

  /// Everything that the target does not have, of several dimensions at once: one collective.
  void gatherSeveral() {
    Move move;
    move.kind = CollectiveKind::all_gather;
    move.target = current;
    int64_t dims = 0;
    for (size_t d = 0; d < current.dims.size(); ++d) {
      if (!isPrefix(target.dims[d], current.dims[d]) || target.dims[d] == current.dims[d])
        continue;
      AxisList tail = removePrefix(target.dims[d], current.dims[d]);
      move.axes.insert(move.axes.end(), tail.begin(), tail.end());
      move.target.dims[d] = target.dims[d];
      move.dim = static_cast<int64_t>(d);
      ++dims;
    }
    if (dims > 1 && current.windows.empty() && staysInGroup(move.axes, move.target))
      relax(std::move(move));
  }

  /// Where all that differs is which device has which part, each device gets one whole part: the
  /// target's axes in one dimension are a rearrangement, or others of the same sizes.
  void permute() {
    if (!current.partial.empty())
      return; // contributions must stay with their axis: only whole values are permuted
    TensorSharding next = target;
    next.partial.clear();
    permuteTo(next);
    // One dimension's parts may be finer than the target's: they go where a gather of the rest
    // leads to it, y of 4 to x of 2 by way of (x, minor half of y).
    for (size_t d = 0; d < current.dims.size(); ++d) {
      AxisList major, minor;
      next = current;
      if (target.dims[d].empty() || sizeOf(current.dims[d]) <= sizeOf(target.dims[d]) ||
          !splitAt(current.dims[d], sizeOf(target.dims[d]), major, minor))
        continue;
      next.dims[d] = minor;
      if (std::all_of(target.dims[d].begin(), target.dims[d].end(),
                      [&](const AxisRef &axis) { return next.isFree(axis); })) {
        next.dims[d].insert(next.dims[d].begin(), target.dims[d].begin(), target.dims[d].end());
        permuteTo(next);
      }
    }
  }

  void permuteTo(const TensorSharding &next) {
    if (next == current)
      return;
    for (size_t d = 0; d < current.dims.size(); ++d)
      if (sizeOf(current.dims[d]) != sizeOf(next.dims[d]))
        return;
    AxisList axes;
    for (const AxisRef &axis : inPlay)
      if (!current.isFree(axis) || !next.isFree(axis))
        axes.push_back(axis);
    Layout before = makeLayout(current, problem.shape);
    Layout after = makeLayout(next, problem.shape);
    // Each device sends its part to at most one other: otherwise it is an exchange.
    Redistribution boxes = redistribute(problem.mesh, before, problem.mesh, after);
    std::vector<int64_t> sends(problem.mesh.numDevices());
    for (const Piece &piece : boxes.pieces)
      for (int64_t device : piece.targets)
        if (device != piece.sources.front())
          if (++sends[piece.sources.front()] > 1)
            return;
    Move move;
    move.kind = CollectiveKind::permute;
    move.axes = axes;
    move.target = next;
    relax(std::move(move));
  }

  void exchangeToTarget() {
    bool nearSource = current.dims == source.dims && current.windows == source.windows;
    if (problem.mesh.numDevices() > kExchangeEverywhereDevices && !nearSource)
      return;
    // Contributions that the target does not have are sent to who needs their sum, and added there.
    // For the sake of time this is left to the reductions of a library, which have better
    // algorithms than one message a pair.
    bool reduces = std::any_of(current.partial.begin(), current.partial.end(),
                               [&](const PartialAxis &part) { return !isKept(part); });
    if (reduces && objective == Objective::time)
      return;
    TensorSharding next = target;
    next.partial.clear();
    for (const PartialAxis &part : current.partial)
      if (isKept(part))
        next.partial.push_back(part);
    if (next == current)
      return;
    Move move;
    move.kind = CollectiveKind::exchange;
    move.target = next;
    relax(std::move(move));
  }

  /// Local: a shard is its device's contribution to the whole; a replicated value stays at
  /// coordinate 0.
  void makePartials() {
    auto isKeptPart = [&](const PartialAxis &part) { return isKept(part); };
    for (const PartialAxis &part : target.partial) {
      if (std::find(current.partial.begin(), current.partial.end(), part) !=
              current.partial.end() ||
          overlapsAny(current.partialAxes(), part.axis) ||
          !std::all_of(current.partial.begin(), current.partial.end(), isKeptPart))
        continue; // what is to be reduced is reduced first: two reductions do not mix
      Move move;
      move.kind = CollectiveKind::slice;
      move.makesPartial = true;
      move.axes = {part.axis};
      move.reduction = part.kind;
      move.target = current;
      move.target.partial.push_back(part);
      bool free = current.isFree(part.axis);
      for (AxisList &axes : move.target.dims)
        if (!free && !axes.empty() && axes.back() == part.axis && current.windows.empty()) {
          axes.pop_back();
          free = keepsOwn(move.target);
        }
      if (free)
        relax(std::move(move));
    }
  }

  //===--- The path ------------------------------------------------------===//

  ReshardPlan trace() {
    ReshardPlan plan;
    for (TensorSharding at = target; at != source;) {
      Move move = best[at].move;
      at = move.source;
      Traffic traffic = trafficOf(problem, move);
      plan.seconds += links.seconds(problem.mesh, move.axes, move.kind, traffic);
      plan.traffic += traffic;
      finish(move);
      plan.moves.push_back(std::move(move));
    }
    std::reverse(plan.moves.begin(), plan.moves.end());
    return plan;
  }

  /// A step as it leaves the planner: with whole axes again.
  static void finish(Move &move) {
    move.axes = mergeAxes(std::move(move.axes));
    move.source = canonical(std::move(move.source));
    move.target = canonical(std::move(move.target));
  }

  const ReshardProblem &problem;
  Objective objective;
  const LinkModel &links;
  bool nested = true; ///< whether the cuts of every axis have common parts
  AxisList parts;     ///< of every mesh axis
  AxisList inPlay;    ///< parts that source or target use
  TensorSharding source, target;
  std::map<TensorSharding, Node> best;
  std::set<std::pair<Cost, TensorSharding>> queue;
  TensorSharding current;
  Cost currentCost;
};

} // namespace

ReshardPlan planReshard(const ReshardProblem &problem, Objective objective,
                        const LinkModel &links) {
  if (problem.source == problem.target)
    return {};
  std::optional<ReshardPlan> plan = PathSearch(problem, objective, links).run();
  assert(plan && "an all-reduce and an exchange always lead to the target");
  return std::move(*plan);
}

std::optional<ReshardPlan> planRunnerUp(const ReshardProblem &problem, const ReshardPlan &plan,
                                        Objective objective, const LinkModel &links) {
  const Move *dearest = nullptr;
  double most = 0;
  for (const Move &move : plan.moves) {
    Traffic traffic = trafficOf(problem, move);
    double cost = objective == Objective::time
                      ? links.seconds(problem.mesh, move.axes, move.kind, traffic)
                      : static_cast<double>(traffic.wireBytes);
    if (cost > most) {
      dearest = &move;
      most = cost;
    }
  }
  if (!dearest)
    return std::nullopt;
  PathSearch search(problem, objective, links);
  search.forbidden = dearest;
  return search.run();
}

static std::optional<Move> findMove(const ReshardProblem &problem, CollectiveKind kind) {
  // For the sake of bytes every kind of exchange is tried.
  LinkModel links;
  PathSearch search(problem, Objective::bytes, links);
  search.onlyKind = kind;
  return search.step();
}

ReshardPlanner::Key ReshardPlanner::keyOf(const ReshardProblem &problem) {
  return {problem.mesh.name, problem.shape, problem.bytesPerElement, problem.source,
          problem.target};
}

const std::optional<Move> &ReshardPlanner::step(const ReshardProblem &problem,
                                                CollectiveKind kind) {
  auto [it, fresh] = steps.try_emplace({keyOf(problem), kind});
  if (fresh)
    it->second = findMove(problem, kind);
  return it->second;
}

const ReshardPlan &ReshardPlanner::plan(const ReshardProblem &problem) {
  Key key = keyOf(problem);
  auto it = known.find(key);
  if (it == known.end())
    it =
        known.emplace(std::move(key), planReshard(problem, objective, linksOf(problem.mesh))).first;
  return it->second;
}

const LinkModel &ReshardPlanner::linksOf(const Mesh &mesh) {
  auto it = links.find(mesh.name);
  if (it == links.end())
    it = links.emplace(mesh.name, topology.linksOf(mesh)).first;
  return it->second;
}

} // namespace tessera::sharding
