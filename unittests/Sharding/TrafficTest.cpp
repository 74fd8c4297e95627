//===- TrafficTest.cpp - Wire bytes, counts and messages ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "tessera/Sharding/Buffers.h"

#include <gtest/gtest.h>

using namespace tessera::sharding;

static void expectTraffic(const Traffic &traffic, int64_t bytes, int64_t wire, int64_t count,
                          int64_t messages) {
  EXPECT_EQ(traffic.bytes, bytes);
  EXPECT_EQ(traffic.wireBytes, wire);
  EXPECT_EQ(traffic.count, count);
  EXPECT_EQ(traffic.messages, messages);
}

TEST(Traffic, EvenFormulas) {
  // 64 f32 elements over 4 devices: 256 bytes in total, 64 per part.
  Mesh mesh = makeMesh({4});
  AxisRef a = whole(mesh, 0);
  Layout full = layoutOf({8, 8}, {{}, {}}), rows = layoutOf({8, 8}, {{a}, {}});
  Layout columns = layoutOf({8, 8}, {{}, {a}});
  Layout partial = layoutOf({8, 8}, {{}, {}}, {{a, ReduceKind::sum}});
  Layout root = full;
  root.dims[0] = {{a}, 8, 0, 8};
  auto of = [&](CollectiveKind kind, const Layout &source, const Layout &target) {
    return trafficOf(kind, 4, 4, mesh, source, mesh, target);
  };
  expectTraffic(of(CollectiveKind::slice, full, rows), 256, 0, 0, 0);
  expectTraffic(of(CollectiveKind::all_reduce, partial, full), 256, 384, 1, 6);
  expectTraffic(of(CollectiveKind::all_gather, rows, full), 256, 192, 1, 3);
  expectTraffic(of(CollectiveKind::reduce_scatter, partial, rows), 256, 192, 1, 3);
  expectTraffic(of(CollectiveKind::all_to_all, rows, columns), 64, 48, 1, 3);
  expectTraffic(of(CollectiveKind::gather, rows, root), 256, 192, 1, 3);
  expectTraffic(of(CollectiveKind::scatter, root, rows), 256, 192, 1, 3);
  expectTraffic(of(CollectiveKind::broadcast, root, full), 256, 256, 1, 1);
  expectTraffic(of(CollectiveKind::reduce, partial, root), 256, 256, 1, 1);
  expectTraffic(of(CollectiveKind::exchange, rows, columns), 64, 48, 1, 3);
}

TEST(Traffic, RunsAreConsecutiveInBothBuffers) {
  auto runOf = [](const Shape &source, const Shape &target) {
    return Traffic::runOf(source, target);
  };
  EXPECT_EQ(runOf({8, 16}, {8, 16}), 128);
  EXPECT_EQ(runOf({2, 16}, {8, 16}), 32); // rows of one part
  EXPECT_EQ(runOf({8, 4}, {8, 16}), 4);   // columns
  EXPECT_EQ(runOf({2, 16}, {8, 4}), 4);
  EXPECT_EQ(runOf({8, 2, 16}, {8, 4, 16}), 32);
  EXPECT_EQ(runOf({}, {}), 1);
}

TEST(Traffic, CopiesCountWrittenAndAddedBytes) {
  Mesh mesh = makeMesh({4});
  AxisRef a = whole(mesh, 0);
  Layout full = layoutOf({64, 1024}, {{}, {}}), rows = layoutOf({64, 1024}, {{a}, {}});
  Layout columns = layoutOf({64, 4096}, {{}, {a}}), wide = layoutOf({64, 4096}, {{}, {}});
  Layout partial = layoutOf({64, 1024}, {{}, {}}, {{a, ReduceKind::sum}});
  auto expect = [&](CollectiveKind kind, const Layout &source, const Layout &target, Copies written,
                    Copies added) {
    Traffic traffic = trafficOf(kind, 4, 4, mesh, source, mesh, target);
    EXPECT_EQ(traffic.written.bytes, written.bytes) << toString(kind);
    EXPECT_EQ(traffic.written.strided, written.strided) << toString(kind);
    EXPECT_EQ(traffic.added.bytes, added.bytes) << toString(kind);
    EXPECT_EQ(traffic.added.strided, added.strided) << toString(kind);
  };
  const int64_t all = 64 * 1024 * 4;
  // One run each, whose first kilobyte counts as its beginning.
  expect(CollectiveKind::all_reduce, partial, full, {all, 1024}, {all, 1024});
  expect(CollectiveKind::all_gather, rows, full, {all, 4 * 1024}, {});
  expect(CollectiveKind::reduce_scatter, partial, rows, {all / 4, 1024}, {all, 4 * 1024});
  // Runs of 4 KiB.
  expect(CollectiveKind::all_gather, columns, wide, {4 * all, all}, {});
  expect(CollectiveKind::slice, wide, columns, {all, all / 4}, {});
  // Runs of 1 KiB consist of their beginnings. An exchange also copies elements that a device
  // already has.
  expect(CollectiveKind::exchange, rows, layoutOf({64, 1024}, {{}, {a}}), {all / 4, all / 4}, {});
  // An exchange without communication is not cheaper than a slice.
  expect(CollectiveKind::exchange, wide, columns, {all, all / 4}, {});
  // A contribution is created where it is added; a group of one has no work.
  expect(CollectiveKind::slice, full, partial, {}, {});
  EXPECT_EQ(trafficOf(CollectiveKind::all_reduce, 1, 4, mesh, partial, mesh, full).written.bytes,
            0);
}

TEST(Traffic, UnevenAllGatherIsThatOfTheEmptiestDevice) {
  Mesh mesh = makeMesh({4});
  Layout rows = layoutOf({5}, {{whole(mesh, 0)}}), full = layoutOf({5}, {{}});
  Traffic traffic = trafficOf(CollectiveKind::all_gather, 4, 4, mesh, rows, mesh, full);
  EXPECT_EQ(traffic.wireBytes, 5 * 4) << "the last device holds nothing";
}

TEST(Traffic, HaloCountsTwiceAndBothSlabs) {
  Mesh mesh = makeMesh({4});
  Layout rows = layoutOf({16, 5}, {{whole(mesh, 0)}, {}});
  Layout halo = rows;
  halo.dims[0].offset = -1;
  halo.dims[0].length += 2;
  Traffic traffic = trafficOf(CollectiveKind::halo_exchange, 4, 4, mesh, rows, mesh, halo);
  expectTraffic(traffic, 2 * 5 * 4, 2 * 5 * 4, 2, 2);
}

TEST(Traffic, GroupsOfOneAndEmptyMovesSendNothing) {
  Mesh mesh = makeMesh({1, 4});
  Layout full = layoutOf({8}, {{}});
  Layout partial = layoutOf({8}, {{}}, {{whole(mesh, 0), ReduceKind::sum}});
  expectTraffic(trafficOf(CollectiveKind::all_reduce, 1, 4, mesh, partial, mesh, full), 32, 0, 0,
                0);
  EXPECT_EQ(trafficOf(CollectiveKind::exchange, 4, 4, mesh, full, mesh, full).count, 0);
}

TEST(Traffic, Accumulates) {
  Traffic sum{1, 2, 3, 4};
  sum += Traffic{10, 20, 30, 40};
  expectTraffic(sum, 11, 22, 33, 44);
}

TEST(Traffic, GrowsWithTheTensorOnManyDevices) {
  using Kind = CollectiveKind;
  for (int64_t devices : {int64_t(8192), int64_t(1) << 20})
    for (Kind kind :
         {Kind::all_reduce, Kind::reduce_scatter, Kind::all_to_all, Kind::scatter, Kind::gather})
      for (int64_t elements = int64_t(1) << 30; elements <= int64_t(1) << 48; elements *= 2) {
        Buffers buffers;
        buffers.bytesPerElement = 8;
        buffers.operand = buffers.result = elements;
        auto wire = static_cast<double>(trafficOf(kind, devices, buffers).wireBytes);
        double share = 8.0 * static_cast<double>(elements) * static_cast<double>(devices - 1) /
                       static_cast<double>(devices);
        EXPECT_NEAR(wire, kind == Kind::all_reduce ? 2 * share : share, wire * 1e-12)
            << toString(kind) << " of " << elements;
      }
}

TEST(Traffic, OfExchangesGrowsWithTheTensorOnManyDevices) {
  Mesh mesh = makeMesh({8192});
  AxisRef a = whole(mesh, 0);
  int64_t before = 0;
  for (int64_t extent = int64_t(1) << 20; extent <= int64_t(1) << 47; extent *= 2) {
    // The first of two devices has all but one of the elements, which all others need.
    Layout few = layoutOf({extent}, {{a}}), full = layoutOf({extent}, {{}});
    few.dims[0].step = few.dims[0].length = extent - 1;
    Traffic traffic = trafficOf(CollectiveKind::exchange, 8192, 4, mesh, few, mesh, full);
    EXPECT_GE(traffic.wireBytes, before);
    EXPECT_GE(traffic.wireBytes, extent * 4 - 4);
    before = traffic.wireBytes;
  }
}
