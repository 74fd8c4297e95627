//===- KernelShapeTest.cpp - Kernels that move data -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTesting.h"

#include <gtest/gtest.h>

using namespace tessera::codegen::testing;

namespace {

class Shape : public ::testing::TestWithParam<bool> {
protected:
  tessera::codegen::CpuOptions options() const { return GetParam() ? best() : plain(); }
};
INSTANTIATE_TEST_SUITE_P(Schemes, Shape, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Vectorised" : "Plain"; });

TEST_P(Shape, Transposes) {
  for (auto shape : std::vector<std::vector<int>>{{3, 5, 7}, {4, 16, 24}, {2, 33, 40}})
    for (auto perm :
         std::vector<std::vector<int>>{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}})
      for (bool narrow : {false, true}) {
        auto dims = [](std::vector<int> s) {
          return std::to_string(s[0]) + "x" + std::to_string(s[1]) + "x" + std::to_string(s[2]);
        };
        std::vector<int> to{shape[perm[0]], shape[perm[1]], shape[perm[2]]};
        Library library(substitute(R"(
func.func @t(%x: tensor<{in}x{t}>, %o: tensor<{out}x{t}>) -> tensor<{out}x{t}> attributes {kernel.reads = 1 : i64} {
  %r = linalg.transpose ins(%x : tensor<{in}x{t}>) outs(%o : tensor<{out}x{t}>) permutation = [{p}]
  return %r : tensor<{out}x{t}>
})",
                                   {{"in", dims(shape)},
                                    {"out", dims(to)},
                                    {"t", narrow ? "i16" : "f32"},
                                    {"p", std::to_string(perm[0]) + ", " + std::to_string(perm[1]) +
                                              ", " + std::to_string(perm[2])}}),
                        options());
        ASSERT_TRUE(library.valid()) << library.error();
        auto check = [&](auto x) {
          decltype(x) o(x.size());
          std::vector<double> expected;
          int stride[3] = {shape[1] * shape[2], shape[2], 1};
          for (int i = 0; i < to[0]; ++i)
            for (int j = 0; j < to[1]; ++j)
              for (int k = 0; k < to[2]; ++k)
                expected.push_back(
                    double(x[i * stride[perm[0]] + j * stride[perm[1]] + k * stride[perm[2]]]));
          library.run("t", {x.data(), o.data()}, true);
          EXPECT_EQ(compare(o, expected, 0), "") << dims(shape);
        };
        int size = shape[0] * shape[1] * shape[2];
        if (narrow)
          check(randomIntegers<int16_t>(size, -99, 99, 1));
        else
          check(randomBuffer<float>(size, 1));
        if (GetParam())
          EXPECT_EQ(library.info("t").reason, "");
      }
}

TEST_P(Shape, PadConcatSlice) {
  Library library(R"(
func.func @pad(%x: tensor<3x5xf32>, %o: tensor<6x9xf32>) -> tensor<6x9xf32> attributes {kernel.reads = 1 : i64} {
  %c = arith.constant 7.0 : f32
  %r = tensor.pad %x low[1, 2] high[2, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<3x5xf32> to tensor<6x9xf32>
  return %r : tensor<6x9xf32>
}
func.func @concat(%x: tensor<3x5xf32>, %y: tensor<3x4xf32>, %o: tensor<3x9xf32>) -> tensor<3x9xf32> attributes {kernel.reads = 2 : i64} {
  %e = math.absf %x : tensor<3x5xf32>
  %r = tensor.concat dim(1) %e, %y : (tensor<3x5xf32>, tensor<3x4xf32>) -> tensor<3x9xf32>
  return %r : tensor<3x9xf32>
}
func.func @slice(%x: tensor<8x9xf32>, %o: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {kernel.reads = 1 : i64} {
  %s = tensor.extract_slice %x[1, 1] [3, 4] [2, 2] : tensor<8x9xf32> to tensor<3x4xf32>
  %r = arith.negf %s : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @insert(%x: tensor<3x4xf32>, %d: tensor<8x9xf32>, %o: tensor<8x9xf32>) -> tensor<8x9xf32> attributes {kernel.reads = 2 : i64} {
  %r = tensor.insert_slice %x into %d[2, 3] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}
func.func @reshape(%x: tensor<4x6xf32>, %o: tensor<2x12xf32>) -> tensor<2x12xf32> attributes {kernel.reads = 1 : i64} {
  %f = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %n = arith.negf %f : tensor<24xf32>
  %r = tensor.expand_shape %n [[0, 1]] output_shape [2, 12] : tensor<24xf32> into tensor<2x12xf32>
  return %r : tensor<2x12xf32>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  auto a = randomBuffer<float>(15, 1), b = randomBuffer<float>(12, 2),
       big = randomBuffer<float>(72, 3);
  {
    Buffer<float> o(54);
    std::vector<double> expected(54, 7);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 5; ++j)
        expected[(i + 1) * 9 + j + 2] = a[i * 5 + j];
    library.run("pad", {a.data(), o.data()});
    EXPECT_EQ(compare(o, expected, 0), "");
  }
  {
    Buffer<float> o(27);
    std::vector<double> expected(27);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 9; ++j)
        expected[i * 9 + j] = j < 5 ? std::fabs(a[i * 5 + j]) : b[i * 4 + j - 5];
    library.run("concat", {a.data(), b.data(), o.data()});
    EXPECT_EQ(compare(o, expected, 0), "");
  }
  {
    Buffer<float> o(12);
    std::vector<double> expected(12);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j)
        expected[i * 4 + j] = -big[(1 + 2 * i) * 9 + 1 + 2 * j];
    library.run("slice", {big.data(), o.data()});
    EXPECT_EQ(compare(o, expected, 0), "");
  }
  {
    Buffer<float> o(72);
    std::vector<double> expected(big.begin(), big.end());
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j)
        expected[(2 + i) * 9 + 3 + j] = b[i * 4 + j];
    library.run("insert", {b.data(), big.data(), o.data()});
    EXPECT_EQ(compare(o, expected, 0), "");
  }
  {
    Buffer<float> o(24);
    std::vector<double> expected(24);
    for (int i = 0; i < 24; ++i)
      expected[i] = -big[i];
    library.run("reshape", {big.data(), o.data()});
    EXPECT_EQ(compare(o, expected, 0), "");
  }
}

TEST_P(Shape, GatherScatter) {
  Library library(R"(
func.func @gather(%x: tensor<9x13xf32>, %i: tensor<5x1xi64>, %o: tensor<5x13xf32>) -> tensor<5x13xf32> attributes {kernel.reads = 2 : i64} {
  %r = tensor.gather %x[%i] gather_dims([0]) : (tensor<9x13xf32>, tensor<5x1xi64>) -> tensor<5x13xf32>
  return %r : tensor<5x13xf32>
}
func.func @scatter(%s: tensor<5x1x13xf32>, %d: tensor<9x13xf32>, %i: tensor<5x1xindex>, %o: tensor<9x13xf32>) -> tensor<9x13xf32> attributes {kernel.reads = 3 : i64} {
  %r = tensor.scatter %s into %d[%i] scatter_dims([0]) unique : (tensor<5x1x13xf32>, tensor<9x13xf32>, tensor<5x1xindex>) -> tensor<9x13xf32>
  return %r : tensor<9x13xf32>
}
func.func @embed(%x: tensor<9x13xf32>, %i: tensor<5xi32>, %o: tensor<5x13xf32>) -> tensor<5x13xf32> attributes {kernel.reads = 2 : i64} {
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
    ins(%i : tensor<5xi32>) outs(%o : tensor<5x13xf32>) {
  ^bb0(%t: i32, %u: f32):
    %k = arith.index_cast %t : i32 to index
    %c = linalg.index 1 : index
    %e = tensor.extract %x[%k, %c] : tensor<9x13xf32>
    %n = arith.addf %e, %e : f32
    linalg.yield %n : f32
  } -> tensor<5x13xf32>
  return %r : tensor<5x13xf32>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  auto x = randomBuffer<float>(117, 1), s = randomBuffer<float>(65, 2);
  Buffer<int64_t> at(5);
  Buffer<int32_t> at32(5);
  for (int i = 0; i < 5; ++i)
    at32[i] = int32_t(at[i] = (i * 7 + 3) % 9);
  Buffer<float> o(65), p(117);
  std::vector<double> gathered, doubled, scattered(x.begin(), x.end());
  for (int i = 0; i < 65; ++i) {
    gathered.push_back(x[at[i / 13] * 13 + i % 13]);
    doubled.push_back(2 * gathered.back());
    scattered[at[i / 13] * 13 + i % 13] = s[i];
  }
  library.run("gather", {x.data(), at.data(), o.data()});
  EXPECT_EQ(compare(o, gathered, 0), "");
  library.run("embed", {x.data(), at32.data(), o.data()});
  EXPECT_EQ(compare(o, doubled, 0), "");
  library.run("scatter", {s.data(), x.data(), at.data(), p.data()});
  EXPECT_EQ(compare(p, scattered, 0), "");
}

TEST_P(Shape, Loops) {
  Library library(R"(
func.func @power(%x: tensor<19xf32>, %n: tensor<index>, %o: tensor<19xf32>) -> tensor<19xf32> attributes {kernel.reads = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.extract %n[] : tensor<index>
  %r = scf.for %i = %c0 to %k step %c1 iter_args(%a = %x) -> tensor<19xf32> {
    %b = arith.mulf %a, %x : tensor<19xf32>
    scf.yield %b : tensor<19xf32>
  }
  return %r : tensor<19xf32>
}
func.func @swap(%x: tensor<6xf32>, %y: tensor<6xf32>, %o: tensor<6xf32>, %p: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) attributes {kernel.reads = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<6xf32>, tensor<6xf32>) {
    %c = arith.addf %a, %a : tensor<6xf32>
    scf.yield %b, %c : tensor<6xf32>, tensor<6xf32>
  }
  return %r#0, %r#1 : tensor<6xf32>, tensor<6xf32>
}
func.func @branch(%x: tensor<6xf32>, %f: tensor<i1>, %o: tensor<6xf32>) -> tensor<6xf32> attributes {kernel.reads = 2 : i64} {
  %p = tensor.extract %f[] : tensor<i1>
  %r = scf.if %p -> tensor<6xf32> {
    %n = arith.negf %x : tensor<6xf32>
    scf.yield %n : tensor<6xf32>
  } else {
    %n = arith.mulf %x, %x : tensor<6xf32>
    scf.yield %n : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}
func.func @forward(%x: tensor<6xf32>, %y: tensor<6xf32>, %o: tensor<6xf32>, %p: tensor<6xf32>, %q: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) attributes {kernel.reads = 2 : i64} {
  return %y, %o, %y : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  auto x = randomBuffer<float>(19, 1), y = randomBuffer<float>(6, 2);
  Buffer<int64_t> n(1, 3);
  Buffer<float> o(19), a(6), b(6), c(6);
  std::vector<double> fourth, six, doubled, negated, squared;
  for (int i = 0; i < 19; ++i)
    fourth.push_back(std::pow(double(x[i]), 4));
  library.run("power", {x.data(), n.data(), o.data()});
  EXPECT_EQ(compare(o, fourth, 1e-6), "");
  // (x, y) -> (y, 2x) -> (2x, 2y) -> (2y, 4x)
  for (int i = 0; i < 6; ++i) {
    six.push_back(2 * y[i]);
    doubled.push_back(4 * x[i]);
    negated.push_back(-x[i]);
    squared.push_back(x[i] * x[i]);
  }
  library.run("swap", {x.data(), y.data(), a.data(), b.data()});
  EXPECT_EQ(compare(a, six, 0), "");
  EXPECT_EQ(compare(b, doubled, 0), "");
  for (bool flag : {true, false}) {
    Buffer<uint8_t> f(1, flag);
    library.run("branch", {x.data(), f.data(), a.data()});
    EXPECT_EQ(compare(a, flag ? negated : squared, 1e-6), "");
  }
  std::vector<double> before(a.begin(), a.end()), given(y.begin(), y.end());
  library.run("forward", {x.data(), y.data(), a.data(), b.data(), c.data()});
  EXPECT_EQ(compare(a, given, 0), "");
  EXPECT_EQ(compare(b, before, 0), "");
  EXPECT_EQ(compare(c, given, 0), "");
}

TEST_P(Shape, EmptyTensorsAndConstants) {
  Library library(R"(
func.func @none(%x: tensor<0x5xf32>, %o: tensor<5xf32>, %p: tensor<0x5xf32>) -> (tensor<5xf32>, tensor<0x5xf32>) attributes {kernel.reads = 1 : i64} {
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<5xf32>) -> tensor<5xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<0x5xf32>) outs(%f : tensor<5xf32>) dimensions = [0]
  %n = arith.negf %x : tensor<0x5xf32>
  return %r, %n : tensor<5xf32>, tensor<0x5xf32>
}
func.func @constant(%o: tensor<3xi64>, %p: tensor<20xf32>, %q: tensor<2x2xf32>) -> (tensor<3xi64>, tensor<20xf32>, tensor<2x2xf32>) attributes {kernel.reads = 0 : i64} {
  %a = arith.constant dense<[1, 2, 3]> : tensor<3xi64>
  %b = arith.constant dense<2.5> : tensor<20xf32>
  %v = arith.constant 4.0 : f32
  %w = arith.constant 5.0 : f32
  %c = tensor.from_elements %v, %w, %w, %v : tensor<2x2xf32>
  return %a, %b, %c : tensor<3xi64>, tensor<20xf32>, tensor<2x2xf32>
}
func.func @generate(%o: tensor<4x6xindex>, %p: tensor<7xf32>) -> (tensor<4x6xindex>, tensor<7xf32>) attributes {kernel.reads = 0 : i64} {
  %a = tensor.generate {
  ^bb0(%i: index, %j: index):
    %s = arith.muli %i, %j : index
    tensor.yield %s : index
  } : tensor<4x6xindex>
  %v = arith.constant 4.0 : f32
  %b = tensor.splat %v : tensor<7xf32>
  return %a, %b : tensor<4x6xindex>, tensor<7xf32>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  Buffer<float> none(1), five(5, 1.f), twenty(20), four(4), seven(7);
  Buffer<int64_t> three(3), table(24);
  library.run("none", {none.data(), five.data(), none.data()});
  EXPECT_EQ(compare(five, {0, 0, 0, 0, 0}, 0), "");
  library.run("constant", {three.data(), twenty.data(), four.data()});
  EXPECT_EQ(compare(three, {1, 2, 3}, 0), "");
  EXPECT_EQ(compare(twenty, std::vector<double>(20, 2.5), 0), "");
  EXPECT_EQ(compare(four, {4, 5, 5, 4}, 0), "");
  library.run("generate", {table.data(), seven.data()});
  std::vector<double> expected;
  for (int i = 0; i < 24; ++i)
    expected.push_back((i / 6) * (i % 6));
  EXPECT_EQ(compare(table, expected, 0), "");
  EXPECT_EQ(compare(seven, std::vector<double>(7, 4), 0), "");
}

} // namespace
