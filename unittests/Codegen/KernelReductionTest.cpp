//===- KernelReductionTest.cpp - Kernels that reduce ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTesting.h"

#include <gtest/gtest.h>

using namespace tessera::codegen::testing;

namespace {

class Reduction : public ::testing::TestWithParam<bool> {
protected:
  tessera::codegen::CpuOptions options() const { return GetParam() ? best() : plain(); }
};
INSTANTIATE_TEST_SUITE_P(Schemes, Reduction, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Vectorised" : "Plain"; });

TEST_P(Reduction, Softmax) {
  for (auto [m, n] :
       std::vector<std::pair<int, int>>{{1, 1}, {3, 7}, {5, 10}, {4, 16}, {7, 37}, {2, 1000}})
    for (int dim : {0, 1}) {
      Library library(
          substitute(
              R"(
func.func @softmax(%x: tensor<{m}x{n}xf32>, %o: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> attributes {kernel.reads = 1 : i64} {
  %e = tensor.empty() : tensor<{m}x{n}xf32>
  %r = linalg.softmax dimension({d}) ins(%x : tensor<{m}x{n}xf32>) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %r : tensor<{m}x{n}xf32>
})",
              {{"m", std::to_string(m)}, {"n", std::to_string(n)}, {"d", std::to_string(dim)}}),
          options());
      ASSERT_TRUE(library.valid()) << library.error();
      auto x = randomBuffer<float>(m * n, 1);
      Buffer<float> o(m * n);
      std::vector<double> expected(m * n);
      int outer = dim ? m : n, inner = dim ? n : m;
      auto at = [&, n = n](int i, int j) { return dim ? i * n + j : j * n + i; };
      for (int i = 0; i < outer; ++i) {
        double sum = 0;
        for (int j = 0; j < inner; ++j)
          sum += std::exp(x[at(i, j)]);
        for (int j = 0; j < inner; ++j)
          expected[at(i, j)] = std::exp(x[at(i, j)]) / sum;
      }
      library.run("softmax", {x.data(), o.data()}, true);
      EXPECT_EQ(compare(o, expected, 1e-5), "") << m << "x" << n << " over " << dim;
    }
}

TEST_P(Reduction, LayerNorm) {
  for (auto [m, n] :
       std::vector<std::pair<int, int>>{{1, 2}, {3, 7}, {4, 64}, {5, 131}, {300, 40}}) {
    Library library(substitute(kLayerNorm, {{"m", std::to_string(m)}, {"n", std::to_string(n)}}),
                    options());
    ASSERT_TRUE(library.valid()) << library.error();
    auto x = randomBuffer<float>(m * n, 1), g = randomBuffer<float>(n, 2),
         b = randomBuffer<float>(n, 3);
    Buffer<float> o(m * n);
    std::vector<double> expected(m * n);
    for (int i = 0; i < m; ++i) {
      double mean = 0, var = 0;
      for (int j = 0; j < n; ++j)
        mean += x[i * n + j] / n;
      for (int j = 0; j < n; ++j)
        var += (x[i * n + j] - mean) * (x[i * n + j] - mean) / n;
      for (int j = 0; j < n; ++j)
        expected[i * n + j] = (x[i * n + j] - mean) / std::sqrt(var + 1e-5) * g[j] + b[j];
    }
    library.run("layernorm", {x.data(), g.data(), b.data(), o.data()}, true);
    EXPECT_EQ(compare(o, expected, 2e-5), "") << m << "x" << n;
    if (GetParam())
      EXPECT_EQ(library.info("layernorm").reason, "");
  }
}

/// Mean over rows of log(sum(exp(x))) - x[label], one kernel.
const char *kCrossEntropy = R"(
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#v = affine_map<(i) -> (i)>
#s = affine_map<(i) -> ()>
func.func @loss(%x: tensor<{m}x{n}xf32>, %y: tensor<{m}xi64>, %o: tensor<f32>) -> tensor<f32> attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %count = arith.constant {m}.0 : f32
  %e = tensor.empty() : tensor<{m}xf32>
  %fm = linalg.fill ins(%low : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<{m}x{n}xf32>) outs(%fm : tensor<{m}xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.maximumf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x, %max : tensor<{m}x{n}xf32>, tensor<{m}xf32>) outs(%fz : tensor<{m}xf32>) {
  ^bb0(%a: f32, %m: f32, %c: f32):
    %d = arith.subf %a, %m : f32
    %p = math.exp %d : f32
    %s = arith.addf %p, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %fp = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %picked = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x, %y : tensor<{m}x{n}xf32>, tensor<{m}xi64>) outs(%fp : tensor<{m}xf32>) {
  ^bb0(%a: f32, %l: i64, %c: f32):
    %j = linalg.index 1 : index
    %ji = arith.index_cast %j : index to i64
    %eq = arith.cmpi eq, %ji, %l : i64
    %t = arith.select %eq, %a, %zero : f32
    %s = arith.addf %t, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#v, #v, #v, #s], iterator_types = ["reduction"]}
    ins(%sum, %max, %picked : tensor<{m}xf32>, tensor<{m}xf32>, tensor<{m}xf32>) outs(%fo : tensor<f32>) {
  ^bb0(%s: f32, %m: f32, %p: f32, %c: f32):
    %l = math.log %s : f32
    %lm = arith.addf %l, %m : f32
    %d = arith.subf %lm, %p : f32
    %q = arith.divf %d, %count : f32
    %t = arith.addf %q, %c : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
})";

TEST_P(Reduction, CrossEntropy) {
  for (auto [m, n] : std::vector<std::pair<int, int>>{{1, 2}, {5, 10}, {64, 10}, {33, 129}}) {
    Library library(substitute(kCrossEntropy, {{"m", std::to_string(m)}, {"n", std::to_string(n)}}),
                    options());
    ASSERT_TRUE(library.valid()) << library.error();
    auto x = randomBuffer<float>(m * n, 1);
    auto y = randomIntegers<int64_t>(m, 0, n, 2);
    Buffer<float> o(1);
    double loss = 0;
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int j = 0; j < n; ++j)
        sum += std::exp(x[i * n + j]);
      loss += (std::log(sum) - x[i * n + y[i]]) / m;
    }
    library.run("loss", {x.data(), y.data(), o.data()}, true);
    EXPECT_EQ(compare(o, {loss}, 1e-5), "") << m << "x" << n;
    if (GetParam())
      EXPECT_EQ(library.info("loss").reason, "");
  }
}

/// Every subset of the dimensions of a rank-3 tensor, onto a non-zero accumulator.
TEST_P(Reduction, EverySubsetOfDimensions) {
  for (auto shape : std::vector<std::vector<int>>{{3, 5, 7}, {2, 17, 33}, {9, 4, 70}})
    for (int mask = 1; mask < 8; ++mask)
      for (const char *op : {"arith.addf", "arith.maximumf", "arith.mulf"}) {
        std::string kept, type, kinds;
        int outSize = 1;
        for (int d = 0; d < 3; ++d) {
          bool reduce = mask >> d & 1;
          kinds += std::string(d ? ", " : "") + (reduce ? "\"reduction\"" : "\"parallel\"");
          if (reduce)
            continue;
          kept += (kept.empty() ? "d" : ", d") + std::to_string(d);
          type += std::to_string(shape[d]) + "x";
          outSize *= shape[d];
        }
        std::string in = std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "x" +
                         std::to_string(shape[2]) + "x";
        Library library(
            substitute(R"(
func.func @r(%x: tensor<{in}f32>, %o: tensor<{out}f32>) -> tensor<{out}f32> attributes {kernel.reads = 1 : i64} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> ({kept})>], iterator_types = [{kinds}]}
    ins(%x : tensor<{in}f32>) outs(%o : tensor<{out}f32>) {
  ^bb0(%a: f32, %c: f32):
    %s = {op} %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<{out}f32>
  return %r : tensor<{out}f32>
})",
                       {{"in", in}, {"out", type}, {"kept", kept}, {"kinds", kinds}, {"op", op}}),
            options());
        ASSERT_TRUE(library.valid()) << library.error();
        auto x = randomBuffer<float>(shape[0] * shape[1] * shape[2], 1);
        if (!strcmp(op, "arith.mulf"))
          for (float &value : x)
            value = 1 + value / 64;
        Buffer<float> o(outSize, 0.25f);
        std::vector<double> expected(outSize, 0.25);
        for (int i = 0; i < shape[0]; ++i)
          for (int j = 0; j < shape[1]; ++j)
            for (int k = 0; k < shape[2]; ++k) {
              int at[3] = {i, j, k}, index = 0;
              for (int d = 0; d < 3; ++d)
                if (!(mask >> d & 1))
                  index = index * shape[d] + at[d];
              double v = x[(i * shape[1] + j) * shape[2] + k];
              double &e = expected[index];
              e = !strcmp(op, "arith.addf")   ? e + v
                  : !strcmp(op, "arith.mulf") ? e * v
                                              : std::max(e, v);
            }
        library.run("r", {x.data(), o.data()}, true);
        EXPECT_EQ(compare(o, expected, 2e-5), "") << in << " mask " << mask << " " << op;
        if (GetParam())
          EXPECT_EQ(library.info("r").reason, "") << in << " mask " << mask;
      }
}

TEST_P(Reduction, OtherTypes) {
  const char *text = R"(
func.func @r(%x: tensor<6x{n}x{t}>, %o: tensor<6x{t}>) -> tensor<6x{t}> attributes {kernel.reads = 1 : i64} {
  %r = linalg.reduce { {op} } ins(%x : tensor<6x{n}x{t}>) outs(%o : tensor<6x{t}>) dimensions = [1]
  return %r : tensor<6x{t}>
})";
  for (int n : {1, 9, 100}) {
    std::string size = std::to_string(n);
    {
      Library library(substitute(text, {{"n", size}, {"t", "f64"}, {"op", "arith.addf"}}),
                      options());
      ASSERT_TRUE(library.valid()) << library.error();
      auto x = randomBuffer<double>(6 * n, 1);
      Buffer<double> o(6, 1.0);
      std::vector<double> expected(6, 1.0);
      for (int i = 0; i < 6 * n; ++i)
        expected[i / n] += x[i];
      library.run("r", {x.data(), o.data()});
      EXPECT_EQ(compare(o, expected, 1e-12), "");
    }
    for (const char *op : {"arith.addi", "arith.maxsi", "arith.minsi", "arith.xori", "arith.ori"}) {
      Library library(substitute(text, {{"n", size}, {"t", "i32"}, {"op", op}}), options());
      ASSERT_TRUE(library.valid()) << library.error();
      auto x = randomIntegers<int32_t>(6 * n, -50, 50, 1);
      Buffer<int32_t> o(6, 3);
      std::vector<double> expected(6, 3);
      for (int i = 0; i < 6 * n; ++i) {
        int e = int(expected[i / n]), v = x[i];
        expected[i / n] = op == std::string("arith.addi")    ? e + v
                          : op == std::string("arith.maxsi") ? std::max(e, v)
                          : op == std::string("arith.minsi") ? std::min(e, v)
                          : op == std::string("arith.xori")  ? e ^ v
                                                             : e | v;
      }
      library.run("r", {x.data(), o.data()});
      EXPECT_EQ(compare(o, expected, 0), "") << op << " " << n;
    }
    {
      Library library(substitute(text, {{"n", size}, {"t", "bf16"}, {"op", "arith.maximumf"}}),
                      options());
      ASSERT_TRUE(library.valid()) << library.error();
      auto source = randomBuffer<float>(6 * n, 1);
      Buffer<uint16_t> x(6 * n), o(6, toBF16(-2));
      std::vector<double> expected(6, -2);
      for (int i = 0; i < 6 * n; ++i) {
        x[i] = toBF16(source[i]);
        expected[i / n] = std::max<double>(expected[i / n], fromBF16(x[i]));
      }
      library.run("r", {x.data(), o.data()});
      EXPECT_EQ(compare<uint16_t>(o, expected, 0, [](uint16_t v) { return double(fromBF16(v)); }),
                "");
    }
  }
}

/// Two results reduced together by a body that is not a simple combiner: the index of the first
/// maximum.
TEST_P(Reduction, ArgMax) {
  Library library(R"(
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @argmax(%x: tensor<4x23xf32>, %v: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>)
    attributes {kernel.reads = 1 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant -1 : i64
  %fv = linalg.fill ins(%low : f32) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  %fi = linalg.fill ins(%none : i64) outs(%i : tensor<4xi64>) -> tensor<4xi64>
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x23xf32>) outs(%fv, %fi : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64):
    %j = linalg.index 1 : index
    %ji = arith.index_cast %j : index to i64
    %p = arith.cmpf ogt, %a, %b : f32
    %m = arith.select %p, %a, %b : f32
    %k = arith.select %p, %ji, %c : i64
    linalg.yield %m, %k : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi64>
})",
                  options());
  ASSERT_TRUE(library.valid()) << library.error();
  auto x = randomBuffer<float>(92, 1);
  x[23 + 4] = x[23 + 9] = 5; // a tie
  Buffer<float> v(4);
  Buffer<int64_t> at(4);
  library.run("argmax", {x.data(), v.data(), at.data()});
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(at[i],
              std::max_element(x.data() + i * 23, x.data() + i * 23 + 23) - (x.data() + i * 23));
}

/// Results of several kinds over the same rows: a row-wise map and two column sums.
TEST_P(Reduction, RowsAndColumnsTogether) {
  for (auto [m, n] : std::vector<std::pair<int, int>>{{3, 5}, {40, 64}, {21, 75}}) {
    Library library(substitute(R"(
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
func.func @backward(%dy: tensor<{m}x{n}xf32>, %x: tensor<{m}x{n}xf32>, %dx: tensor<{m}x{n}xf32>, %dg: tensor<{n}xf32>, %db: tensor<{n}xf32>)
    -> (tensor<{m}x{n}xf32>, tensor<{n}xf32>, tensor<{n}xf32>) attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{m}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %dot = linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%dy, %x : tensor<{m}x{n}xf32>, tensor<{m}x{n}xf32>) outs(%f : tensor<{m}xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %fg = linalg.fill ins(%zero : f32) outs(%dg : tensor<{n}xf32>) -> tensor<{n}xf32>
  %g = linalg.generic {indexing_maps = [#all, #all, #col], iterator_types = ["reduction", "parallel"]}
    ins(%dy, %x : tensor<{m}x{n}xf32>, tensor<{m}x{n}xf32>) outs(%fg : tensor<{n}xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %c : f32
    linalg.yield %s : f32
  } -> tensor<{n}xf32>
  %fb = linalg.fill ins(%zero : f32) outs(%db : tensor<{n}xf32>) -> tensor<{n}xf32>
  %b = linalg.generic {indexing_maps = [#all, #col], iterator_types = ["reduction", "parallel"]}
    ins(%dy : tensor<{m}x{n}xf32>) outs(%fb : tensor<{n}xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<{n}xf32>
  %r = linalg.generic {indexing_maps = [#all, #all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%dy, %x, %dot : tensor<{m}x{n}xf32>, tensor<{m}x{n}xf32>, tensor<{m}xf32>) outs(%dx : tensor<{m}x{n}xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32, %o: f32):
    %p = arith.mulf %c, %d : f32
    %s = arith.subf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<{m}x{n}xf32>
  return %r, %g, %b : tensor<{m}x{n}xf32>, tensor<{n}xf32>, tensor<{n}xf32>
})",
                               {{"m", std::to_string(m)}, {"n", std::to_string(n)}}),
                    options());
    ASSERT_TRUE(library.valid()) << library.error();
    auto dy = randomBuffer<float>(m * n, 1), x = randomBuffer<float>(m * n, 2);
    Buffer<float> dx(m * n), dg(n), db(n);
    std::vector<double> edx(m * n), edg(n), edb(n);
    for (int i = 0; i < m; ++i) {
      double dot = 0;
      for (int j = 0; j < n; ++j) {
        dot += double(dy[i * n + j]) * x[i * n + j];
        edg[j] += double(dy[i * n + j]) * x[i * n + j];
        edb[j] += dy[i * n + j];
      }
      for (int j = 0; j < n; ++j)
        edx[i * n + j] = dy[i * n + j] - x[i * n + j] * dot;
    }
    library.run("backward", {dy.data(), x.data(), dx.data(), dg.data(), db.data()}, true);
    EXPECT_EQ(compare(dx, edx, 1e-5), "");
    EXPECT_EQ(compare(dg, edg, 1e-5), "");
    EXPECT_EQ(compare(db, edb, 1e-5), "");
  }
}

} // namespace
