//===- ReshardMoves.cpp - The moves from one placement --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardGraph.h"

#include <algorithm>
#include <map>

namespace tessera::sharding {

/// With more axis parts, an axis only moves to dimensions that it cuts in the source or the target.
static constexpr size_t kFreeSearchParts = 2;
/// With more devices an exchange is tried only from the source and its reductions: computing its
/// boxes is quadratic in the number of devices.
static constexpr int64_t kExchangeEverywhereDevices = 64;
/// Without a target: the most partial axes to reduce, or free axes to cut by, that are tried in any
/// order.
static constexpr size_t kMostOrdered = 3;

bool ReshardWalk::mayCut(const AxisRef &axis, size_t dim) const {
  return !target || axes.size() <= kFreeSearchParts || overlapsAny(target->dims[dim], axis) ||
         overlapsAny(source->dims[dim], axis);
}

/// The moves from one placement.
class MovesFrom {
public:
  MovesFrom(const ReshardGraph &graph, const ReshardWalk &walk, const TensorSharding &current,
            const ReshardGraph::Visitor &visit)
      : graph(graph), walk(walk), current(current), target(walk.target), visit(visit) {}

  void run();

private:
  void enter(Move move);
  void enterIfAligned(Move move);
  /// Whether the target has these contributions.
  bool isKept(const PartialAxis &part) const {
    return target &&
           std::find(target->partial.begin(), target->partial.end(), part) != target->partial.end();
  }
  size_t numStaying(size_t dim) const { return dim < walk.staying.size() ? walk.staying[dim] : 0; }

  template <typename Visit>
  static void forEachSequence(const AxisList &axes, AxisList &prefix, const Visit &visit);
  template <typename Visit> static void forEachChoice(const AxisList &axes, const Visit &visit);

  void reduce();
  void allReduce(const AxisList &axes, ReduceKind kind);
  void reduceScatter();
  void scatter(size_t dim, const AxisList &axes, ReduceKind kind);
  void scatterFrom(size_t dim, const PartialAxis &part, AxisList &axes);
  bool mayScatter(const AxisRef &axis, size_t dim) const;
  void slice();
  void cutBy(size_t dim, const AxisList &axes);
  void allToAll();
  void gather();
  void gatherSeveral();
  void gatherSelection();
  void permute();
  void permuteTo(TensorSharding next);
  void exchangeToTarget();
  void makePartials();
  void makePartial(const PartialAxis &part);

  const ReshardGraph &graph;
  const ReshardWalk &walk;
  const TensorSharding &current;
  const TensorSharding *target;
  const ReshardGraph::Visitor &visit;
};

void ReshardGraph::forEachMove(const TensorSharding &from, const ReshardWalk &walk,
                               const Visitor &visit) const {
  MovesFrom(*this, walk, from, visit).run();
}

void MovesFrom::run() {
  reduce();
  if (!walk.isExchangeOnly) {
    reduceScatter();
    slice();
    allToAll();
    gather();
    if (target)
      permute();
  } else if (target) {
    gatherSelection();
  }
  if (target)
    exchangeToTarget();
  makePartials();
}

void MovesFrom::enter(Move move) {
  move.source = current;
  std::sort(move.target.partial.begin(), move.target.partial.end());
  visit(std::move(move));
}

void MovesFrom::enterIfAligned(Move move) {
  bool isMet = graph.areAligned(current, move.target);
  if (!isMet && target)
    return;
  if (!isMet) {
    move.kind = CollectiveKind::exchange;
    move.axes.clear();
  }
  enter(std::move(move));
}

/// Calls `visit` with every sequence of distinct axes.
template <typename Visit>
void MovesFrom::forEachSequence(const AxisList &axes, AxisList &prefix, const Visit &visit) {
  for (const AxisRef &axis : axes) {
    if (std::find(prefix.begin(), prefix.end(), axis) != prefix.end())
      continue;
    prefix.push_back(axis);
    visit(prefix);
    forEachSequence(axes, prefix, visit);
    prefix.pop_back();
  }
}

/// Calls `visit` with every sequence of the axes if they are few, else with all of them and with
/// each.
template <typename Visit> void MovesFrom::forEachChoice(const AxisList &axes, const Visit &visit) {
  AxisList prefix;
  if (axes.size() <= kMostOrdered)
    return forEachSequence(axes, prefix, visit);
  visit(axes);
  for (const AxisRef &axis : axes)
    visit(AxisList{axis});
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// All-reduces all partial axes of one reduction that the target lacks in one group, and each
/// alone, since another may be better scattered. Without a target: every subset of few axes.
void MovesFrom::reduce() {
  std::map<ReduceKind, AxisList> byKind;
  for (const PartialAxis &part : current.partial)
    if (!isKept(part)) {
      byKind[part.kind].push_back(part.axis);
      if (target)
        allReduce({part.axis}, part.kind);
    }
  for (auto &[kind, axes] : byKind) {
    if (!target)
      forEachChoice(axes, [&, kind = kind](const AxisList &chosen) {
        if (std::is_sorted(chosen.begin(), chosen.end()))
          allReduce(chosen, kind);
      });
    else if (axes.size() > 1)
      allReduce(axes, kind);
  }
}

void MovesFrom::allReduce(const AxisList &axes, ReduceKind kind) {
  Move move;
  move.kind = CollectiveKind::all_reduce;
  move.axes = axes;
  move.reduction = kind;
  move.target = current;
  std::erase_if(move.target.partial,
                [&](const PartialAxis &part) { return overlapsAny(axes, part.axis); });
  enter(std::move(move));
}

/// Scatters one partial axis, or several of one reduction, as the last axes of a dimension.
void MovesFrom::reduceScatter() {
  for (size_t d = 0; d < current.dims.size(); ++d) {
    AxisList axes;
    if (target)
      for (const PartialAxis &first : current.partial)
        scatterFrom(d, first, axes);
    else if (current.isPartial())
      forEachChoice(current.partialAxes(), [&](const AxisList &chosen) {
        scatter(d, chosen, current.partial.front().kind);
      });
  }
}

void MovesFrom::scatter(size_t dim, const AxisList &axes, ReduceKind kind) {
  Move move;
  move.kind = CollectiveKind::reduce_scatter;
  move.axes = axes;
  move.dim = static_cast<int64_t>(dim);
  move.reduction = kind;
  move.target = current;
  move.target.dims[dim].insert(move.target.dims[dim].end(), axes.begin(), axes.end());
  std::erase_if(move.target.partial,
                [&](const PartialAxis &other) { return overlapsAny(axes, other.axis); });
  // Uneven parts would need contributions of all devices, and an exchange does not sum.
  if (graph.areAligned(current, move.target))
    enter(std::move(move));
}

void MovesFrom::scatterFrom(size_t dim, const PartialAxis &part, AxisList &axes) {
  if (isKept(part) || overlapsAny(axes, part.axis) || !mayScatter(part.axis, dim))
    return;
  axes.push_back(part.axis);
  TensorSharding cut = current;
  cut.dims[dim].insert(cut.dims[dim].end(), axes.begin(), axes.end());
  if (graph.areAligned(current, cut)) {
    scatter(dim, axes, part.kind);
    for (const PartialAxis &next : current.partial)
      if (next.kind == part.kind)
        scatterFrom(dim, next, axes);
  }
  axes.pop_back();
}

/// A partial axis may also be scattered where it is free in the target, if parts divide evenly.
bool MovesFrom::mayScatter(const AxisRef &axis, size_t dim) const {
  return walk.mayCut(axis, dim) ||
         (walk.scattersFreely && target->isFree(axis) &&
          graph.shape[dim] % (sizeOf(current.dims[dim]) * axis.size) == 0);
}

//===----------------------------------------------------------------------===//
// Cuts
//===----------------------------------------------------------------------===//

/// Cuts by one axis at a time; with a target also by the run of axes that it has next here. Without
/// a target also by several at once, if a chain of slices costs more or has other parts.
void MovesFrom::slice() {
  AxisList free;
  for (const AxisRef &axis : walk.axes)
    if (current.isFree(axis) && !(target && target->isFree(axis)))
      free.push_back(axis);
  for (size_t d = 0; d < current.dims.size(); ++d) {
    bool isEven = graph.shape[d] % (sizeOf(current.dims[d]) * sizeOf(free)) == 0;
    if (!target && (walk.joinsSlices || !isEven)) {
      forEachChoice(free, [&](const AxisList &chosen) { cutBy(d, chosen); });
      continue;
    }
    for (const AxisRef &axis : free)
      if (walk.mayCut(axis, d))
        cutBy(d, {axis});
    if (!target || !isPrefix(current.dims[d], target->dims[d]))
      continue;
    AxisList axes;
    for (const AxisRef &axis : removePrefix(current.dims[d], target->dims[d])) {
      if (!current.isFree(axis))
        break;
      axes.push_back(axis);
      if (axes.size() > 1)
        cutBy(d, axes);
    }
  }
}

void MovesFrom::cutBy(size_t dim, const AxisList &axes) {
  Move move;
  move.kind = CollectiveKind::slice;
  move.axes = axes;
  move.dim = static_cast<int64_t>(dim);
  move.target = current;
  move.target.dims[dim].insert(move.target.dims[dim].end(), axes.begin(), axes.end());
  enterIfAligned(std::move(move));
}

/// Local: a shard is its device's contribution to the whole; coordinate 0 keeps a replicated value.
void MovesFrom::makePartials() {
  if (!target) {
    ReduceKind kind = current.isPartial() ? current.partial.front().kind : ReduceKind::sum;
    for (const AxisRef &axis : walk.axes)
      if (!overlapsAny(current.partialAxes(), axis))
        makePartial({axis, kind});
    return;
  }
  auto isKeptPart = [&](const PartialAxis &part) { return isKept(part); };
  for (const PartialAxis &part : target->partial)
    // Reduce the other contributions first: two reductions do not mix.
    if (!overlapsAny(current.partialAxes(), part.axis) &&
        std::all_of(current.partial.begin(), current.partial.end(), isKeptPart))
      makePartial(part);
}

void MovesFrom::makePartial(const PartialAxis &part) {
  Move move;
  move.kind = CollectiveKind::slice;
  move.makesPartial = true;
  move.axes = {part.axis};
  move.reduction = part.kind;
  move.target = current;
  move.target.partial.push_back(part);
  bool isFree = current.isFree(part.axis);
  for (AxisList &axes : move.target.dims)
    if (!isFree && !axes.empty() && axes.back() == part.axis && current.windows.empty()) {
      axes.pop_back();
      isFree = graph.areAligned(current, move.target);
    }
  if (isFree)
    enter(std::move(move));
}

//===----------------------------------------------------------------------===//
// Moves of whole values
//===----------------------------------------------------------------------===//

/// Moves the last axes of one dimension to the end of another.
void MovesFrom::allToAll() {
  for (size_t from = 0; from < current.dims.size(); ++from)
    for (size_t length = 1; length + numStaying(from) <= current.dims[from].size(); ++length) {
      AxisList tail(current.dims[from].end() - static_cast<std::ptrdiff_t>(length),
                    current.dims[from].end());
      for (size_t to = 0; to < current.dims.size(); ++to) {
        if (to == from || !std::all_of(tail.begin(), tail.end(),
                                       [&](const AxisRef &axis) { return walk.mayCut(axis, to); }))
          continue;
        Move move;
        move.kind = CollectiveKind::all_to_all;
        move.axes = tail;
        move.dim = static_cast<int64_t>(from);
        move.splitDim = static_cast<int64_t>(to);
        move.target = current;
        move.target.dims[from].resize(current.dims[from].size() - length);
        move.target.dims[to].insert(move.target.dims[to].end(), tail.begin(), tail.end());
        enterIfAligned(std::move(move));
      }
    }
}

void MovesFrom::gather() {
  for (size_t d = 0; d < current.dims.size(); ++d)
    for (size_t length = 1; length + numStaying(d) <= current.dims[d].size(); ++length) {
      Move move;
      move.kind = CollectiveKind::all_gather;
      move.axes.assign(current.dims[d].end() - static_cast<std::ptrdiff_t>(length),
                       current.dims[d].end());
      move.dim = static_cast<int64_t>(d);
      move.target = current;
      move.target.dims[d].resize(current.dims[d].size() - length);
      enterIfAligned(std::move(move));
    }
  if (target)
    gatherSeveral();
}

/// Gathers all axes that the target lacks, in several dimensions at once: one collective.
void MovesFrom::gatherSeveral() {
  Move move;
  move.kind = CollectiveKind::all_gather;
  move.target = current;
  int64_t dims = 0;
  for (size_t d = 0; d < current.dims.size(); ++d) {
    if (!isPrefix(target->dims[d], current.dims[d]) || target->dims[d] == current.dims[d])
      continue;
    AxisList tail = removePrefix(target->dims[d], current.dims[d]);
    move.axes.insert(move.axes.end(), tail.begin(), tail.end());
    move.target.dims[d] = target->dims[d];
    move.dim = static_cast<int64_t>(d);
    ++dims;
  }
  if (dims > 1 && current.windows.empty())
    enterIfAligned(std::move(move));
}

/// Gathers a selection that every device needs whole: each device sends its elements of it to all
/// others.
void MovesFrom::gatherSelection() {
  Move move;
  move.kind = CollectiveKind::all_gather;
  move.target = *target;
  if (!current.windows.empty() || target->windows.empty() || current.partial != target->partial)
    return;
  for (size_t d = 0; d < current.dims.size(); ++d) {
    bool isSelected =
        std::any_of(target->windows.begin(), target->windows.end(),
                    [&](const Window &window) { return window.dim == static_cast<int64_t>(d); });
    if (isSelected ? !target->dims[d].empty() : target->dims[d] != current.dims[d])
      return;
    if (isSelected && !current.dims[d].empty()) {
      move.axes.insert(move.axes.end(), current.dims[d].begin(), current.dims[d].end());
      move.dim = static_cast<int64_t>(d);
    }
  }
  if (!move.axes.empty())
    enter(std::move(move));
}

/// If only the assignment of parts to devices differs, each device gets one whole part: the
/// target's axes in a dimension are a rearrangement, or others of the same sizes.
void MovesFrom::permute() {
  if (!current.partial.empty())
    return; // contributions must stay with their axis: only whole values are permuted
  TensorSharding next = *target;
  next.partial.clear();
  permuteTo(next);
  // The parts of one dimension may be finer than the target's: they move to where a gather of the
  // rest leads to the target, y of 4 to x of 2 by way of (x, minor half of y).
  for (size_t d = 0; d < current.dims.size(); ++d) {
    const AxisList &wanted = target->dims[d];
    AxisList major, minor;
    next = current;
    if (wanted.empty() || sizeOf(current.dims[d]) <= sizeOf(wanted) ||
        !splitAt(current.dims[d], sizeOf(wanted), major, minor))
      continue;
    next.dims[d] = minor;
    if (std::all_of(wanted.begin(), wanted.end(),
                    [&](const AxisRef &axis) { return next.isFree(axis); })) {
      next.dims[d].insert(next.dims[d].begin(), wanted.begin(), wanted.end());
      permuteTo(next);
    }
  }
}

void MovesFrom::permuteTo(TensorSharding next) {
  if (next == current)
    return;
  for (size_t d = 0; d < current.dims.size(); ++d)
    if (sizeOf(current.dims[d]) != sizeOf(next.dims[d]))
      return;
  Move move;
  move.kind = CollectiveKind::permute;
  for (const AxisRef &axis : walk.axes)
    if (!current.isFree(axis) || !next.isFree(axis))
      move.axes.push_back(axis);
  move.target = std::move(next);
  enter(std::move(move));
}

void MovesFrom::exchangeToTarget() {
  const TensorSharding &source = *walk.source;
  bool nearSource = current.dims == source.dims && current.windows == source.windows;
  if (graph.mesh.numDevices() > kExchangeEverywhereDevices && !nearSource)
    return;
  // Contributions that the target lacks are sent to the devices that need their sum, and added
  // there.
  bool reduces = std::any_of(current.partial.begin(), current.partial.end(),
                             [&](const PartialAxis &part) { return !isKept(part); });
  if (reduces && !walk.exchangesReduce)
    return;
  Move move;
  move.kind = CollectiveKind::exchange;
  move.target = *target;
  move.target.partial.clear();
  for (const PartialAxis &part : current.partial)
    if (isKept(part))
      move.target.partial.push_back(part);
  if (move.target != current)
    enter(std::move(move));
}

} // namespace tessera::sharding
