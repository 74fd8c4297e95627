//===- OverlapsTest.cpp - Held and needed elements ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overlaps.h"

#include "Fixtures.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <tuple>

using namespace tessera::sharding;

namespace {

using Classes = std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t>;

/// The numbers of devices that hold, need and share so many elements.
Classes counted(const std::vector<Overlap> &overlaps) {
  Classes classes;
  for (const Overlap &each : overlaps)
    classes[{each.wanted, each.held, each.both}] += each.devices;
  return classes;
}

/// The same by looking at every device.
Classes byDevice(const Mesh &mesh, const Layout &source, const Layout &target) {
  Classes classes;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    std::vector<int64_t> coordinate = mesh.coordinate(device);
    int64_t wanted = 1, held = 1, both = 1;
    for (size_t d = 0; d < source.dims.size(); ++d) {
      auto range = [&](const DimLayout &dim) {
        auto [first, last] = dim.span(linearIndex(mesh, dim.axes, coordinate));
        int64_t begin = std::max<int64_t>(0, first);
        return std::pair(begin, std::max(begin, std::min(source.globalShape[d], last)));
      };
      auto [had, hadEnd] = range(source.dims[d]);
      auto [wants, wantsEnd] = range(target.dims[d]);
      held *= hadEnd - had;
      wanted *= wantsEnd - wants;
      both *= std::max<int64_t>(0, std::min(hadEnd, wantsEnd) - std::max(had, wants));
    }
    ++classes[{wanted, held, both}];
  }
  return classes;
}

TEST(Overlaps, EqualThoseOfEveryDevice) {
  std::mt19937 random(3);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    Mesh mesh = makeMesh({2 + below(3), 4 * (1 + below(3))});
    std::vector<AxisRef> parts{AxisRef::full(mesh, 0)};
    if (below(2)) {
      int64_t size = mesh.shape[1];
      parts.push_back({1, 1, 2});
      parts.push_back({1, 2, size / 2});
    } else {
      parts.push_back(AxisRef::full(mesh, 1));
    }
    std::vector<int64_t> shape{1 + below(40), 1 + below(40)};
    if (below(2)) // parts of equal sizes
      shape = {mesh.numDevices() * (1 + below(2)), mesh.numDevices() / (1 + below(2))};
    auto sharding = [&]() {
      TensorSharding made = TensorSharding::replicated(2);
      for (const AxisRef &part : parts)
        if (int64_t d = below(3); d < 2)
          made.dims[d].push_back(part);
      for (AxisList &axes : made.dims)
        axes = mergeAxes(axes);
      return canonical(made);
    };
    TensorSharding from = sharding(), to = sharding();
    Layout source = makeLayout(from, shape), target = makeLayout(to, shape);
    EXPECT_EQ(counted(overlapsOf(mesh, source, target)), byDevice(mesh, source, target))
        << "round " << round;
  }
}

/// Halos, blocks of other devices, runs beyond either end.
TEST(Overlaps, OfWindowsEqualThoseOfEveryDevice) {
  std::mt19937 random(4);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    Mesh mesh = makeMesh({2 + below(3), 2 + below(9)});
    std::vector<int64_t> shape{1 + below(60), 1 + below(8)};
    TensorSharding from = TensorSharding::replicated(2);
    from.dims[0] = {AxisRef::full(mesh, below(2))};
    if (below(2) && from.dims[0].front().axis == 1)
      from.dims[1] = {AxisRef::full(mesh, 0)};
    int64_t step = ceilDiv(shape[0], sizeOf(from.dims[0]));
    TensorSharding to = from;
    to.windows.push_back({0, step, below(4 * shape[0]) - 2 * shape[0], 1 + below(3 * step)});
    if (below(3) == 0) // a block of another device
      to.windows.front() = {0, step, step * (below(12) - 6), step};
    Layout source = makeLayout(from, shape), target = makeLayout(to, shape);
    EXPECT_EQ(counted(overlapsOf(mesh, source, target)), byDevice(mesh, source, target))
        << "round " << round;
  }
}

} // namespace
