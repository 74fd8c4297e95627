//===- Move.cpp - Whether a collective leads from one sharding to another -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each kind adds axes to exactly one side of a move: the axes of the side with fewer
// axes, followed by those of the group, are the axes of the other side. This form is
// independent of how parts of axes are merged.
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardPlanner.h"

#include <algorithm>

namespace tessera::sharding {

static bool isDim(const TensorSharding &sharding, int64_t dim) {
  return dim >= 0 && dim < sharding.rank();
}

/// The sharding with `axes` appended to those that cut `dim`.
static TensorSharding withCut(TensorSharding sharding, int64_t dim, const AxisList &axes) {
  AxisList &own = sharding.dims[dim];
  own.insert(own.end(), axes.begin(), axes.end());
  own = mergeAxes(std::move(own));
  return sharding;
}

static TensorSharding withPartial(TensorSharding sharding, const AxisList &axes, ReduceKind kind) {
  for (const AxisRef &axis : axes)
    sharding.partial.push_back({axis, kind});
  return canonical(std::move(sharding));
}

/// Whether the group's axes are exactly those that the source has and the target lacks, dimension
/// by dimension.
static bool gathersAxes(const Move &move) {
  TensorSharding rest = move.source;
  AxisList gathered;
  for (size_t d = 0; d < rest.dims.size(); ++d) {
    if (!isPrefix(move.target.dims[d], move.source.dims[d]))
      return false;
    AxisList tail = removePrefix(move.target.dims[d], move.source.dims[d]);
    gathered.insert(gathered.end(), tail.begin(), tail.end());
    rest.dims[d] = move.target.dims[d];
  }
  // The gathered elements may be a selection, whole on every device.
  if (move.source.windows.empty()) {
    rest.windows = move.target.windows;
    for (const Window &window : rest.windows)
      if (!move.target.dims[window.dim].empty())
        return false;
  }
  return canonical(rest) == move.target && mergeAxes(gathered) == move.axes;
}

/// Contributions of a value that is replicated along the axes, or of parts that the axes cut last.
static bool makesPartials(const Move &move) {
  if (withPartial(move.source, move.axes, move.reduction) == move.target)
    return true;
  for (int64_t d = 0; d < move.source.rank(); ++d) {
    TensorSharding joined = move.target;
    joined.partial = move.source.partial;
    if (withCut(joined, d, move.axes) == move.source &&
        withPartial(joined, move.axes, move.reduction) == move.target)
      return true;
  }
  return false;
}

/// Whether the parts of one dimension become windows around them.
static bool addsHalo(const Move &move) {
  if (!isDim(move.source, move.dim) || move.source.dims[move.dim] != move.axes)
    return false;
  TensorSharding target = move.target;
  auto halo = std::find_if(target.windows.begin(), target.windows.end(),
                           [&](const Window &window) { return window.dim == move.dim; });
  if (halo == target.windows.end() || halo->isSelection() || halo->divisor != 1 ||
      halo->offset > 0 || halo->offset + halo->length < halo->step)
    return false;
  target.windows.erase(halo);
  return move.source == target;
}

bool leadsToTarget(const Move &move) {
  const TensorSharding &source = move.source, &target = move.target;
  if (source.rank() != target.rank())
    return false;
  auto sizes = [](const TensorSharding &sharding) {
    std::vector<int64_t> result;
    for (const AxisList &axes : sharding.dims)
      result.push_back(sizeOf(axes));
    return result;
  };
  switch (move.kind) {
  case CollectiveKind::slice:
    return move.makesPartial
               ? makesPartials(move)
               : isDim(source, move.dim) && withCut(source, move.dim, move.axes) == target;
  case CollectiveKind::all_reduce:
    return withPartial(target, move.axes, move.reduction) == source;
  case CollectiveKind::reduce_scatter: {
    if (!isDim(source, move.dim))
      return false;
    TensorSharding scattered = withCut(source, move.dim, move.axes);
    scattered.partial = target.partial;
    return scattered == target &&
           withPartial(TensorSharding{source.dims, target.partial, source.open, source.windows},
                       move.axes, move.reduction) == source;
  }
  case CollectiveKind::all_to_all: {
    if (!isDim(source, move.dim) || !isDim(source, move.splitDim) || move.dim == move.splitDim)
      return false;
    TensorSharding split = withCut(source, move.splitDim, move.axes);
    split.dims[move.dim] = target.dims[move.dim];
    return split == target &&
           withCut(target, move.dim, move.axes).dims[move.dim] == source.dims[move.dim];
  }
  case CollectiveKind::all_gather:
    return gathersAxes(move);
  case CollectiveKind::permute:
    return source.partial.empty() && target.partial.empty() && sizes(source) == sizes(target);
  case CollectiveKind::halo_exchange:
    return addsHalo(move);
  case CollectiveKind::exchange:
    return std::all_of(target.partial.begin(), target.partial.end(), [&](const PartialAxis &part) {
      return std::any_of(source.partial.begin(), source.partial.end(), [&](const PartialAxis &own) {
        return own.kind == part.kind && own.axis.contains(part.axis);
      });
    });
  default:
    return false; // never planned
  }
}

} // namespace tessera::sharding
