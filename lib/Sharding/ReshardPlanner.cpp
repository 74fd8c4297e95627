//===- ReshardPlanner.cpp - Chains of collectives for a reshard ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardPlanner.h"

#include <algorithm>

namespace tessera::sharding {

namespace {

/// Builds the chain step by step; `current` is where the tensor lies so far.
class ChainBuilder {
public:
  explicit ChainBuilder(const ReshardProblem &problem)
      : problem(problem), current(problem.source) {}

  std::vector<Move> run() {
    const TensorSharding &target = problem.target;
    reducePartials();
    shardsToPartials();
    if (!current.windows.empty() || !target.windows.empty()) {
      // Windows overlap: only an exchange of the overlaps moves them.
      TensorSharding next = target;
      next.partial = current.partial;
      if (current.dims != next.dims || current.windows != next.windows)
        exchangeTo(next);
    } else {
      if (!reachDimsDirectly())
        exchangeTo(withDims(target.dims));
    }
    makePartials();
    return std::move(moves);
  }

private:
  TensorSharding withDims(const std::vector<AxisList> &dims) const {
    TensorSharding next = current;
    next.dims = dims;
    return next;
  }

  void add(Move move) {
    move.source = current;
    move.target = canonical(move.target);
    current = move.target;
    moves.push_back(std::move(move));
  }

  void exchangeTo(TensorSharding next) {
    if (canonical(next) == current)
      return;
    Move move;
    move.kind = CollectiveKind::exchange;
    move.target = std::move(next);
    add(std::move(move));
  }

  /// Whether every device of the move finds what it needs among the devices that differ from it in
  /// `axes` only: parts of uneven cuts may end elsewhere.
  bool staysInGroup(const AxisList &axes, const TensorSharding &target) const {
    Layout before = makeLayout(current, problem.shape), after = makeLayout(target, problem.shape);
    // Even cuts always do: the cheap test first.
    bool even = true;
    for (size_t d = 0; d < problem.shape.size(); ++d)
      even = even && problem.shape[d] % sizeOf(current.dims[d]) == 0 &&
             problem.shape[d] % sizeOf(target.dims[d]) == 0;
    if (even)
      return true;
    Redistribution move = redistribute(problem.mesh, before, problem.mesh, after);
    for (const Piece &piece : move.pieces)
      for (int64_t device : piece.targets)
        for (int64_t source : piece.sources) {
          std::vector<int64_t> a = problem.mesh.coordinate(device);
          std::vector<int64_t> b = problem.mesh.coordinate(source);
          for (const AxisRef &axis : axes) {
            int64_t post = problem.mesh.shape[axis.axis] / (axis.pre * axis.size);
            a[axis.axis] -= coordinateIn(problem.mesh, axis, a) * post;
            b[axis.axis] -= coordinateIn(problem.mesh, axis, b) * post;
          }
          if (a != b)
            return false;
        }
    return true;
  }

  /// Reduces the partial axes that the target does not have: onto the dimension that the target
  /// cuts by them where it can, all others in one all-reduce a reduction.
  void reducePartials() {
    std::vector<PartialAxis> toReduce;
    for (const PartialAxis &part : current.partial)
      if (std::find(problem.target.partial.begin(), problem.target.partial.end(), part) ==
          problem.target.partial.end())
        toReduce.push_back(part);
    for (size_t d = 0;
         d < current.dims.size() && current.windows.empty() && problem.target.windows.empty();
         ++d) {
      if (!isPrefix(current.dims[d], problem.target.dims[d]))
        continue;
      AxisList added = removePrefix(current.dims[d], problem.target.dims[d]);
      // The longest run of partial axes right behind what cuts the dimension now.
      AxisList scattered;
      std::optional<ReduceKind> kind;
      for (const AxisRef &axis : added) {
        auto it = std::find_if(toReduce.begin(), toReduce.end(),
                               [&](const PartialAxis &part) { return part.axis == axis; });
        if (it == toReduce.end() || (kind && *kind != it->kind))
          break;
        kind = it->kind;
        scattered.push_back(axis);
      }
      if (scattered.empty())
        continue;
      TensorSharding next = current;
      next.dims[d].insert(next.dims[d].end(), scattered.begin(), scattered.end());
      next.partial.clear();
      for (const PartialAxis &part : current.partial)
        if (!overlapsAny(scattered, part.axis))
          next.partial.push_back(part);
      if (!staysInGroup(scattered, next))
        continue;
      std::erase_if(toReduce,
                    [&](const PartialAxis &part) { return overlapsAny(scattered, part.axis); });
      Move move;
      move.kind = CollectiveKind::reduce_scatter;
      move.axes = scattered;
      move.dim = static_cast<int64_t>(d);
      move.reduction = *kind;
      move.target = std::move(next);
      add(std::move(move));
    }
    while (!toReduce.empty()) {
      ReduceKind kind = toReduce.front().kind;
      Move move;
      move.kind = CollectiveKind::all_reduce;
      move.reduction = kind;
      move.target = current;
      for (const PartialAxis &part : toReduce)
        if (part.kind == kind) {
          move.axes.push_back(part.axis);
          std::erase(move.target.partial, part);
        }
      std::erase_if(toReduce, [&](const PartialAxis &part) { return part.kind == kind; });
      add(std::move(move));
    }
  }

  /// Slices, all-to-alls and gathers that lead to the target's dimensions; false when no such chain
  /// is known. Nothing has been added then.
  bool reachDimsDirectly() {
    const std::vector<AxisList> &target = problem.target.dims;
    if (current.dims == target)
      return true;
    std::vector<Move> saved = moves;
    TensorSharding savedCurrent = current;
    sliceWhatIsFree();
    moveAxes();
    gatherRest();
    sliceWhatIsFree();
    if (current.dims == target)
      return true;
    moves = std::move(saved);
    current = std::move(savedCurrent);
    return false;
  }

  void sliceWhatIsFree() {
    for (size_t d = 0; d < current.dims.size(); ++d) {
      const AxisList &target = problem.target.dims[d];
      if (current.dims[d] == target || !isPrefix(current.dims[d], target))
        continue;
      AxisList added;
      for (const AxisRef &axis : removePrefix(current.dims[d], target)) {
        if (!current.isFree(axis))
          break;
        added.push_back(axis);
      }
      if (added.empty())
        continue;
      TensorSharding next = current;
      next.dims[d].insert(next.dims[d].end(), added.begin(), added.end());
      if (!staysInGroup({}, next))
        continue; // the device does not hold all of its new part
      Move move;
      move.kind = CollectiveKind::slice;
      move.axes = added;
      move.dim = static_cast<int64_t>(d);
      move.target = std::move(next);
      add(std::move(move));
    }
  }

  /// Axes at the end of one dimension that the target has next in another.
  void moveAxes() {
    for (size_t from = 0; from < current.dims.size(); ++from) {
      for (size_t to = 0; to < current.dims.size(); ++to) {
        if (from == to || !isPrefix(current.dims[to], problem.target.dims[to]))
          continue;
        AxisList wanted = removePrefix(current.dims[to], problem.target.dims[to]);
        AxisList &have = current.dims[from];
        // The longest tail of `from` that is the head of what `to` still wants.
        for (size_t length = std::min(wanted.size(), have.size()); length > 0; --length) {
          AxisList tail(have.end() - length, have.end());
          if (!std::equal(tail.begin(), tail.end(), wanted.begin()))
            continue;
          TensorSharding next = current;
          next.dims[from].resize(have.size() - length);
          next.dims[to].insert(next.dims[to].end(), tail.begin(), tail.end());
          if (!staysInGroup(tail, next))
            continue;
          Move move;
          move.kind = CollectiveKind::all_to_all;
          move.axes = tail;
          move.dim = static_cast<int64_t>(from);
          move.splitDim = static_cast<int64_t>(to);
          move.target = std::move(next);
          add(std::move(move));
          break;
        }
      }
    }
  }

  void gatherRest() {
    for (size_t d = 0; d < current.dims.size(); ++d) {
      AxisList prefix = commonPrefix(current.dims[d], problem.target.dims[d]);
      AxisList rest = removePrefix(prefix, current.dims[d]);
      if (rest.empty())
        continue;
      // Gathering what must be cut again elsewhere would send too much: an exchange does better.
      bool needed = std::any_of(
          problem.target.dims.begin(), problem.target.dims.end(), [&](const AxisList &axes) {
            return std::any_of(rest.begin(), rest.end(),
                               [&](const AxisRef &axis) { return overlapsAny(axes, axis); });
          });
      TensorSharding next = current;
      next.dims[d] = prefix;
      if (needed || !staysInGroup(rest, next))
        continue;
      Move move;
      move.kind = CollectiveKind::all_gather;
      move.axes = rest;
      move.dim = static_cast<int64_t>(d);
      move.target = std::move(next);
      add(std::move(move));
    }
  }

  /// A shard is its device's contribution to the whole: no need to gather what becomes partial.
  void shardsToPartials() {
    if (!current.windows.empty())
      return;
    for (const PartialAxis &part : problem.target.partial)
      for (AxisList &axes : current.dims) {
        if (axes.empty() || axes.back() != part.axis)
          continue;
        TensorSharding next = current;
        next.dims[&axes - current.dims.data()].pop_back();
        next.partial.push_back(part);
        addMakePartial(part, std::move(next));
        break;
      }
  }

  void addMakePartial(const PartialAxis &part, TensorSharding next) {
    Move move;
    move.kind = CollectiveKind::slice;
    move.makesPartial = true;
    move.axes = {part.axis};
    move.reduction = part.kind;
    move.target = std::move(next);
    add(std::move(move));
  }

  void makePartials() {
    for (const PartialAxis &part : problem.target.partial) {
      if (std::find(current.partial.begin(), current.partial.end(), part) != current.partial.end())
        continue;
      TensorSharding next = current;
      next.partial.push_back(part);
      addMakePartial(part, std::move(next));
    }
  }

  const ReshardProblem &problem;
  TensorSharding current;
  std::vector<Move> moves;
};

} // namespace

std::vector<Move> planReshard(const ReshardProblem &problem) {
  return ChainBuilder(problem).run();
}

Traffic trafficOf(const ReshardProblem &problem, const std::vector<Move> &moves) {
  Traffic total;
  for (const Move &move : moves) {
    int64_t group = move.axes.empty() ? problem.mesh.numDevices() : sizeOf(move.axes);
    total += trafficOf(move.kind, group, problem.bytesPerElement, problem.mesh,
                       makeLayout(move.source, problem.shape), problem.mesh,
                       makeLayout(move.target, problem.shape));
  }
  return total;
}

} // namespace tessera::sharding
