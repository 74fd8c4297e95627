//===- CanonicalReshard.cpp - One form of equal reshards ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CanonicalReshard.h"

#include "AtomicParts.h"

#include "tessera/Sharding/Layout.h"

#include <algorithm>
#include <numeric>

namespace tessera::sharding {

/// Bytes of an element of a form without latencies: shares of few elements stay exact.
static constexpr int64_t kBytesPerElement = 4096;
/// Larger tensors are their own forms, so that the bytes of a form fit in 64 bits.
static constexpr int64_t kMostElements = int64_t(1) << 48;
namespace {

/// A dimension of both ends.
struct EndDim {
  AxisList source, target;
  int64_t extent = 1;

  bool isCut() const { return !source.empty() || !target.empty(); }
  friend auto operator<=>(const EndDim &, const EndDim &) = default;
};

} // namespace

/// The parts of mesh axes that cut an end or over which it is partial, each of which moves as a
/// whole. Empty if the axes have no common parts.
static AxisList movingParts(const ReshardProblem &problem) {
  Layout source = makeLayout(problem.source, problem.shape);
  Layout target = makeLayout(problem.target, problem.shape);
  AxisList used = problem.source.usedAxes(), others = problem.target.usedAxes();
  used.insert(used.end(), others.begin(), others.end());
  AxisList parts = atomicParts(problem.mesh, {&source, &target});
  std::erase_if(parts, [&](const AxisRef &part) { return !overlapsAny(used, part); });
  for (const AxisRef &part : parts)
    for (const AxisRef &axis : used)
      if (axis.overlaps(part) && !axis.contains(part))
        return {};
  return parts;
}

/// Whether no link has a latency, so that times are proportional to bytes.
static bool isLinear(const Mesh &mesh, const LinkModel &links) {
  auto hasLatency = [](const Link &link) { return link.alpha != 0; };
  return std::ssize(links.axes) >= mesh.numAxes() &&
         std::none_of(links.axes.begin(), links.axes.end(), hasLatency) &&
         std::none_of(
             links.levels.begin(), links.levels.end(), [&](const std::vector<LinkLevel> &levels) {
               return std::any_of(levels.begin(), levels.end(),
                                  [&](const LinkLevel &level) { return hasLatency(level.link); });
             });
}

/// Whether two axes have one size and the same links.
static bool areAlike(const Mesh &mesh, const LinkModel &links, size_t a, size_t b) {
  auto isSame = [](const LinkLevel &one, const LinkLevel &other) {
    return one.devices == other.devices && one.link == other.link;
  };
  auto linkOf = [&](size_t axis) { return axis < links.axes.size() ? links.axes[axis] : Link(); };
  auto levelsOf = [&](size_t axis) {
    return axis < links.levels.size() ? links.levels[axis] : std::vector<LinkLevel>();
  };
  std::vector<LinkLevel> of = levelsOf(a), others = levelsOf(b);
  return mesh.shape[a] == mesh.shape[b] && linkOf(a) == linkOf(b) &&
         std::equal(of.begin(), of.end(), others.begin(), others.end(), isSame);
}

/// Orders the dimensions, and exchanges axes that are alike so that they appear in order.
static void orderAxes(std::vector<EndDim> &dims, ReshardProblem &ends, const LinkModel &links) {
  const Mesh &mesh = ends.mesh;
  std::vector<int64_t> classOf, nameOf(mesh.shape.size(), -1);
  for (size_t axis = 0; axis < mesh.shape.size(); ++axis) {
    size_t first = 0;
    while (!areAlike(mesh, links, first, axis))
      ++first;
    classOf.push_back(static_cast<int64_t>(first));
  }
  // Dimensions first by what does not depend on names.
  auto withNames = [](AxisList axes, const std::vector<int64_t> &names) {
    for (AxisRef &axis : axes)
      axis.axis = names[axis.axis];
    return axes;
  };
  auto keyOf = [&](const EndDim &dim) {
    return EndDim{withNames(dim.source, classOf), withNames(dim.target, classOf), dim.extent};
  };
  std::sort(dims.begin(), dims.end(), [&](const EndDim &a, const EndDim &b) {
    EndDim one = keyOf(a), other = keyOf(b);
    return one != other ? one < other : a < b;
  });
  std::vector<char> isTaken(mesh.shape.size());
  auto name = [&](const AxisList &axes) {
    for (const AxisRef &axis : axes)
      for (size_t other = 0; nameOf[axis.axis] < 0; ++other)
        if (classOf[other] == classOf[axis.axis] && !isTaken[other]) {
          isTaken[other] = 1;
          nameOf[axis.axis] = static_cast<int64_t>(other);
        }
  };
  for (const EndDim &dim : dims) {
    name(dim.source);
    name(dim.target);
  }
  for (EndDim &dim : dims) {
    dim.source = withNames(std::move(dim.source), nameOf);
    dim.target = withNames(std::move(dim.target), nameOf);
  }
  for (TensorSharding *end : {&ends.source, &ends.target})
    name(end->partialAxes());
  for (TensorSharding *end : {&ends.source, &ends.target}) {
    for (PartialAxis &part : end->partial)
      part.axis.axis = nameOf[part.axis.axis];
    std::sort(end->partial.begin(), end->partial.end());
  }
  std::sort(dims.begin(), dims.end());
}

CanonicalReshard canonicalReshard(const ReshardProblem &problem, const LinkModel &links) {
  const AxisList parts = movingParts(problem);
  if (parts.empty())
    return {problem};
  std::vector<EndDim> dims;
  int64_t elements = 1;
  bool isEven = true;
  for (size_t d = 0; d < problem.shape.size(); ++d) {
    EndDim dim{problem.source.dims[d], problem.target.dims[d], problem.shape[d]};
    if (dim.extent <= 0 || elements > kMostElements / dim.extent)
      return {problem};
    elements *= dim.extent;
    isEven = isEven && dim.extent % sizeOf(dim.source) == 0 && dim.extent % sizeOf(dim.target) == 0;
    dims.push_back(std::move(dim));
  }
  // A detour of a path may cut any dimension that the devices divide: one of them serves for all.
  const int64_t devices = sizeOf(parts);
  auto mayBeCut = [&](const EndDim &dim) { return !dim.isCut() && dim.extent % devices == 0; };
  EndDim rest;
  bool joinsRest = std::any_of(dims.begin(), dims.end(), mayBeCut);
  std::erase_if(dims, [&](const EndDim &dim) {
    bool isJoined = !dim.isCut() && (joinsRest || dim.extent == 1);
    rest.extent *= isJoined ? dim.extent : 1;
    return isJoined;
  });
  if (joinsRest)
    dims.push_back(rest);
  CanonicalReshard form{{problem.mesh, {}, problem.bytesPerElement, {}, {}}};
  if (isEven && isLinear(problem.mesh, links)) {
    // What matters of a dimension is which parts of axes divide it.
    double bytes = static_cast<double>(elements) * static_cast<double>(problem.bytesPerElement);
    double own = kBytesPerElement;
    for (EndDim &dim : dims) {
      dim.extent = std::gcd(dim.extent, devices);
      own *= static_cast<double>(dim.extent);
    }
    form.scale = bytes / own;
    form.problem.bytesPerElement = kBytesPerElement;
    std::erase_if(dims, [](const EndDim &dim) { return !dim.isCut() && dim.extent == 1; });
  }
  form.problem.source.partial = problem.source.partial;
  form.problem.target.partial = problem.target.partial;
  orderAxes(dims, form.problem, links);
  for (EndDim &dim : dims) {
    form.problem.shape.push_back(dim.extent);
    form.problem.source.dims.push_back(std::move(dim.source));
    form.problem.target.dims.push_back(std::move(dim.target));
  }
  return form;
}

} // namespace tessera::sharding
