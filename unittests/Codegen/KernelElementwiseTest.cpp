//===- KernelElementwiseTest.cpp - Elementwise kernels --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTesting.h"

#include <gtest/gtest.h>

using namespace tessera::codegen::testing;

namespace {

/// The parameter: vectorized or plain.
class Elementwise : public ::testing::TestWithParam<bool> {
protected:
  tessera::codegen::CpuOptions options() const { return GetParam() ? best() : plain(); }
};
INSTANTIATE_TEST_SUITE_P(Schemes, Elementwise, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Vectorised" : "Plain"; });

const char *kUnary = R"(
func.func @f(%x: tensor<{n}x{t}>, %o: tensor<{n}x{t}>) -> tensor<{n}x{t}> attributes {kernel.reads = 1 : i64} {
  %r = {op} %x : tensor<{n}x{t}>
  return %r : tensor<{n}x{t}>
})";

TEST_P(Elementwise, Functions) {
  struct Case {
    const char *op;
    double (*function)(double);
    double low, high;
  };
  auto rsqrt = [](double x) { return 1 / std::sqrt(x); };
  for (const Case &c : std::vector<Case>{{"math.exp", std::exp, -90, 88},
                                         {"math.exp2", std::exp2, -100, 100},
                                         {"math.expm1", std::expm1, -3, 3},
                                         {"math.log", std::log, 1e-6, 1e6},
                                         {"math.log1p", std::log1p, -0.9, 10},
                                         {"math.log2", std::log2, 1e-6, 1e6},
                                         {"math.tanh", std::tanh, -12, 12},
                                         {"math.erf", std::erf, -5, 5},
                                         {"math.sin", std::sin, -20, 20},
                                         {"math.cos", std::cos, -20, 20},
                                         {"math.atan", std::atan, -9, 9},
                                         {"math.sqrt", std::sqrt, 0, 100},
                                         {"math.rsqrt", rsqrt, 0.01, 100},
                                         {"math.absf", std::fabs, -1, 1},
                                         {"math.floor", std::floor, -9, 9},
                                         {"math.ceil", std::ceil, -9, 9},
                                         {"math.sinh", std::sinh, -3, 3},
                                         {"math.cosh", std::cosh, -3, 3},
                                         {"math.roundeven", std::nearbyint, -9, 9},
                                         {"math.cbrt", std::cbrt, -9, 9},
                                         {"arith.negf", [](double x) { return -x; }, -1, 1}}) {
    size_t n = 1003;
    Library library(substitute(kUnary, {{"n", "1003"}, {"t", "f32"}, {"op", c.op}}), options());
    ASSERT_TRUE(library.valid()) << c.op << ": " << library.error();
    Buffer<float> in(n), out(n);
    std::vector<double> expected;
    for (size_t i = 0; i < n; ++i) {
      in[i] = float(c.low + (c.high - c.low) * double(i) / double(n - 1));
      expected.push_back(c.function(in[i]));
    }
    library.run("f", {in.data(), out.data()}, true);
    // Relative to each element if all values have one sign and magnitudes matter.
    EXPECT_EQ(compare(out, expected, 2e-6), "") << c.op;
  }
}

TEST_P(Elementwise, SpecialValues) {
  float inf = INFINITY, nan = NAN;
  for (auto [op, function] :
       std::vector<std::pair<const char *, double (*)(double)>>{{"math.exp", std::exp},
                                                                {"math.log", std::log},
                                                                {"math.tanh", std::tanh},
                                                                {"math.erf", std::erf},
                                                                {"math.sqrt", std::sqrt},
                                                                {"math.expm1", std::expm1},
                                                                {"math.log1p", std::log1p}}) {
    std::vector<float> values{0.f, -0.f, inf, -inf, nan, 1e-30f, -1.f, 1.f, 100.f, -120.f, 1e38f};
    Library library(substitute(kUnary, {{"n", "11"}, {"t", "f32"}, {"op", op}}), options());
    ASSERT_TRUE(library.valid()) << library.error();
    Buffer<float> in(values.size()), out(values.size());
    std::copy(values.begin(), values.end(), in.begin());
    library.run("f", {in.data(), out.data()});
    for (size_t i = 0; i < values.size(); ++i) {
      float expected = float(function(values[i]));
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(out[i])) << op << "(" << values[i] << ") = " << out[i];
      else if (std::isinf(expected))
        EXPECT_EQ(out[i], expected) << op << "(" << values[i] << ")";
      else
        EXPECT_NEAR(out[i], expected, 1e-5 * std::fabs(expected) + 1e-37)
            << op << "(" << values[i] << ")";
    }
  }
}

TEST_P(Elementwise, OtherFloats) {
  for (const char *op : {"math.exp", "math.tanh", "math.erf", "math.log1p"}) {
    auto function = !strcmp(op, "math.exp")    ? (double (*)(double))std::exp
                    : !strcmp(op, "math.tanh") ? (double (*)(double))std::tanh
                    : !strcmp(op, "math.erf")  ? (double (*)(double))std::erf
                                               : (double (*)(double))std::log1p;
    size_t n = 37;
    std::vector<double> expected;
    auto source = randomBuffer<float>(n, 3);
    {
      Library library(substitute(kUnary, {{"n", "37"}, {"t", "f64"}, {"op", op}}), options());
      ASSERT_TRUE(library.valid()) << library.error();
      Buffer<double> in(n), out(n);
      for (size_t i = 0; i < n; ++i)
        expected.push_back(function(in[i] = source[i] / 2));
      library.run("f", {in.data(), out.data()});
      EXPECT_EQ(compare(out, expected, 1e-12), "") << op;
    }
    for (bool bf16 : {false, true}) {
      Library library(substitute(kUnary, {{"n", "37"}, {"t", bf16 ? "bf16" : "f16"}, {"op", op}}),
                      options());
      ASSERT_TRUE(library.valid()) << library.error();
      Buffer<uint16_t> in(n), out(n);
      for (size_t i = 0; i < n; ++i)
        in[i] = bf16 ? toBF16(source[i] / 2) : toF16(source[i] / 2);
      library.run("f", {in.data(), out.data()});
      EXPECT_EQ(compare<uint16_t>(
                    out, expected, 2e-2,
                    bf16 ? [](uint16_t v) { return double(fromBF16(v)); }
                         : [](uint16_t v) { return double(fromF16(v)); }),
                "")
          << op;
    }
  }
}

TEST_P(Elementwise, BiasGeluOddSizes) {
  for (int m : {1, 2, 3, 7})
    for (int n = 1; n <= 17; ++n) {
      Library library(substitute(kBiasGelu, {{"m", std::to_string(m)}, {"n", std::to_string(n)}}),
                      options());
      ASSERT_TRUE(library.valid()) << library.error();
      auto x = randomBuffer<float>(m * n, 1), b = randomBuffer<float>(n, 2);
      Buffer<float> o(m * n);
      std::vector<double> expected;
      for (int i = 0; i < m * n; ++i) {
        double a = double(x[i]) + b[i % n];
        expected.push_back(0.5 * a * (1 + std::tanh(0.7978845608 * (a + 0.044715 * a * a * a))));
      }
      library.run("gelu", {x.data(), b.data(), o.data()}, true);
      EXPECT_EQ(compare(o, expected, 1e-5), "") << m << "x" << n;
      if (GetParam())
        EXPECT_EQ(library.info("gelu").scheme, tessera::codegen::KernelScheme::Vectorised)
            << library.info("gelu").reason;
    }
}

TEST_P(Elementwise, Integers) {
  const char *text = R"(
func.func @f(%x: tensor<{n}x{t}>, %y: tensor<{n}x{t}>, %o: tensor<{n}x{t}>) -> tensor<{n}x{t}>
    attributes {kernel.reads = 2 : i64} {
  %a = arith.addi %x, %y : tensor<{n}x{t}>
  %b = arith.muli %a, %x : tensor<{n}x{t}>
  %c = arith.divsi %b, %y : tensor<{n}x{t}>
  %d = arith.remsi %b, %y : tensor<{n}x{t}>
  %e = arith.maxsi %c, %d : tensor<{n}x{t}>
  %p = arith.cmpi slt, %e, %x : tensor<{n}x{t}>
  %q = arith.xori %e, %y : tensor<{n}x{t}>
  %r = arith.select %p, %q, %a : tensor<{n}xi1>, tensor<{n}x{t}>
  return %r : tensor<{n}x{t}>
})";
  auto check = [&]<typename T>(T, const char *type) {
    for (int n : {1, 5, 64, 131}) {
      Library library(substitute(text, {{"n", std::to_string(n)}, {"t", type}}), options());
      ASSERT_TRUE(library.valid()) << library.error();
      auto x = randomIntegers<T>(n, -5, 6, 1), y = randomIntegers<T>(n, 1, 5, 2);
      Buffer<T> o(n);
      std::vector<double> expected;
      for (int i = 0; i < n; ++i) {
        T a = x[i] + y[i], b = a * x[i], e = std::max<T>(b / y[i], b % y[i]);
        expected.push_back(e < x[i] ? T(e ^ y[i]) : a);
      }
      library.run("f", {x.data(), y.data(), o.data()}, true);
      EXPECT_EQ(compare(o, expected, 0), "") << type << " " << n;
    }
  };
  check(int32_t(), "i32");
  check(int64_t(), "i64");
  check(int8_t(), "i8");
  check(int16_t(), "i16");
  check(int64_t(), "index");
}

TEST_P(Elementwise, Booleans) {
  Library library(R"(
func.func @less(%x: tensor<21xf32>, %y: tensor<21xf32>, %o: tensor<21xi1>) -> tensor<21xi1>
    attributes {kernel.reads = 2 : i64} {
  %r = arith.cmpf olt, %x, %y : tensor<21xf32>
  return %r : tensor<21xi1>
}
func.func @pick(%p: tensor<21xi1>, %q: tensor<21xi1>, %x: tensor<21xf32>, %o: tensor<21xf32>) -> tensor<21xf32>
    attributes {kernel.reads = 3 : i64} {
  %c = arith.andi %p, %q : tensor<21xi1>
  %z = arith.constant dense<0.0> : tensor<21xf32>
  %r = arith.select %c, %x, %z : tensor<21xi1>, tensor<21xf32>
  return %r : tensor<21xf32>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  auto x = randomBuffer<float>(21, 1), y = randomBuffer<float>(21, 2);
  Buffer<uint8_t> less(21);
  Buffer<uint8_t> q(21);
  Buffer<float> o(21);
  library.run("less", {x.data(), y.data(), less.data()});
  std::vector<double> expected, picked;
  for (int i = 0; i < 21; ++i) {
    q[i] = i % 3 != 0;
    expected.push_back(x[i] < y[i]);
    picked.push_back(x[i] < y[i] && q[i] ? x[i] : 0.f);
  }
  EXPECT_EQ(compare(less, expected, 0), "");
  library.run("pick", {less.data(), q.data(), x.data(), o.data()});
  EXPECT_EQ(compare(o, picked, 0), "");
}

TEST_P(Elementwise, ScalarsAndIndices) {
  Library library(R"(
#v = affine_map<(i) -> (i)>
#s = affine_map<(i) -> ()>
func.func @axpy(%a: tensor<f32>, %k: tensor<index>, %x: tensor<33xf32>, %o: tensor<33xf32>, %n: tensor<i64>)
    -> (tensor<33xf32>, tensor<i64>) attributes {kernel.reads = 3 : i64} {
  %r = linalg.generic {indexing_maps = [#s, #s, #v, #v], iterator_types = ["parallel"]}
    ins(%a, %k, %x : tensor<f32>, tensor<index>, tensor<33xf32>) outs(%o : tensor<33xf32>) {
  ^bb0(%c: f32, %d: index, %e: f32, %f: f32):
    %i = linalg.index 0 : index
    %j = arith.addi %i, %d : index
    %ji = arith.index_cast %j : index to i32
    %jf = arith.sitofp %ji : i32 to f32
    %m = arith.mulf %c, %e : f32
    %s = arith.addf %m, %jf : f32
    linalg.yield %s : f32
  } -> tensor<33xf32>
  %ki = arith.index_cast %k : tensor<index> to tensor<i64>
  %q = arith.addi %ki, %ki : tensor<i64>
  return %r, %q : tensor<33xf32>, tensor<i64>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  auto x = randomBuffer<float>(33, 1);
  Buffer<float> a(1, 2.5f), o(33);
  Buffer<int64_t> k(1, 4), n(1);
  library.run("axpy", {a.data(), k.data(), x.data(), o.data(), n.data()});
  std::vector<double> expected;
  for (int i = 0; i < 33; ++i)
    expected.push_back(2.5 * x[i] + i + 4);
  EXPECT_EQ(compare(o, expected, 1e-6), "");
  EXPECT_EQ(n[0], 8);
}

TEST_P(Elementwise, Broadcasts) {
  Library library(R"(
func.func @f(%x: tensor<5x3x19xf32>, %a: tensor<5x1x19xf32>, %c: tensor<3xf32>, %o: tensor<5x3x19xf32>) -> tensor<5x3x19xf32>
    attributes {kernel.reads = 3 : i64} {
  %e = tensor.empty() : tensor<5x3x19xf32>
  %b = linalg.broadcast ins(%c : tensor<3xf32>) outs(%e : tensor<5x3x19xf32>) dimensions = [0, 2]
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, 0, k)>,
         affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
         iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%x, %a, %b : tensor<5x3x19xf32>, tensor<5x1x19xf32>, tensor<5x3x19xf32>) outs(%o : tensor<5x3x19xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %t: f32):
    %u = arith.mulf %p, %q : f32
    %v = arith.addf %u, %s : f32
    linalg.yield %v : f32
  } -> tensor<5x3x19xf32>
  return %r : tensor<5x3x19xf32>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  auto x = randomBuffer<float>(285, 1), a = randomBuffer<float>(95, 2),
       c = randomBuffer<float>(3, 3);
  Buffer<float> o(285);
  library.run("f", {x.data(), a.data(), c.data(), o.data()}, true);
  std::vector<double> expected;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 19; ++k)
        expected.push_back(double(x[(i * 3 + j) * 19 + k]) * a[i * 19 + k] + c[j]);
  EXPECT_EQ(compare(o, expected, 1e-5), "");
}

TEST_P(Elementwise, AdamInPlace) {
  const char *text = R"(
func.func @adam(%p: tensor<{n}xf32>, %m: tensor<{n}xf32>, %v: tensor<{n}xf32>, %g: tensor<{n}xf32>,
                %po: tensor<{n}xf32>, %mo: tensor<{n}xf32>, %vo: tensor<{n}xf32>)
    -> (tensor<{n}xf32>, tensor<{n}xf32>, tensor<{n}xf32>) attributes {kernel.reads = 4 : i64} {
  %b1 = arith.constant dense<0.9> : tensor<{n}xf32>
  %c1 = arith.constant dense<0.1> : tensor<{n}xf32>
  %b2 = arith.constant dense<0.99> : tensor<{n}xf32>
  %c2 = arith.constant dense<0.01> : tensor<{n}xf32>
  %eps = arith.constant dense<1.0e-8> : tensor<{n}xf32>
  %lr = arith.constant dense<0.05> : tensor<{n}xf32>
  %m0 = arith.mulf %m, %b1 : tensor<{n}xf32>
  %m1 = arith.mulf %g, %c1 : tensor<{n}xf32>
  %m2 = arith.addf %m0, %m1 : tensor<{n}xf32>
  %v0 = arith.mulf %v, %b2 : tensor<{n}xf32>
  %gg = arith.mulf %g, %g : tensor<{n}xf32>
  %v1 = arith.mulf %gg, %c2 : tensor<{n}xf32>
  %v2 = arith.addf %v0, %v1 : tensor<{n}xf32>
  %s = math.sqrt %v2 : tensor<{n}xf32>
  %d = arith.addf %s, %eps : tensor<{n}xf32>
  %q = arith.divf %m2, %d : tensor<{n}xf32>
  %u = arith.mulf %q, %lr : tensor<{n}xf32>
  %p2 = arith.subf %p, %u : tensor<{n}xf32>
  return %p2, %m2, %v2 : tensor<{n}xf32>, tensor<{n}xf32>, tensor<{n}xf32>
})";
  for (int n : {3, 1000, 40000}) {
    Library library(substitute(text, {{"n", std::to_string(n)}}), options());
    ASSERT_TRUE(library.valid()) << library.error();
    auto p = randomBuffer<float>(n, 1), m = randomBuffer<float>(n, 2),
         v = randomBuffer<float>(n, 3), g = randomBuffer<float>(n, 4);
    std::vector<double> ep, em, ev;
    for (int i = 0; i < n; ++i) {
      v[i] = std::fabs(v[i]);
      em.push_back(0.9 * m[i] + 0.1 * g[i]);
      ev.push_back(0.99 * v[i] + 0.01 * g[i] * g[i]);
      ep.push_back(p[i] - 0.05 * em.back() / (std::sqrt(ev.back()) + 1e-8));
    }
    library.run("adam", {p.data(), m.data(), v.data(), g.data(), p.data(), m.data(), v.data()},
                true);
    EXPECT_EQ(compare(p, ep, 1e-5), "");
    EXPECT_EQ(compare(m, em, 1e-5), "");
    EXPECT_EQ(compare(v, ev, 1e-5), "");
  }
}

} // namespace
