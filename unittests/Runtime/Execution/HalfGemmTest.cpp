//===- HalfGemmTest.cpp - Products of 16-bit floats against three loops ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "Execution/AmxTiles.h"
#include "Execution/HalfPackers.h"
#include "PackedWhole.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace tessera::runtime;

namespace {

float widened(DType dtype, uint16_t bits) {
  return dtype == DType::f16 ? halfToFloat(bits) : bfloatToFloat(bits);
}

/// The sets of this machine, and AMX emulated.
std::vector<const HalfGemmKernels *> allSets() {
  auto here = allHalfGemmKernels();
  std::vector<const HalfGemmKernels *> sets(here.begin(), here.end());
  sets.push_back(&emulatedAmx());
  return sets;
}

} // namespace

TEST(HalfGemm, TilesOfAllInstructionSets) {
  std::mt19937 random(7);
  for (const HalfGemmKernels *set : allSets())
    for (auto [m, n] : {std::array<int64_t, 2>{1, 1}, {13, 16}, {33, 37}, {107, 300}})
      for (int64_t k : {1, 17, 64, 805})
        for (int flags = 0; flags < 8; ++flags) {
          GemmProblem p{DType::f32, DType::f32,     m, n, k, bool(flags & 1), bool(flags & 2), 0, 0,
                        n + 3,      bool(flags & 4)};
          p.lda = (p.transA ? p.m : p.k) + 1, p.ldb = (p.transB ? p.k : p.n) + 2;
          std::vector<uint16_t> a((p.transA ? k : m) * p.lda), b((p.transB ? n : k) * p.ldb);
          std::vector<float> c(m * p.ldc);
          for (auto *list : {&a, &b})
            for (uint16_t &bits : *list) {
              float value = static_cast<float>(random() % 100) / 50 - 1;
              bits = set->dtype == DType::f16 ? floatToHalf(value) : floatToBfloat(value);
            }
          for (float &value : c)
            value = static_cast<float>(random() % 100) / 50 - 1;
          const std::vector<float> before = c;
          std::vector<float> cut = c;
          multiplyPacked(*set, p, a.data(), b.data(), c.data());
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < p.ldc; ++j) {
              double sum = p.accumulate || j >= n ? before[i * p.ldc + j] : 0;
              for (int64_t l = 0; l < k && j < n; ++l)
                sum += double(widened(set->dtype, a[p.transA ? l * p.lda + i : i * p.lda + l])) *
                       widened(set->dtype, b[p.transB ? j * p.ldb + l : l * p.ldb + j]);
              ASSERT_NEAR(c[i * p.ldc + j], sum, 1e-4 * std::sqrt(double(k)))
                  << set->name << ' ' << m << 'x' << n << 'x' << k << ' ' << flags;
            }
          // The bits of an element do not depend on the other rows and columns of the product.
          for (int64_t row = 0; row < m; row += 29)
            for (int64_t column = 0; column < n; column += 41) {
              GemmProblem part = p;
              part.m = std::min<int64_t>(29, m - row), part.n = std::min<int64_t>(41, n - column);
              multiplyPacked(*set, part, a.data() + row * (p.transA ? 1 : p.lda),
                             b.data() + column * (p.transB ? p.ldb : 1),
                             cut.data() + row * p.ldc + column);
            }
          ASSERT_EQ(std::memcmp(c.data(), cut.data(), c.size() * sizeof(float)), 0) << set->name;
          cut = before;
          multiplyPackedWhole(*set, p, a.data(), b.data(), cut.data());
          ASSERT_EQ(std::memcmp(c.data(), cut.data(), c.size() * sizeof(float)), 0) << set->name;
        }
}

TEST(HalfGemm, PackersOfAllInstructionSets) {
  std::mt19937 random(8);
  constexpr int64_t kLine = 151;
  std::vector<uint16_t> from(16 * kLine);
  for (uint16_t &bits : from)
    bits = static_cast<uint16_t>(random());
  for (const HalfPackers *packers : allHalfPackers()) {
    for (int64_t count : {1, 15, 32, 100}) {
      std::vector<uint16_t> to(2 * count + 2, 7);
      packers->interleave(from.data() + 1, from.data() + kLine, count, to.data());
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(to[2 * i], from[1 + i]) << packers->name;
        ASSERT_EQ(to[2 * i + 1], from[kLine + i]) << packers->name;
      }
      ASSERT_EQ(to[2 * count], 7) << packers->name;
    }
    for (int64_t count : {1, 4, 7, 12})
      for (int64_t depth : {1, 64, 149}) {
        std::vector<uint16_t> to(160 * 12, 7);
        int64_t done = packers->pairs(from.data(), kLine, count, depth, 12, to.data());
        ASSERT_LE(done, depth);
        for (int64_t i = 0; i < done; ++i)
          for (int64_t line = 0; line < 12; ++line)
            ASSERT_EQ(to[i / 2 * 24 + 2 * line + i % 2], line < count ? from[line * kLine + i] : 7)
                << packers->name << ' ' << count << ' ' << i << ' ' << line;
      }
    std::vector<float> values(1000);
    for (float &value : values)
      value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    values[3] = NAN, values[4] = INFINITY, values[5] = 1e-45f, values[6] = -0.0f;
    std::vector<uint16_t> to(values.size());
    packers->narrow(values.data(), 1000, to.data());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(to[i], floatToBfloat(values[i])) << packers->name << ' ' << values[i];
    // All f16, and floats at the edges of f16.
    std::vector<uint16_t> all(1 << 16), back(all.size());
    std::iota(all.begin(), all.end(), uint16_t(0));
    std::vector<float> wide(all.size());
    packers->widenF16(all.data(), 1 << 16, wide.data());
    packers->narrowF16(wide.data(), 1 << 16, back.data());
    for (size_t i = 0; i < all.size(); ++i) {
      if (std::isnan(halfToFloat(all[i]))) {
        ASSERT_TRUE(std::isnan(wide[i])) << packers->name;
        ASSERT_TRUE(std::isnan(halfToFloat(back[i]))) << packers->name;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(halfToFloat(all[i])));
      ASSERT_EQ(back[i], all[i]) << packers->name;
    }
    for (float &value : values)
      value = std::ldexp(static_cast<float>(random()) / 0x1p32f - 0.5f,
                         static_cast<int>(random() % 48) - 30);
    packers->narrowF16(values.data(), 1000, to.data());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(to[i], floatToHalf(values[i])) << packers->name << ' ' << values[i];
  }
}

TEST(HalfGemm, SpecialValues) {
  // One summand each: infinities and NaN propagate, and so do pairs of which the other is padding.
  const float values[] = {INFINITY, -INFINITY, NAN, 0.0f, -2.5f, 3e38f};
  for (const HalfGemmKernels *set : allSets()) {
    if (set->dtype != DType::bf16)
      continue;
    for (float x : values)
      for (float y : values) {
        uint16_t a = floatToBfloat(x), b = floatToBfloat(y);
        float c = 7, expected = bfloatToFloat(a) * bfloatToFloat(b);
        multiplyPacked(*set, {DType::f32, DType::f32, 1, 1, 1, false, false, 1, 1, 1, false}, &a,
                       &b, &c);
        if (std::isnan(expected))
          EXPECT_TRUE(std::isnan(c)) << set->name << ' ' << x << " * " << y;
        else
          EXPECT_EQ(c, expected) << set->name << ' ' << x << " * " << y;
      }
  }
}

TEST(HalfGemm, EmulatedTilesAreThoseOfTheManual) {
  // A tile of rows i + 1 times a tile whose pair k, column n is (k, n): sum of k + 16 n, by hand.
  using Amx = EmulatedAmx;
  std::vector<uint16_t> a(16 * 32), b(16 * 32);
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k)
      for (int half = 0; half < 2; ++half) {
        a[i * 32 + 2 * k + half] = floatToBfloat(static_cast<float>(i + 1));
        b[k * 32 + 2 * i + half] = floatToBfloat(static_cast<float>(half ? i : k));
      }
  std::vector<float> c(16 * 20, -1.0f);
  Amx::load(1, a.data(), 64);
  Amx::load(2, b.data(), 64);
  Amx::zero(0);
  Amx::dot(0, 1, 2);
  Amx::store(0, c.data(), 20 * sizeof(float));
  for (int i = 0; i < 16; ++i)
    for (int n = 0; n < 20; ++n)
      EXPECT_EQ(c[i * 20 + n], n < 16 ? (i + 1) * (120 + 16 * n) : -1) << i << ' ' << n;
}

TEST(HalfGemm, BitsAreIndependentOfTheNumberOfWorkers) {
  for (auto [m, n, k] :
       {std::array<int64_t, 3>{1, 4096, 1100}, {64, 512, 1100}, {200, 300, 1700}}) {
    ProgramBuilder b;
    int64_t mesh = b.mesh(makeMesh({1})), p = b.part(mesh);
    GemmStep step;
    step.dtype = DType::bf16;
    step.m = m, step.n = n, step.k = k;
    step.lda = k, step.ldb = n, step.ldc = n;
    step.strideA = m * k, step.strideB = k * n, step.strideC = m * n;
    step.a = b.slot(p, DType::bf16, Shape{m, k});
    step.b = b.slot(p, DType::bf16, Shape{k, n});
    step.c = b.slot(p, DType::bf16, Shape{m, n});
    b.add(p, step);
    std::vector<uint16_t> first;
    for (int workers : {1, 2, 5}) {
      auto executor = openProgram(b.program, workers);
      auto dataOf = [&](int64_t slot) {
        return reinterpret_cast<uint16_t *>(executor->slotData(p, 0, slot));
      };
      std::mt19937 random(5);
      std::normal_distribution<float> normal;
      std::generate_n(dataOf(step.a), m * k, [&] { return floatToBfloat(normal(random)); });
      std::generate_n(dataOf(step.b), k * n, [&] { return floatToBfloat(normal(random)); });
      ASSERT_TRUE(executor->run().ok());
      std::vector<uint16_t> values(dataOf(step.c), dataOf(step.c) + m * n);
      if (first.empty())
        first = values;
      ASSERT_EQ(values, first) << workers << " workers";
    }
  }
}
