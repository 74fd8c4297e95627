//===- HostTest.cpp - Element types, inputs, scatter and gather -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "tessera/Runtime/Session/Compare.h"
#include "tessera/Runtime/Session/RandomInput.h"
#include "tessera/Support/Philox.h"

using namespace tessera;
using namespace tessera::runtime;

TEST(DTypes, HalvesRoundTripAndRoundToEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float value = halfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(value))));
      EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(value))));
      continue;
    }
    ASSERT_EQ(floatToHalf(value), half);
    if (!std::isnan(bfloatToFloat(half)))
      ASSERT_EQ(floatToBfloat(bfloatToFloat(half)), half);
  }
  EXPECT_EQ(halfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(halfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(floatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00) << "rounds up to infinity";
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00) << "a tie goes to even";
  EXPECT_EQ(floatToHalf(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(floatToHalf(0x1p-25f), 0x0000);
  EXPECT_EQ(floatToHalf(0x1.8p-25f), 0x0001);
  EXPECT_EQ(floatToBfloat(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(floatToBfloat(1.0f + 3 * 0x1p-8f), 0x3f82);
}

TEST(DTypes, NamesAndCounts) {
  for (const char *name : {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "i1", "index"})
    EXPECT_EQ(toString(*parseDType(name)), name);
  EXPECT_FALSE(parseDType("u8"));
  EXPECT_EQ(elementCount({}), 1);
  EXPECT_EQ(elementCount({0, int64_t(1) << 40}), 0);
  EXPECT_FALSE(elementCount({-1}));
  EXPECT_FALSE(elementCount({int64_t(1) << 40, int64_t(1) << 40}));
  EXPECT_EQ(typeText(DType::f32, {2, 3}), "2x3xf32");
}

TEST(RandomInput, RangesAndIndependence) {
  Argument floats{"x", DType::f32, {1000}, {}, {}};
  HostTensor x = randomInput(floats, 0, 1);
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_GE(x.number(i), -1);
    EXPECT_LE(x.number(i), 1);
    EXPECT_EQ(static_cast<float>(x.number(i)), static_cast<float>(randomReal(randomWord(1, i, 0))));
  }
  EXPECT_NE(randomInput(floats, 1, 1).data, x.data) << "another argument";
  EXPECT_NE(randomInput(floats, 0, 2).data, x.data) << "another seed";
  EXPECT_EQ(randomInput(floats, 0, 1).data, x.data);
  Bytes some(40 * 4);
  randomElements(floats, 0, 1, 300, 40, some.data());
  EXPECT_TRUE(std::equal(some.begin(), some.end(), x.data.begin() + 300 * 4)) << "a part of it";
  Argument labels{"l", DType::i32, {1000}, std::array<int64_t, 2>{-3, 4}, {}};
  HostTensor l = randomInput(labels, 0, 1);
  std::array<int, 7> seen{};
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_GE(l.integer(i), -3);
    ASSERT_LT(l.integer(i), 4);
    ++seen[l.integer(i) + 3];
  }
  for (int count : seen)
    EXPECT_GT(count, 80);
  Argument bits{"b", DType::i1, {100}, {}, {}};
  HostTensor b = randomInput(bits, 0, 1);
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(b.integer(i), randomWord(1, i, 0) % 2);
}

namespace {
HostTensor tensorOf(DType dtype, const std::vector<double> &values) {
  HostTensor tensor = HostTensor::zeros(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    writeElement(dtype, values[i], tensor.data.data() + i * sizeOf(dtype));
  return tensor;
}
} // namespace

TEST(Compare, ToleranceRule) {
  double inf = INFINITY, nan = NAN;
  struct {
    DType dtype;
    std::vector<double> a, b;
    int64_t steps;
    bool equal;
  } table[] = {
      {DType::f32, {1, 2}, {1, 2}, 1, true},
      {DType::f32, {1, 2.0001}, {1, 2}, 1, true},
      {DType::f32, {1, 2.001}, {1, 2}, 1, false},
      {DType::f32, {1, 2.001}, {1, 2}, 100, true},
      {DType::f32, {1e-5, 2}, {0, 2}, 1, true}, // against the rms
      {DType::f64, {1, 2 + 1e-9}, {1, 2}, 1, false},
      {DType::bf16, {1, 2.03125}, {1, 2}, 1, true},
      {DType::f32, {nan, inf, -inf, 1}, {nan, inf, -inf, 1}, 1, true},
      {DType::f32, {1, 1}, {nan, 1}, 1, false},
      {DType::f32, {inf, 1}, {-inf, 1}, 1, false},
      {DType::f32, {0, 0}, {0, 0}, 1, true},
      {DType::i32, {1, 2}, {1, 3}, 1, false},
      {DType::i64, {1, 2}, {1, 2}, 1, true},
  };
  for (auto &row : table) {
    HostTensor a = tensorOf(row.dtype, row.a), b = tensorOf(row.dtype, row.b);
    Comparison result = compare(a, b, row.steps);
    EXPECT_EQ(result.equal, row.equal) << result.text(a, b);
  }
  EXPECT_FALSE(compare(tensorOf(DType::f32, {1}), tensorOf(DType::f32, {1, 1})).equal);
  EXPECT_EQ(compare(tensorOf(DType::f32, {5, 5}), tensorOf(DType::f32, {5, 5})).warnings.size(),
            1u);
  EXPECT_EQ(compare(tensorOf(DType::f32, {nan}), tensorOf(DType::f32, {nan})).warnings.size(), 1u);
  HostTensor a = tensorOf(DType::f32, {1, 2, 4}), b = tensorOf(DType::f32, {1, 2, 3});
  EXPECT_EQ(compare(a, b).worst, 2);
  EXPECT_NE(compare(a, b).text(a, b).find("[2]"), std::string::npos);
}

TEST(HostMove, ScattersAndGathersEveryLayout) {
  Mesh mesh = makeMesh({2, 3});
  AxisRef a = whole(mesh, 0), c = whole(mesh, 1);
  for (int64_t n : {7, 4, 1, 0}) {
    Shape global{n, 4};
    for (const Layout &layout :
         {replicated(global), layoutOf(global, {{a, c}, {}}), layoutOf(global, {{c}, {a}}),
          layoutOf(global, {{}, {}}, {{a, ReduceKind::sum}}),
          layoutOf(global, {{a}, {}}, {{c, ReduceKind::max}}),
          layoutOf(global, {{}, {}}, {{a, ReduceKind::avg}, {c, ReduceKind::sum}})}) {
      ProgramBuilder b;
      int64_t p = b.part(b.mesh(mesh)), x = b.argument("x", p, DType::f32, layout);
      b.result("y", p, x, layout);
      auto executor = openProgram(b.program);
      ASSERT_TRUE(executor);
      HostTensor value = HostTensor::zeros(DType::f32, global);
      for (int64_t i = 0; i < value.numElements(); ++i)
        writeElement(DType::f32, static_cast<double>(i) + 1, value.data.data() + i * 4);
      ASSERT_TRUE(scatter(*executor, b.program, b.program.arguments[0], value).ok());
      auto back = gather(*executor, b.program, b.program.results[0]);
      ASSERT_TRUE(back) << back.message();
      EXPECT_EQ(back->data, value.data);
    }
  }
}
