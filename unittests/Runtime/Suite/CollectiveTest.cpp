//===- CollectiveTest.cpp - Collectives against a simple reference --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

using namespace tessera::runtime;

namespace {

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                            DType::i32, DType::i16, DType::i8,  DType::i1,   DType::index};
constexpr ReduceKind kReductions[] = {ReduceKind::sum, ReduceKind::avg, ReduceKind::max,
                                      ReduceKind::min, ReduceKind::prod};

struct Case {
  CollectiveKind kind;
  Layout source, target;
  std::optional<double> fill = {};
};

/// Layouts that assign everything to coordinate 0 of an axis.
Layout onRoot(const Mesh &mesh, const Shape &global) {
  Layout root = replicated(global);
  root.dims[0] = {{whole(mesh, mesh.numAxes() - 1)}, global[0], 0, global[0]};
  return root;
}

/// Moves without reductions, over the last axis of a mesh.
std::vector<Case> plainCases(const Mesh &mesh) {
  std::vector<Case> cases;
  AxisRef a = whole(mesh, mesh.numAxes() - 1);
  for (int64_t n : {9, 7, 4, 1, 0}) {
    Shape global{n, 5};
    Layout full = replicated(global), rows = layoutOf(global, {{a}, {}});
    Layout columns = layoutOf(global, {{}, {a}}), root = onRoot(mesh, global);
    Layout halo = rows;
    halo.dims[0].offset = -1;
    halo.dims[0].length += 2;
    Layout shifted = rows; // device c holds the part of device c + 1: a permutation
    shifted.dims[0].offset = rows.dims[0].step;
    cases.insert(cases.end(), {{CollectiveKind::slice, full, rows},
                               {CollectiveKind::all_gather, rows, full},
                               {CollectiveKind::all_gather, columns, full},
                               {CollectiveKind::all_to_all, rows, columns},
                               {CollectiveKind::all_to_all, columns, rows, 3.0},
                               {CollectiveKind::gather, rows, root},
                               {CollectiveKind::scatter, root, rows},
                               {CollectiveKind::broadcast, root, full},
                               {CollectiveKind::halo_exchange, rows, halo},
                               {CollectiveKind::halo_exchange, rows, halo, 1.0},
                               {CollectiveKind::permute, rows, shifted},
                               {CollectiveKind::exchange, halo, columns}});
  }
  return cases;
}

std::vector<Case> reducingCases(const Mesh &mesh, ReduceKind kind) {
  std::vector<Case> cases;
  AxisRef a = whole(mesh, mesh.numAxes() - 1);
  for (int64_t n : {8, 5, 1}) {
    Shape global{n, 3};
    Layout full = replicated(global), rows = layoutOf(global, {{a}, {}});
    Layout partial = layoutOf(global, {{}, {}}, {{a, kind}}), root = onRoot(mesh, global);
    cases.insert(cases.end(), {{CollectiveKind::all_reduce, partial, full},
                               {CollectiveKind::reduce_scatter, partial, rows, 1.0},
                               {CollectiveKind::reduce, partial, root},
                               {CollectiveKind::slice, full, partial},
                               {CollectiveKind::slice, rows, partial},
                               {CollectiveKind::exchange, partial, partial}});
  }
  return cases;
}

/// Runs all cases as one program and checks every device; twice, since the second run reuses state.
void runCases(const Mesh &mesh, DType dtype, const std::vector<Case> &cases) {
  ProgramBuilder b;
  int64_t m = b.mesh(mesh), p = b.part(m);
  std::vector<std::pair<int64_t, int64_t>> slots;
  for (const Case &each : cases) {
    int64_t src = b.slot(p, dtype, each.source), dst = b.slot(p, dtype, each.target);
    CollectiveStep step = b.collective(each.kind, m, src, dst, dtype, each.source, each.target);
    step.operands[0].fill = each.fill;
    b.add(p, step);
    slots.emplace_back(src, dst);
  }
  auto executor = openProgram(b.program);
  ASSERT_TRUE(executor);
  const auto &declared = b.program.parts[p].slots;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < cases.size(); ++i)
      for (int64_t d = 0; d < mesh.numDevices(); ++d) {
        std::byte *src = executor->slotData(p, d, slots[i].first);
        std::memset(src, 0x5c, static_cast<size_t>(declared[slots[i].first].bytes));
        fillSource(dtype, mesh, cases[i].source, d, src);
        std::memset(executor->slotData(p, d, slots[i].second), 0xab,
                    static_cast<size_t>(declared[slots[i].second].bytes));
      }
    Status status = executor->run();
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < cases.size(); ++i)
      for (int64_t d = 0; d < mesh.numDevices(); ++d) {
        std::string what = "case " + std::to_string(i) + " " +
                           std::string(toString(cases[i].kind)) + " " +
                           typeText(dtype, cases[i].source.globalShape) + " on " +
                           std::to_string(mesh.numDevices());
        checkTarget(dtype, mesh, cases[i].source, cases[i].target, d,
                    executor->slotData(p, d, slots[i].second), cases[i].fill, what);
        if (testing::Test::HasFatalFailure())
          return;
      }
  }
}

std::vector<Mesh> meshes() {
  std::vector<Mesh> result;
  for (int64_t n = 1; n <= 9; ++n)
    result.push_back(makeMesh({n}));
  result.push_back(makeMesh({2, 3}, 5));
  return result;
}

} // namespace

TEST(Collective, PlainMovesOfEveryType) {
  for (const Mesh &mesh : meshes())
    for (DType dtype : kTypes) {
      runCases(mesh, dtype, plainCases(mesh));
      if (HasFatalFailure())
        return;
    }
}

TEST(Collective, ReductionsOfEveryTypeAndKind) {
  for (const Mesh &mesh : meshes())
    for (DType dtype : kTypes)
      for (ReduceKind kind : kReductions) {
        if (kind == ReduceKind::avg && !isFloat(dtype))
          continue;
        runCases(mesh, dtype, reducingCases(mesh, kind));
        if (HasFatalFailure())
          return;
      }
}

TEST(Collective, MergedAxesAndReplicas) {
  Mesh mesh = makeMesh({2, 2, 2});
  AxisRef a = whole(mesh, 0), b = whole(mesh, 1), c = whole(mesh, 2);
  std::vector<Case> cases;
  for (int64_t n : {8, 7, 3}) {
    Shape global{n, 6};
    Layout full = replicated(global);
    Layout sumAll = layoutOf(global, {{}, {}},
                             {{a, ReduceKind::sum}, {b, ReduceKind::sum}, {c, ReduceKind::sum}});
    Layout sumTwo = layoutOf(global, {{a}, {}}, {{b, ReduceKind::sum}, {c, ReduceKind::sum}});
    cases.insert(
        cases.end(),
        {{CollectiveKind::all_reduce, sumAll, full},
         {CollectiveKind::reduce_scatter, sumAll, layoutOf(global, {{c, a}, {b}})},
         {CollectiveKind::all_reduce, sumTwo, layoutOf(global, {{a}, {}})},
         {CollectiveKind::reduce_scatter, sumTwo, layoutOf(global, {{a, b}, {c}})},
         {CollectiveKind::permute, layoutOf(global, {{a, b, c}, {}}),
          layoutOf(global, {{c, b, a}, {}})},
         {CollectiveKind::all_gather, layoutOf(global, {{a, b}, {c}}),
          layoutOf(global, {{a}, {c}})},
         {CollectiveKind::exchange, layoutOf(global, {{b}, {c}}), layoutOf(global, {{c, a}, {}})}});
  }
  runCases(mesh, DType::f32, cases);
  runCases(mesh, DType::bf16, cases);
}

TEST(Collective, LargeCollectivesAreSplitIntoTasks) {
  Mesh mesh = makeMesh({4});
  AxisRef a = whole(mesh, 0);
  Shape global{515, 1021};
  Layout full = replicated(global), rows = layoutOf(global, {{a}, {}});
  Layout columns = layoutOf(global, {{}, {a}});
  Layout partial = layoutOf(global, {{}, {}}, {{a, ReduceKind::sum}});
  runCases(mesh, DType::f32,
           {{CollectiveKind::all_reduce, partial, full},
            {CollectiveKind::all_to_all, rows, columns},
            {CollectiveKind::reduce_scatter, partial, columns}});
}

TEST(Collective, RankZero) {
  Mesh mesh = makeMesh({3});
  Layout full = replicated({}), partial = layoutOf({}, {}, {{whole(mesh, 0), ReduceKind::max}});
  for (DType dtype : kTypes)
    runCases(mesh, dtype,
             {{CollectiveKind::all_reduce, partial, full}, {CollectiveKind::slice, full, partial}});
}

TEST(Collective, NaNPropagates) {
  Mesh mesh = makeMesh({3});
  for (ReduceKind kind : {ReduceKind::max, ReduceKind::min})
    for (int64_t where = 0; where < 3; ++where) {
      ProgramBuilder b;
      int64_t m = b.mesh(mesh), p = b.part(m);
      Layout partial = layoutOf({1}, {{}}, {{whole(mesh, 0), kind}}), full = replicated({1});
      int64_t x = b.slot(p, DType::f32, partial);
      b.add(p, b.collective(CollectiveKind::all_reduce, m, x, x, DType::f32, partial, full));
      auto executor = openProgram(b.program);
      for (int64_t d = 0; d < 3; ++d)
        writeElement(DType::f32, d == where ? NAN : static_cast<double>(d) - 1,
                     executor->slotData(p, d, x));
      ASSERT_TRUE(executor->run().ok());
      for (int64_t d = 0; d < 3; ++d)
        EXPECT_TRUE(std::isnan(readElement(DType::f32, executor->slotData(p, d, x))));
    }
}

/// Source and target share memory, `shift` elements apart.
static void runInPlace(const Mesh &mesh, const Case &each, int64_t shift) {
  ProgramBuilder b;
  int64_t m = b.mesh(mesh), p = b.part(m);
  int64_t src = b.slot(p, DType::f32, each.source);
  int64_t dst = b.slot(p, DType::f32, each.target);
  Part &part = b.program.parts[p];
  part.slots[dst].offset = shift * 4;
  part.arenaBytes = std::max(part.slots[src].bytes, part.slots[dst].bytes + shift * 4);
  CollectiveStep step = b.collective(each.kind, m, src, dst, DType::f32, each.source, each.target);
  step.operands[0].fill = 5.0; // stale source elements in the padding are no error
  b.add(p, step);
  auto executor = openProgram(b.program);
  ASSERT_TRUE(executor);
  for (int64_t d = 0; d < mesh.numDevices(); ++d)
    fillSource(DType::f32, mesh, each.source, d, executor->slotData(p, d, src));
  ASSERT_TRUE(executor->run().ok());
  for (int64_t d = 0; d < mesh.numDevices(); ++d) {
    checkTarget(DType::f32, mesh, each.source, each.target, d, executor->slotData(p, d, dst), 5.0,
                std::string(toString(each.kind)) + " shifted by " + std::to_string(shift));
    if (testing::Test::HasFatalFailure())
      return;
  }
}

TEST(Collective, InPlaceAndOverlapping) {
  for (int64_t n : {1, 2, 3, 4, 8}) {
    Mesh mesh = makeMesh({n});
    for (bool reducing : {false, true})
      for (const Case &each : reducing ? reducingCases(mesh, ReduceKind::sum) : plainCases(mesh))
        for (int64_t shift : {0, 1, 3}) {
          runInPlace(mesh, each, shift);
          if (HasFatalFailure())
            return;
        }
  }
}

/// Larger than kStreamBytes.
TEST(Collective, VeryLargeCollectivesAreStreamed) {
  Mesh mesh = makeMesh({4});
  AxisRef a = whole(mesh, 0);
  Shape global{1031, 1021};
  Layout full = replicated(global), rows = layoutOf(global, {{a}, {}});
  Layout partial = layoutOf(global, {{}, {}}, {{a, ReduceKind::sum}});
  runCases(mesh, DType::f32,
           {{CollectiveKind::all_reduce, partial, full}, {CollectiveKind::all_gather, rows, full}});
  for (int64_t shift : {0, 3})
    runInPlace(mesh, {CollectiveKind::all_reduce, partial, full}, shift);
}

TEST(Collective, FusedOperands) {
  Mesh mesh = makeMesh({4});
  AxisRef a = whole(mesh, 0);
  ProgramBuilder b;
  int64_t m = b.mesh(mesh), p = b.part(m);
  CollectiveStep fused;
  std::vector<DType> types{DType::f32, DType::i16, DType::f64};
  for (size_t i = 0; i < types.size(); ++i) {
    Shape global{static_cast<int64_t>(3 + i), 4};
    Layout partial = layoutOf(global, {{}, {}}, {{a, ReduceKind::sum}}), full = replicated(global);
    int64_t slot = b.slot(p, types[i], partial);
    CollectiveStep one =
        b.collective(CollectiveKind::all_reduce, m, slot, slot, types[i], partial, full);
    if (i == 0)
      fused = one;
    else
      fused.operands.push_back(one.operands[0]);
  }
  b.add(p, fused);
  auto executor = openProgram(b.program);
  for (int64_t d = 0; d < 4; ++d)
    for (const Operand &operand : fused.operands)
      fillSource(operand.dtype, mesh, operand.source, d, executor->slotData(p, d, operand.src));
  ASSERT_TRUE(executor->run().ok());
  for (int64_t d = 0; d < 4; ++d)
    for (const Operand &operand : fused.operands)
      checkTarget(operand.dtype, mesh, operand.source, operand.target, d,
                  executor->slotData(p, d, operand.dst), {}, "fused");
  EXPECT_EQ(executor->recorded().size(), 1u);
}

TEST(Collective, ToAnotherMeshOfTheSameDevices) {
  Mesh first = makeMesh({2, 2}, 0, "first"), second = makeMesh({4}, 0, "second");
  second.processIds = {3, 1, 0, 2};
  AxisRef a = whole(first, 0), b = whole(first, 1), c = whole(second, 0);
  for (int64_t n : {8, 5, 1}) {
    Shape global{n, 4};
    for (const Layout &source : {replicated(global), layoutOf(global, {{a}, {b}})})
      for (const Layout &target :
           {replicated(global), layoutOf(global, {{c}, {}}), layoutOf(global, {{}, {c}})}) {
        ProgramBuilder builder;
        int64_t m = builder.mesh(first), t = builder.mesh(second), p = builder.part(m);
        int64_t src = builder.slot(p, DType::f32, source);
        int64_t dst = builder.slot(p, DType::f32, target);
        CollectiveStep step =
            builder.collective(CollectiveKind::exchange, m, src, dst, DType::f32, source, target);
        step.targetMesh = t;
        builder.add(p, step);
        auto executor = openProgram(builder.program);
        ASSERT_TRUE(executor);
        for (int64_t d = 0; d < 4; ++d) {
          fillSource(DType::f32, first, source, d, executor->slotData(p, d, src));
          std::memset(executor->slotData(p, d, dst), 0xab,
                      static_cast<size_t>(builder.program.parts[p].slots[dst].bytes));
        }
        ASSERT_TRUE(executor->run().ok());
        // The device at a position of the second mesh is the part's device with that process id.
        for (int64_t place = 0; place < 4; ++place)
          checkTarget(DType::f32, second, replicated(global), target, place,
                      executor->slotData(p, second.processIds[place], dst), {}, "rearranged");
      }
  }
}
