//===- TrafficTest.cpp - Counted bytes against the predictions ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

using namespace tessera;
using namespace tessera::runtime;

/// Runs one collective three times and returns its counters.
static CollectiveStats countOf(const Mesh &mesh, CollectiveKind kind, const Layout &source,
                               const Layout &target) {
  ProgramBuilder b;
  int64_t m = b.mesh(mesh), p = b.part(m);
  int64_t src = b.slot(p, DType::f32, source), dst = b.slot(p, DType::f32, target);
  b.add(p, b.collective(kind, m, src, dst, DType::f32, source, target));
  auto executor = openProgram(b.program);
  for (int round = 0; round < 3; ++round)
    EXPECT_TRUE(executor->run().ok());
  CollectiveStats stats = executor->stats().at(0);
  EXPECT_EQ(stats.executions, 3);
  return stats;
}

TEST(Traffic, CountedBytesEqualThePrediction) {
  for (int64_t n : {1, 2, 3, 4, 8}) {
    Mesh mesh = makeMesh({n});
    AxisRef a = whole(mesh, 0);
    Shape global{8 * n, 6 * n}; // sizes are divisible: the formulas are exact
    Layout full = replicated(global), rows = layoutOf(global, {{a}, {}});
    Layout columns = layoutOf(global, {{}, {a}});
    Layout partial = layoutOf(global, {{}, {}}, {{a, ReduceKind::sum}});
    Layout root = full, halo = rows;
    root.dims[0] = {{a}, global[0], 0, global[0]};
    halo.dims[0].offset = -2;
    halo.dims[0].length += 4;
    struct {
      CollectiveKind kind;
      const Layout &source, &target;
    } table[] = {{CollectiveKind::slice, full, rows},
                 {CollectiveKind::all_reduce, partial, full},
                 {CollectiveKind::all_gather, rows, full},
                 {CollectiveKind::reduce_scatter, partial, rows},
                 {CollectiveKind::all_to_all, rows, columns},
                 {CollectiveKind::gather, rows, root},
                 {CollectiveKind::scatter, root, rows},
                 {CollectiveKind::halo_exchange, rows, halo},
                 {CollectiveKind::exchange, columns, rows},
                 {CollectiveKind::broadcast, root, full},
                 {CollectiveKind::reduce, partial, root}};
    for (auto &row : table) {
      if (n == 1 && (row.kind == CollectiveKind::broadcast || row.kind == CollectiveKind::reduce))
        continue; // the formula is B for any n
      CollectiveStats counted = countOf(mesh, row.kind, row.source, row.target);
      sharding::Traffic predicted =
          sharding::trafficOf(row.kind, n, 4, mesh, row.source, mesh, row.target);
      EXPECT_EQ(counted.countedWireBytes(), 3 * predicted.wireBytes)
          << toString(row.kind) << " on " << n;
    }
  }
}

TEST(Traffic, UnevenExchangesAndGathers) {
  for (int64_t n : {2, 3, 4, 7})
    for (int64_t extent : {1, 5, 9, 10}) {
      Mesh mesh = makeMesh({n});
      AxisRef a = whole(mesh, 0);
      Shape global{extent, 4};
      Layout full = replicated(global), rows = layoutOf(global, {{a}, {}});
      Layout columns = layoutOf(global, {{}, {a}}), halo = rows;
      halo.dims[0].offset = -1;
      halo.dims[0].length += 2;
      for (auto &[kind, source, target] : {std::tuple{CollectiveKind::exchange, rows, columns},
                                           {CollectiveKind::exchange, columns, halo},
                                           {CollectiveKind::halo_exchange, rows, halo},
                                           {CollectiveKind::all_gather, rows, full}}) {
        CollectiveStats counted = countOf(mesh, kind, source, target);
        EXPECT_EQ(counted.countedWireBytes(),
                  3 * sharding::trafficOf(kind, n, 4, mesh, source, mesh, target).wireBytes)
            << toString(kind) << " of " << extent << " on " << n;
        sharding::ExchangeTraffic exact = sharding::exchangeTraffic(
            mesh, mesh, sharding::redistribute(mesh, source, mesh, target));
        for (int64_t d = 0; d < n; ++d)
          EXPECT_EQ(counted.receivedBytes[d], 3 * 4 * exact.received[d]);
      }
    }
}

TEST(Traffic, GroupsCountTheirOwnDevices) {
  Mesh mesh = makeMesh({2, 4}, 3);
  Layout partial = layoutOf({16}, {{}}, {{whole(mesh, 1), ReduceKind::sum}});
  CollectiveStats counted = countOf(mesh, CollectiveKind::all_reduce, partial, replicated({16}));
  ASSERT_EQ(counted.sentBytes.size(), 11u) << "by process id";
  for (int64_t id = 0; id < 11; ++id)
    EXPECT_EQ(counted.sentBytes[id], id < 3 ? 0 : 3 * 2 * 64 * 3 / 4);
  EXPECT_EQ(counted.totalBytes(), 8 * 3 * 2 * 64 * 3 / 4);
}
