//===- KernelWindowTest.cpp - Contractions, convolutions, poolings --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTesting.h"

#include <gtest/gtest.h>

using namespace tessera::codegen::testing;

namespace {

class Window : public ::testing::TestWithParam<bool> {
protected:
  tessera::codegen::CpuOptions options() const { return GetParam() ? best() : plain(); }
};
INSTANTIATE_TEST_SUITE_P(Schemes, Window, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Vectorised" : "Plain"; });

TEST_P(Window, BatchedContractions) {
  for (auto [b, m, n, k] : std::vector<std::array<int, 4>>{
           {1, 1, 1, 1}, {2, 3, 5, 7}, {3, 8, 16, 4}, {2, 13, 37, 29}, {1, 6, 3, 64}})
    for (int kind = 0; kind < 4; ++kind) {
      bool ta = kind & 1, tb = kind & 2;
      Library library(substitute(R"(
func.func @mm(%a: tensor<{sa}xf32>, %b: tensor<{sb}xf32>, %c: tensor<{b}x{m}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32> attributes {kernel.reads = 2 : i64} {
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> ({ma})>, affine_map<(b, m, n, k) -> ({mb})>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<{sa}xf32>, tensor<{sb}xf32>) outs(%c : tensor<{b}x{m}x{n}xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  } -> tensor<{b}x{m}x{n}xf32>
  return %r : tensor<{b}x{m}x{n}xf32>
})",
                                 {{"sa", ta ? "{b}x{k}x{m}" : "{b}x{m}x{k}"},
                                  {"sb", tb ? "{b}x{n}x{k}" : "{b}x{k}x{n}"},
                                  {"ma", ta ? "b, k, m" : "b, m, k"},
                                  {"mb", tb ? "b, n, k" : "b, k, n"},
                                  {"b", std::to_string(b)},
                                  {"m", std::to_string(m)},
                                  {"n", std::to_string(n)},
                                  {"k", std::to_string(k)}}),
                      options());
      ASSERT_TRUE(library.valid()) << library.error();
      auto x = randomBuffer<float>(b * m * k, 1), y = randomBuffer<float>(b * k * n, 2);
      Buffer<float> z(b * m * n, 0.5f);
      std::vector<double> expected(b * m * n, 0.5);
      for (int i = 0; i < b; ++i)
        for (int r = 0; r < m; ++r)
          for (int c = 0; c < n; ++c)
            for (int t = 0; t < k; ++t)
              expected[(i * m + r) * n + c] += double(x[i * m * k + (ta ? t * m + r : r * k + t)]) *
                                               y[i * k * n + (tb ? c * k + t : t * n + c)];
      library.run("mm", {x.data(), y.data(), z.data()}, true);
      EXPECT_EQ(compare(z, expected, 1e-5), "")
          << b << " " << m << " " << n << " " << k << " " << kind;
      if (GetParam())
        EXPECT_EQ(library.info("mm").reason, "");
    }
}

/// A convolution with bias and relu behind it, and its strides and dilations.
TEST_P(Window, Convolutions) {
  struct Case {
    int n, h, w, c, f, kh, kw, stride, dilation;
  };
  for (const Case &s : std::vector<Case>{{1, 5, 5, 1, 3, 3, 3, 1, 1},
                                         {2, 8, 9, 3, 16, 3, 3, 1, 1},
                                         {1, 11, 11, 4, 20, 3, 2, 2, 1},
                                         {1, 12, 12, 5, 7, 3, 3, 1, 2}})
    for (bool nchw : {false, true}) {
      int oh = (s.h - (s.kh - 1) * s.dilation - 1) / s.stride + 1;
      int ow = (s.w - (s.kw - 1) * s.dilation - 1) / s.stride + 1;
      auto type = [](std::vector<int> dims) {
        std::string text;
        for (int dim : dims)
          text += std::to_string(dim) + "x";
        return text + "f32";
      };
      Library library(
          substitute(R"(
func.func @conv(%x: tensor<{x}>, %w: tensor<{w}>, %b: tensor<{f}xf32>, %o: tensor<{o}>) -> tensor<{o}> attributes {kernel.reads = 3 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{o}>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{o}>) -> tensor<{o}>
  %c = linalg.{op} {dilations = dense<{d}> : tensor<2xi64>, strides = dense<{s}> : tensor<2xi64>}
    ins(%x, %w : tensor<{x}>, tensor<{w}>) outs(%z : tensor<{o}>) -> tensor<{o}>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> ({at})>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%c, %b : tensor<{o}>, tensor<{f}xf32>) outs(%o : tensor<{o}>) {
  ^bb0(%p: f32, %q: f32, %t: f32):
    %u = arith.addf %p, %q : f32
    %v = arith.maximumf %u, %zero : f32
    linalg.yield %v : f32
  } -> tensor<{o}>
  return %r : tensor<{o}>
})",
                     {{"x", nchw ? type({s.n, s.c, s.h, s.w}) : type({s.n, s.h, s.w, s.c})},
                      {"w", nchw ? type({s.f, s.c, s.kh, s.kw}) : type({s.kh, s.kw, s.c, s.f})},
                      {"o", nchw ? type({s.n, s.f, oh, ow}) : type({s.n, oh, ow, s.f})},
                      {"f", std::to_string(s.f)},
                      {"d", std::to_string(s.dilation)},
                      {"s", std::to_string(s.stride)},
                      {"at", nchw ? "b" : "d"},
                      {"op", nchw ? "conv_2d_nchw_fchw" : "conv_2d_nhwc_hwcf"}}),
          options());
      ASSERT_TRUE(library.valid()) << library.error();
      auto x = randomBuffer<float>(s.n * s.h * s.w * s.c, 1),
           w = randomBuffer<float>(s.kh * s.kw * s.c * s.f, 2), bias = randomBuffer<float>(s.f, 3);
      Buffer<float> o(s.n * oh * ow * s.f);
      std::vector<double> expected(o.size());
      for (int n = 0; n < s.n; ++n)
        for (int i = 0; i < oh; ++i)
          for (int j = 0; j < ow; ++j)
            for (int f = 0; f < s.f; ++f) {
              double sum = bias[f];
              for (int a = 0; a < s.kh; ++a)
                for (int b = 0; b < s.kw; ++b)
                  for (int c = 0; c < s.c; ++c) {
                    int y = i * s.stride + a * s.dilation, z = j * s.stride + b * s.dilation;
                    sum += double(nchw ? x[((n * s.c + c) * s.h + y) * s.w + z]
                                       : x[((n * s.h + y) * s.w + z) * s.c + c]) *
                           (nchw ? w[((f * s.c + c) * s.kh + a) * s.kw + b]
                                 : w[((a * s.kw + b) * s.c + c) * s.f + f]);
                  }
              expected[nchw ? ((n * s.f + f) * oh + i) * ow + j
                            : ((n * oh + i) * ow + j) * s.f + f] = std::max(sum, 0.0);
            }
      library.run("conv", {x.data(), w.data(), bias.data(), o.data()}, true);
      EXPECT_EQ(compare(o, expected, 1e-5), "") << nchw << " " << s.f;
      if (GetParam())
        EXPECT_EQ(library.info("conv").reason, "");
    }
}

TEST_P(Window, PoolingAndDepthwise) {
  Library library(R"(
func.func @nhwc(%x: tensor<2x9x9x19xf32>, %o: tensor<2x4x4x19xf32>) -> tensor<2x4x4x19xf32> attributes {kernel.reads = 1 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%low : f32) outs(%o : tensor<2x4x4x19xf32>) -> tensor<2x4x4x19xf32>
  %r = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<2x9x9x19xf32>, tensor<2x2xf32>) outs(%f : tensor<2x4x4x19xf32>) -> tensor<2x4x4x19xf32>
  return %r : tensor<2x4x4x19xf32>
}
func.func @nchw(%x: tensor<2x3x9x41xf32>, %o: tensor<2x3x4x20xf32>) -> tensor<2x3x4x20xf32> attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %w = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<2x3x4x20xf32>) -> tensor<2x3x4x20xf32>
  %r = linalg.pooling_nchw_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<2x3x9x41xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3x4x20xf32>) -> tensor<2x3x4x20xf32>
  return %r : tensor<2x3x4x20xf32>
}
func.func @depthwise(%x: tensor<1x6x6x21xf32>, %w: tensor<3x3x21xf32>, %o: tensor<1x4x4x21xf32>) -> tensor<1x4x4x21xf32> attributes {kernel.reads = 2 : i64} {
  %r = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x6x6x21xf32>, tensor<3x3x21xf32>) outs(%o : tensor<1x4x4x21xf32>) -> tensor<1x4x4x21xf32>
  return %r : tensor<1x4x4x21xf32>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  {
    auto x = randomBuffer<float>(2 * 81 * 19, 1);
    Buffer<float> o(2 * 16 * 19);
    std::vector<double> expected(o.size());
    for (size_t i = 0; i < o.size(); ++i) {
      int c = i % 19, w = i / 19 % 4, h = i / 76 % 4, n = i / 304;
      double best = -INFINITY;
      for (int a = 0; a < 4; ++a)
        best = std::max<double>(best, x[((n * 9 + 2 * h + a / 2) * 9 + 2 * w + a % 2) * 19 + c]);
      expected[i] = best;
    }
    library.run("nhwc", {x.data(), o.data()}, true);
    EXPECT_EQ(compare(o, expected, 0), "");
  }
  {
    auto x = randomBuffer<float>(6 * 9 * 41, 1);
    Buffer<float> o(6 * 4 * 20);
    std::vector<double> expected(o.size());
    for (size_t i = 0; i < o.size(); ++i) {
      int w = i % 20, h = i / 20 % 4, c = i / 80;
      for (int a = 0; a < 4; ++a)
        expected[i] += x[(c * 9 + 2 * h + a / 2) * 41 + 2 * w + a % 2];
    }
    library.run("nchw", {x.data(), o.data()}, true);
    EXPECT_EQ(compare(o, expected, 1e-5), "");
  }
  {
    auto x = randomBuffer<float>(36 * 21, 1), w = randomBuffer<float>(9 * 21, 2);
    Buffer<float> o(16 * 21, 1.f);
    std::vector<double> expected(o.size(), 1.0);
    for (size_t i = 0; i < o.size(); ++i) {
      int c = i % 21, z = i / 21 % 4, y = i / 84;
      for (int a = 0; a < 9; ++a)
        expected[i] += double(x[((y + a / 3) * 6 + z + a % 3) * 21 + c]) * w[a * 21 + c];
    }
    library.run("depthwise", {x.data(), w.data(), o.data()}, true);
    EXPECT_EQ(compare(o, expected, 1e-5), "");
  }
  if (GetParam())
    for (const char *name : {"nhwc", "nchw", "depthwise"})
      EXPECT_EQ(library.info(name).reason, "");
}

} // namespace
