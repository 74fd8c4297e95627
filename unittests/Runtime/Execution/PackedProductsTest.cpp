//===- PackedProductsTest.cpp - Right operands packed once ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "tessera/Runtime/Execution/Gemm.h"
#include "tessera/Runtime/Execution/PackedProducts.h"

#include <random>

using namespace tessera::runtime;

namespace {

using When = PackedOperand::When;

GemmStep product(int64_t m, int64_t n, int64_t k, bool transB, int64_t a, int64_t b, int64_t c) {
  GemmStep step;
  step.m = m, step.n = n, step.k = k, step.transB = transB;
  step.lda = k, step.ldb = transB ? k : n, step.ldc = n;
  step.a = a, step.b = b, step.c = c;
  return step;
}

std::vector<float> randomValues(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

std::vector<float> multiplied(const GemmStep &step, const std::vector<float> &a,
                              const std::vector<float> &b) {
  std::vector<float> c(step.m * step.n);
  multiply(step, a.data(), b.data(), c.data(), nullptr, {0, 1, 0, step.m, 0, step.n},
           RightOperand::panels);
  return c;
}

/// A program of one part on one device.
struct Trial : ProgramBuilder {
  int64_t p = part(mesh(makeMesh({1})));
  Bytes constants;

  int64_t matrix(int64_t rows, int64_t columns) {
    return slot(p, DType::f32, Shape{rows, columns});
  }
  int64_t constant(int64_t rows, int64_t columns, const std::vector<float> &values) {
    int64_t index = matrix(rows, columns);
    Slot &made = program.parts[p].slots[index];
    made.space = Slot::Space::constant;
    made.offset = static_cast<int64_t>(constants.size());
    auto *data = reinterpret_cast<const std::byte *>(values.data());
    constants.insert(constants.end(), data, data + values.size() * sizeof(float));
    return index;
  }
  /// As the compiler does it.
  PackPlan reserve(int64_t most = std::numeric_limits<int64_t>::max()) {
    Part &part = program.parts[p];
    PackPlan plan = planPacking(program, part, most);
    part.arenaBytes += plan.bytes;
    part.packedBytes = plan.bytes;
    return plan;
  }
  LoopStep loop(int64_t trips) {
    LoopStep made;
    made.iv = slot(p, DType::index, Shape{});
    made.upper.value = trips, made.step.value = 1;
    return made;
  }
  std::shared_ptr<Artifact> artifact() const {
    return std::make_shared<Artifact>(Artifact{program, {}, {}, constants});
  }
};

std::unique_ptr<Executor> opened(std::shared_ptr<const Artifact> artifact, int64_t workers,
                                 bool ownsConstants = false) {
  BackendOptions options;
  options.cores = workers;
  options.ownsConstants = ownsConstants;
  auto executor = openUnderTest(std::move(artifact), options);
  EXPECT_TRUE(executor) << executor.message();
  return std::move(*executor);
}

void write(Executor &executor, int64_t slot, const std::vector<float> &values) {
  std::memcpy(executor.slotData(0, 0, slot), values.data(), values.size() * sizeof(float));
}

std::vector<float> valuesOf(Executor &executor, int64_t slot, int64_t count) {
  const auto *data = reinterpret_cast<const float *>(executor.slotData(0, 0, slot));
  return {data, data + count};
}

} // namespace

TEST(PackedProducts, InvariantOperandOfALoop) {
  // Two products a trip: of a weight that stays, and of one that each trip overwrites.
  constexpr int64_t m = 16, n = 300, k = 200;
  Trial t;
  int64_t x = t.matrix(m, k), stays = t.matrix(n, k), changes = t.matrix(n, k),
          next = t.matrix(n, k), y = t.matrix(m, n), z = t.matrix(m, n);
  LoopStep loop = t.loop(6);
  Step head = t.step(LoopStep());
  loop.body.push_back(t.step(product(m, n, k, true, x, stays, y)));
  loop.body.push_back(t.step(product(m, n, k, true, x, changes, z)));
  loop.body.push_back(t.step(CopyStep{next, changes, n * k * 4}));
  head.action = loop;
  t.program.parts[t.p].steps.push_back(head);
  PackPlan plan = t.reserve();
  ASSERT_EQ(plan.operands.size(), 1u);
  EXPECT_EQ(plan.operands[0].product.b, stays);
  EXPECT_EQ(plan.operands[0].when, When::changes);
  EXPECT_EQ(plan.bytes, packedBytes(DType::f32, k, n));
  if (!multipliesPanels(DType::f32))
    GTEST_SKIP() << "no tiles for this processor";
  auto xs = randomValues(m * k, 1);
  for (int64_t workers : {1, 2, 5}) {
    auto executor = opened(t.artifact(), workers);
    for (unsigned step = 0; step < 2; ++step) { // arguments change between steps
      auto weights = randomValues(n * k, 2 + step), nexts = randomValues(n * k, 9);
      write(*executor, x, xs);
      write(*executor, stays, weights);
      write(*executor, changes, weights);
      write(*executor, next, nexts);
      ASSERT_TRUE(executor->run().ok());
      EXPECT_EQ(valuesOf(*executor, y, m * n),
                multiplied(product(m, n, k, true, 0, 0, 0), xs, weights));
      auto expected = multiplied(product(m, n, k, true, 0, 0, 0), xs, nexts);
      auto found = valuesOf(*executor, z, m * n);
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], 1e-3);
    }
  }
}

TEST(PackedProducts, PackedAgainAfterAWrite) {
  // The weight changes once, between two loops that read it.
  constexpr int64_t m = 16, n = 256, k = 128;
  Trial t;
  int64_t x = t.matrix(m, k), weight = t.matrix(n, k), next = t.matrix(n, k), y = t.matrix(m, n),
          z = t.matrix(m, n);
  for (int64_t result : {y, z}) {
    LoopStep loop = t.loop(4);
    Step head = t.step(LoopStep());
    loop.body.push_back(t.step(product(m, n, k, true, x, weight, result)));
    head.action = loop;
    t.program.parts[t.p].steps.push_back(head);
    if (result == y)
      t.add(t.p, CopyStep{next, weight, n * k * 4});
  }
  ASSERT_EQ(t.reserve().operands.size(), 1u);
  if (!multipliesPanels(DType::f32))
    GTEST_SKIP() << "no tiles for this processor";
  auto executor = opened(t.artifact(), 2);
  auto xs = randomValues(m * k, 1), before = randomValues(n * k, 2), after = randomValues(n * k, 3);
  write(*executor, x, xs);
  write(*executor, weight, before);
  write(*executor, next, after);
  ASSERT_TRUE(executor->run().ok());
  GemmStep step = product(m, n, k, true, 0, 0, 0);
  EXPECT_EQ(valuesOf(*executor, y, m * n), multiplied(step, xs, before));
  EXPECT_EQ(valuesOf(*executor, z, m * n), multiplied(step, xs, after));
}

TEST(PackedProducts, ConstantsArePackedAtLoadAndDropped) {
  constexpr int64_t m = 4, n = 512, k = 256;
  auto weights = randomValues(n * k, 5), xs = randomValues(m * k, 6);
  for (bool isCopied : {false, true}) {
    Trial t;
    int64_t x = t.matrix(m, k), w = t.constant(n, k, weights), y = t.matrix(m, n);
    t.add(t.p, product(m, n, k, true, x, w, y));
    if (isCopied)
      t.add(t.p, CopyStep{w, t.matrix(n, k), n * k * 4});
    PackPlan plan = t.reserve();
    ASSERT_EQ(plan.operands.size(), 1u);
    EXPECT_EQ(plan.operands[0].when, isCopied ? When::changes : When::load);
    EXPECT_EQ(plan.bytes, isCopied ? packedBytes(DType::f32, k, n) : 0);
    if (!multipliesPanels(DType::f32))
      GTEST_SKIP() << "no tiles for this processor";
    auto artifact = t.artifact();
    auto executor = opened(artifact, 2, /*ownsConstants=*/true);
    for (int step = 0; step < 2; ++step) {
      write(*executor, x, xs);
      ASSERT_TRUE(executor->run().ok());
      EXPECT_EQ(valuesOf(*executor, y, m * n),
                multiplied(product(m, n, k, true, 0, 0, 0), xs, weights));
    }
    // Whole pages in the middle of the constant are given back.
    float middle;
    std::memcpy(&middle, artifact->constants.data() + n * k * 2, sizeof(middle));
    EXPECT_EQ(middle, isCopied ? weights[n * k / 2] : 0.0f);
  }
}

TEST(PackedProducts, BlocksOfRowsShareTransposedColumns) {
  constexpr int64_t m = 600, n = 300, k = 400;
  Trial t;
  int64_t x = t.matrix(m, k), w = t.matrix(n, k), y = t.matrix(m, n);
  t.add(t.p, product(m, n, k, true, x, w, y));
  EXPECT_TRUE(t.reserve().operands.empty()); // too much of the arena
  t.matrix(100 * n, k);
  PackPlan plan = t.reserve();
  ASSERT_EQ(plan.operands.size(), 1u);
  EXPECT_EQ(plan.operands[0].when, When::product);
  if (!multipliesPanels(DType::f32))
    GTEST_SKIP() << "no tiles for this processor";
  auto xs = randomValues(m * k, 1), weights = randomValues(n * k, 2);
  for (int64_t workers : {1, 2, 5}) {
    auto executor = opened(t.artifact(), workers);
    write(*executor, x, xs);
    write(*executor, w, weights);
    ASSERT_TRUE(executor->run().ok());
    EXPECT_EQ(valuesOf(*executor, y, m * n),
              multiplied(product(m, n, k, true, 0, 0, 0), xs, weights));
  }
}

TEST(PackedProducts, MemoryIsForThoseThatSaveMost) {
  Trial t;
  LoopStep loop = t.loop(8);
  Step head = t.step(LoopStep());
  for (auto [m, transB] : {std::pair<int64_t, bool>{2, true}, {16, true}}) {
    int64_t x = t.matrix(m, 128), w = t.matrix(128, 128), y = t.matrix(m, 128);
    for (int i = 0; i < 4; ++i)
      loop.body.push_back(t.step(product(m, 128, 128, transB, x, w, y)));
  }
  head.action = loop;
  t.program.parts[t.p].steps.push_back(head);
  const Part &part = t.program.parts[t.p];
  PackPlan all = planPacking(t.program, part);
  ASSERT_EQ(all.operands.size(), 2u);
  EXPECT_EQ(all.operands[0].product.m, 16);
  PackPlan one = planPacking(t.program, part, all.bytes - 1);
  ASSERT_EQ(one.operands.size(), 1u);
  EXPECT_EQ(one.operands[0].product.m, 16);
  EXPECT_EQ(planPacking(t.program, part, one.bytes).bytes, one.bytes); // what the runtime plans
  EXPECT_TRUE(planPacking(t.program, part, 0).operands.empty());
}

TEST(PackedProducts, OneProductOfAChangingOperandIsLeft) {
  Trial t;
  int64_t x = t.matrix(16, 128), w = t.matrix(128, 128), y = t.matrix(16, 128);
  t.add(t.p, product(16, 128, 128, true, x, w, y));
  EXPECT_TRUE(t.reserve().operands.empty());
}
