//===- PathMoves.cpp - The steps from one placement to others --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PathSearch.h"

#include <algorithm>

namespace tessera::sharding {

/// Beyond this many devices an exchange is tried from the source and from what reductions leave of
/// it alone: computing its boxes is quadratic in devices.
static constexpr int64_t kExchangeEverywhereDevices = 64;

/// All-reduces every partial axis of one reduction that the target does not have, in one group;
/// and each alone, since another may be better scattered.
void PathSearch::reduceAll() {
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

void PathSearch::relaxAllReduce(const AxisList &axes, ReduceKind kind) {
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
void PathSearch::reduceScatter() {
  for (size_t d = 0; d < current.dims.size(); ++d)
    for (const PartialAxis &first : current.partial) {
      AxisList axes;
      scatterFrom(d, first, axes);
    }
}

void PathSearch::scatterFrom(size_t dim, const PartialAxis &part, AxisList &axes) {
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
bool PathSearch::mayScatter(const AxisRef &axis, size_t dim) const {
  if (mayCut(axis, dim))
    return true;
  return parts.size() <= 4 && target.isFree(axis) &&
         problem.shape[dim] % (sizeOf(current.dims[dim]) * axis.size) == 0;
}

void PathSearch::slice() {
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

void PathSearch::relaxSlice(size_t dim, const AxisList &axes) {
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
void PathSearch::allToAll() {
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

void PathSearch::gather() {
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
void PathSearch::gatherSeveral() {
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
void PathSearch::permute() {
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

void PathSearch::permuteTo(const TensorSharding &next) {
  if (next == current)
    return;
  for (size_t d = 0; d < current.dims.size(); ++d)
    if (sizeOf(current.dims[d]) != sizeOf(next.dims[d]))
      return;
  AxisList axes;
  for (const AxisRef &axis : inPlay)
    if (!current.isFree(axis) || !next.isFree(axis))
      axes.push_back(axis);
  Move move;
  move.kind = CollectiveKind::permute;
  move.axes = axes;
  move.target = next;
  Layout held = makeLayout(current, problem.shape);
  int64_t bytes = held.maxValidElements() * problem.bytesPerElement;
  Traffic least{bytes, bytes, 1, 1};
  least.setCopies(move.kind, problem.bytesPerElement, held.localShape(),
                  localShape(next, problem.shape));
  defer(std::move(move), least);
}

/// Whether each device sends its part to at most one other: otherwise it is an exchange.
bool PathSearch::isPermutation(const TensorSharding &next) const {
  Layout before = makeLayout(current, problem.shape), after = makeLayout(next, problem.shape);
  Redistribution boxes = redistribute(problem.mesh, before, problem.mesh, after);
  std::vector<int64_t> sends(problem.mesh.numDevices());
  for (const Piece &piece : boxes.pieces)
    for (int64_t device : piece.targets)
      if (device != piece.sources.front())
        if (++sends[piece.sources.front()] > 1)
          return false;
  return true;
}

/// What an exchange sends at least: what devices lack beside what they have, in messages that are
/// no larger than what another one has.
Traffic PathSearch::leastOfExchange(const TensorSharding &next) const {
  Traffic least{0, 0, 1, 1};
  if (next.partial != current.partial)
    return least; // contributions are sent as well
  Layout from = makeLayout(current, problem.shape), to = makeLayout(next, problem.shape);
  int64_t held = std::max<int64_t>(1, from.maxValidElements()), most = 0, messages = 0;
  for (int64_t position = 0; position < problem.mesh.numDevices(); ++position) {
    std::vector<int64_t> coordinate = problem.mesh.coordinate(position);
    Box wanted = to.valid(problem.mesh, coordinate), own = from.valid(problem.mesh, coordinate);
    int64_t lacking = wanted.numElements();
    if (meet(wanted, own))
      lacking -= intersect(wanted, own).numElements();
    most = std::max(most, lacking);
    messages += ceilDiv(lacking, held);
  }
  least.wireBytes = most * problem.bytesPerElement;
  least.count = most > 0 ? 1 : 0;
  least.setCopies(CollectiveKind::exchange, problem.bytesPerElement, from.localShape(),
                  to.localShape());
  least.messages = ceilDiv(messages, problem.mesh.numDevices());
  return least;
}

void PathSearch::exchangeToTarget() {
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
  defer(std::move(move), leastOfExchange(next));
}

/// Local: a shard is its device's contribution to the whole; a replicated value stays at
/// coordinate 0.
void PathSearch::makePartials() {
  auto isKeptPart = [&](const PartialAxis &part) { return isKept(part); };
  for (const PartialAxis &part : target.partial) {
    if (std::find(current.partial.begin(), current.partial.end(), part) != current.partial.end() ||
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

} // namespace tessera::sharding
