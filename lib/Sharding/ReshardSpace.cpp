//===- ReshardSpace.cpp - Shortest paths to many placements ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardSpace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tessera::sharding {

/// Settled placements per source after which the remaining ones are priced directly.
static constexpr size_t kMostSettled = 3000;

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

static Mesh meshOf(const std::vector<AxisList> &groups, const std::vector<PartDim> &dims) {
  Mesh mesh;
  int64_t devices = 1;
  auto add = [&](int64_t extent) {
    mesh.shape.push_back(extent);
    devices *= extent;
  };
  for (const AxisList &group : groups)
    add(sizeOf(group));
  for (const PartDim &dim : dims)
    if (dim.parts > 1)
      add(dim.parts);
  mesh.processIds = DeviceIds::range(devices);
  return mesh;
}

static std::vector<int64_t> extentsOf(const std::vector<PartDim> &dims) {
  std::vector<int64_t> shape;
  for (const PartDim &dim : dims)
    shape.push_back(dim.extent);
  return shape;
}

ReshardSpace::ReshardSpace(const Mesh &mesh, const LinkModel &links,
                           const std::vector<PartDim> &dims, int64_t bytesPerElement,
                           std::vector<AxisList> theGroups)
    : mesh(mesh), links(links), groups(std::move(theGroups)), groupMesh(meshOf(groups, dims)),
      shape(extentsOf(dims)), graph(groupMesh, shape, bytesPerElement) {
  auto axis = static_cast<int64_t>(groups.size());
  for (const PartDim &dim : dims) {
    staying.emplace_back();
    if (dim.parts > 1)
      staying.back().push_back(AxisRef::full(groupMesh, axis++));
    walk.staying.push_back(staying.back().size());
  }
  for (size_t group = 0; group < groups.size(); ++group)
    walk.axes.push_back(AxisRef::full(groupMesh, static_cast<int64_t>(group)));
  walk.joinsSlices = links.countsCopies();
}

ReshardSpace::Code ReshardSpace::encode(const TensorSharding &state) const {
  Code code = 0;
  for (size_t d = 0; d < state.dims.size(); ++d)
    for (size_t at = staying[d].size(); at < state.dims[d].size(); ++at)
      code |= static_cast<Code>(codeOf(d, at - staying[d].size())) << (8 * state.dims[d][at].axis);
  for (const PartialAxis &partial : state.partial)
    code |= static_cast<Code>(kIsPartial) << (8 * partial.axis.axis);
  return code;
}

TensorSharding ReshardSpace::decode(Code code) const {
  TensorSharding state;
  state.dims = staying;
  for (size_t group = 0; group < groups.size(); ++group) {
    auto place = static_cast<uint8_t>(code >> (8 * group));
    if (place == kIsPartial)
      state.partial.push_back({walk.axes[group], ReduceKind::sum});
    if (place < kIsCut)
      continue;
    size_t dim = (place - kIsCut) / kMostGroups;
    size_t position = (place - kIsCut) % kMostGroups + staying[dim].size();
    if (state.dims[dim].size() <= position)
      state.dims[dim].resize(position + 1);
    state.dims[dim][position] = walk.axes[group];
  }
  return state;
}

int32_t ReshardSpace::numberOf(Code code) {
  auto [it, isNew] = numbers.try_emplace(code, static_cast<int32_t>(codes.size()));
  if (isNew) {
    codes.push_back(code);
    steps.emplace_back();
    hasSteps.push_back(0);
  }
  return it->second;
}

bool ReshardSpace::fits(const TensorSharding &state) const {
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t stays = sizeOf(staying[d]);
    if (sizeOf(state.dims[d]) > stays * std::max<int64_t>(1, ceilDiv(shape[d], stays)))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// For an exchange the lower bound: computing its boxes is quadratic in the number of devices.
double ReshardSpace::secondsOf(const Move &move) const {
  if (move.kind == CollectiveKind::slice && !walk.joinsSlices)
    return 0;
  AxisList axes; // none: all devices
  for (const AxisRef &axis : move.axes)
    axes.insert(axes.end(), groups[axis.axis].begin(), groups[axis.axis].end());
  return links.seconds(mesh, axes, move.kind, graph.leastTrafficOf(move));
}

const std::vector<ReshardSpace::Step> &ReshardSpace::stepsFrom(int32_t from) {
  if (!hasSteps[from]) {
    hasSteps[from] = 1;
    graph.forEachMove(decode(codes[from]), walk, [&](Move move) {
      if (!fits(move.target))
        return;
      double seconds = secondsOf(move);
      int32_t number = numberOf(encode(move.target));
      steps[from].push_back({number, seconds});
    });
  }
  return steps[from];
}

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

double ReshardSpace::seconds(Code source, Code target, bool isApproximate) {
  double found = isApproximate ? std::numeric_limits<double>::infinity() : shortest(source, target);
  return std::isfinite(found) ? found : directSeconds(source);
}

/// Infinite if no path is found within the limit.
double ReshardSpace::shortest(Code source, Code target) {
  int32_t first = numberOf(source), last = numberOf(target);
  auto [it, isNew] = runs.try_emplace(first);
  Run &run = it->second;
  auto reach = [&](int32_t state, double seconds) {
    if (run.distance.size() < codes.size()) {
      run.distance.resize(codes.size(), std::numeric_limits<double>::infinity());
      run.isSettled.resize(codes.size(), 0);
    }
    if (seconds < run.distance[state]) {
      run.distance[state] = seconds;
      run.queue.push({seconds, codes[state], state});
    }
  };
  if (isNew)
    reach(first, 0);
  while (last >= std::ssize(run.isSettled) || !run.isSettled[last]) {
    if (run.queue.empty() || run.numSettled >= kMostSettled)
      return std::numeric_limits<double>::infinity();
    auto [seconds, code, state] = run.queue.top();
    run.queue.pop();
    if (run.isSettled[state])
      continue;
    run.isSettled[state] = 1;
    ++run.numSettled;
    for (const Step &next : stepsFrom(state))
      reach(next.target, seconds + next.seconds);
  }
  return run.distance[last];
}

/// Reduces partials and gathers all changes; cutting is free.
double ReshardSpace::directSeconds(Code source) {
  auto [it, isNew] = direct.try_emplace(source, 0);
  double &sum = it->second;
  if (!isNew)
    return sum;
  Move move;
  move.target = decode(source);
  auto add = [&](CollectiveKind kind, AxisList axes) {
    move.kind = kind;
    move.axes = std::move(axes);
    sum += move.axes.empty() ? 0 : secondsOf(move);
    move.source = move.target;
  };
  move.source = move.target;
  AxisList partial = move.source.partialAxes();
  move.target.partial.clear();
  add(CollectiveKind::all_reduce, std::move(partial));
  for (size_t d = 0; d < shape.size(); ++d) {
    AxisList axes = removePrefix(staying[d], move.target.dims[d]);
    move.target.dims[d] = staying[d];
    add(CollectiveKind::all_gather, std::move(axes));
  }
  return sum;
}

} // namespace tessera::sharding
