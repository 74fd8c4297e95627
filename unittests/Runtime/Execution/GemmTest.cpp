//===- GemmTest.cpp - Matrix products against three loops -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "Gpu/Cuda/CudaDriver.h"
#include "Gpu/Cuda/GemmKernel.cu"
#include "PackedWhole.h"
#include "tessera/Runtime/Execution/Gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <random>

using namespace tessera::runtime;

namespace {

/// The result of an epilogue for a value, in double.
double finished(Epilogue epilogue, double x) {
  if (epilogue == Epilogue::relu)
    return std::max(x, 0.0);
  if (epilogue == Epilogue::gelu)
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return x;
}

/// The GPU kernel, executed by a few threads sequentially.
void multiplyAsGpu(const GemmStep &step, const void *a, const void *b, void *c, const void *bias) {
  constexpr long long kThreads = 37;
  gpu::GemmArguments arguments = gpu::describeGemm(step, a, b, c, bias);
  for (long long thread = 0; thread < kThreads; ++thread)
    multiplyAll(arguments, thread, kThreads);
}

/// Buffers of a problem with small random values, and the expected C.
struct Trial {
  GemmStep step;
  Bytes a, b, c, bias;

  Trial(const GemmStep &given, std::mt19937 &random) : step(given) {
    DType result = step.resultDType.value_or(step.dtype);
    int64_t rowsA = step.transA ? step.k : step.m, rowsB = step.transB ? step.n : step.k;
    auto make = [&](DType dtype, int64_t rows, int64_t leading, int64_t stride) {
      int64_t count = (step.batch - 1) * stride + rows * leading;
      Bytes bytes(static_cast<size_t>(count * sizeOf(dtype)));
      for (int64_t i = 0; i < count; ++i)
        writeElement(dtype, static_cast<double>(random() % 9) - (dtype == DType::i1 ? 4 : 4.25),
                     bytes.data() + i * sizeOf(dtype));
      return bytes;
    };
    a = make(step.dtype, rowsA, step.lda, step.strideA);
    b = make(step.dtype, rowsB, step.ldb, step.strideB);
    c = make(result, step.m, step.ldc, step.strideC);
    if (step.bias)
      bias = make(result, 1, step.n, 0);
  }

  /// By the host, and by the GPU kernel for products without a library.
  void check() {
    const Bytes before = c;
    const void *added = step.bias ? bias.data() : nullptr;
    multiply(step, a.data(), b.data(), c.data(), added, {0, step.batch, 0, step.m, 0, step.n});
    compare(before);
    if (step.k == 0 && step.accumulate)
      return; // no launch
    c = before;
    multiplyAsGpu(step, a.data(), b.data(), c.data(), added);
    compare(before);
  }

  void compare(const Bytes &before) {
    DType result = step.resultDType.value_or(step.dtype);
    double tolerance = step.dtype == DType::f64 ? 1e-12 : isHalf(result) ? 1e-2 : 1e-5;
    for (int64_t batch = 0; batch < step.batch; ++batch)
      for (int64_t i = 0; i < step.m; ++i)
        for (int64_t j = 0; j < step.ldc; ++j) {
          int64_t at = batch * step.strideC + i * step.ldc + j;
          double old = readElement(result, before.data() + at * sizeOf(result));
          double now = readElement(result, c.data() + at * sizeOf(result));
          if (j >= step.n) {
            ASSERT_EQ(now, old) << "between rows nothing is written";
            continue;
          }
          double sum = step.accumulate ? old : 0, size = std::abs(sum);
          for (int64_t l = 0; l < step.k; ++l) {
            int64_t ia = batch * step.strideA + (step.transA ? l * step.lda + i : i * step.lda + l);
            int64_t ib = batch * step.strideB + (step.transB ? j * step.ldb + l : l * step.ldb + j);
            double term = readElement(step.dtype, a.data() + ia * sizeOf(step.dtype)) *
                          readElement(step.dtype, b.data() + ib * sizeOf(step.dtype));
            sum += term;
            size += std::abs(term);
          }
          if (step.bias)
            sum += readElement(result, bias.data() + j * sizeOf(result));
          sum = finished(step.epilogue, sum);
          if (step.dtype == DType::i1)
            sum = sum != 0;
          if (step.dtype == DType::i8)
            sum = static_cast<int8_t>(static_cast<int64_t>(sum));
          if (isFloat(step.dtype))
            ASSERT_NEAR(now, sum, tolerance * std::max(size, 1.0)) << toString(step.dtype);
          else
            ASSERT_EQ(now, sum) << toString(step.dtype);
        }
  }
};

GemmStep makeStep(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, bool transA,
                  bool transB, bool accumulate, int64_t pad) {
  GemmStep step;
  step.dtype = dtype;
  step.batch = batch, step.m = m, step.n = n, step.k = k;
  step.transA = transA, step.transB = transB, step.accumulate = accumulate;
  step.lda = (transA ? m : k) + pad, step.ldb = (transB ? k : n) + pad, step.ldc = n + pad;
  step.strideA = step.lda * (transA ? k : m) + pad;
  step.strideB = step.ldb * (transB ? n : k);
  step.strideC = step.ldc * m + pad;
  return step;
}

} // namespace

TEST(Gemm, EveryTypeEqualsThreeLoops) {
  std::mt19937 random(3);
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                      DType::i16, DType::i8, DType::i1, DType::index})
    for (int flags = 0; flags < 8; ++flags)
      for (auto [m, n, k] : {std::array{1, 1, 1}, {3, 5, 7}, {17, 9, 33}, {4, 4, 0}, {0, 3, 2}}) {
        Trial(makeStep(dtype, 2, m, n, k, flags & 1, flags & 2, flags & 4, flags ? 3 : 0), random)
            .check();
        if (HasFatalFailure())
          return;
      }
}

TEST(Gemm, RepeatedOperandAndWideResults) {
  std::mt19937 random(4);
  GemmStep shared = makeStep(DType::f32, 5, 6, 7, 8, false, true, false, 0);
  shared.strideB = 0;
  Trial(shared, random).check();
  for (DType dtype : {DType::f16, DType::bf16}) {
    GemmStep wide = makeStep(dtype, 2, 6, 7, 20, true, false, true, 1);
    wide.resultDType = DType::f32;
    Trial(wide, random).check();
  }
}

TEST(Gemm, BiasAndEpilogues) {
  std::mt19937 random(6);
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (Epilogue epilogue : {Epilogue::none, Epilogue::relu, Epilogue::gelu})
      for (int flags = 0; flags < 8; ++flags) {
        GemmStep step = makeStep(dtype, 2, 7, 9, 5, false, flags & 4, flags & 1, flags & 1);
        step.epilogue = epilogue;
        if (flags & 2)
          step.bias = 0;
        if ((flags & 4) && isHalf(dtype))
          step.resultDType = DType::f32;
        Trial(step, random).check();
        if (HasFatalFailure())
          return;
      }
}

TEST(Gemm, ReluKeepsNaN) {
  GemmStep step = makeStep(DType::f32, 1, 1, 2, 1, false, false, false, 0);
  step.epilogue = Epilogue::relu;
  const float a[] = {1}, b[] = {NAN, -2};
  float c[2], d[2];
  multiply(step, a, b, c, nullptr, {0, 1, 0, 1, 0, step.n});
  multiplyAsGpu(step, a, b, d, nullptr);
  for (const float *each : {c, d}) {
    EXPECT_TRUE(std::isnan(each[0]));
    EXPECT_EQ(each[1], 0);
  }
}

TEST(Gemm, TheCallersOpenMPThreadsStay) {
  const GemmProvider *provider = gemmProvider("onednn");
  auto set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  auto get = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  if (!provider || !set || !get)
    GTEST_SKIP() << "no oneDNN with OpenMP";
  GemmProblem p;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldc = 4;
  std::vector<float> a(16, 1), b(16, 2), c(16);
  for (int threads : {3, 1, 2}) {
    set(threads);
    provider->run(p, a.data(), b.data(), c.data());
    EXPECT_EQ(get(), threads);
    EXPECT_EQ(c[5], 8);
  }
}

TEST(Gemm, BitsDoNotDependOnTheWorkers) {
  std::mt19937 random(11);
  for (DType dtype : {DType::f32, DType::bf16})
    for (int flags = 0; flags < 4; ++flags) {
      // The last rows of a piece are fewer than those for which a provider is chosen.
      GemmStep step = makeStep(dtype, 1, 262, 530, 300, false, flags & 1, flags & 2, 0);
      auto make = [&](int64_t count) {
        Bytes bytes(static_cast<size_t>(count * sizeOf(dtype)));
        for (int64_t i = 0; i < count; ++i)
          writeElement(dtype, static_cast<double>(random() % 1000) / 500 - 1,
                       bytes.data() + i * sizeOf(dtype));
        return bytes;
      };
      const Bytes a = make(step.m * step.k), b = make(step.k * step.n),
                  before = make(step.m * step.n);
      std::vector<Bytes> found;
      for (int64_t workers : {1, 2, 3, 64}) {
        Bytes &c = found.emplace_back(before);
        GemmCut cut = cutGemm(step, RightOperand::plain, workers);
        for (int64_t piece = 0; piece < cut.size(); ++piece)
          multiply(step, a.data(), b.data(), c.data(), nullptr, cut.piece(step, piece));
        EXPECT_EQ(c, found.front()) << workers << " workers, " << flags;
      }
    }
}

TEST(Gemm, ProvidersAgree) {
  std::mt19937 random(5);
  std::vector<const GemmProvider *> providers;
  for (const char *name : {"packed", "onednn", "openblas", "generated"})
    if (const GemmProvider *provider = gemmProvider(name))
      providers.push_back(provider);
  EXPECT_EQ(gemmProvider("mkl"), nullptr);
  const GemmProvider *direct = gemmProvider("direct"); // of a transposed B alone
  for (int flags = 0; flags < 8; ++flags) {
    std::vector<const GemmProvider *> all = providers;
    if (direct && (flags & 3) == 2)
      all.push_back(direct);
    for (const GemmProvider *provider : all) {
      GemmProblem p{DType::f32, DType::f32,     13, 21, 34, bool(flags & 1), bool(flags & 2), 0, 0,
                    25,         bool(flags & 4)};
      p.lda = (p.transA ? p.m : p.k) + 1, p.ldb = (p.transB ? p.k : p.n) + 2;
      std::vector<float> a(2000), b(2000), c(2000), d(2000);
      for (auto *list : {&a, &b, &c})
        for (float &value : *list)
          value = static_cast<float>(random() % 100) / 50 - 1;
      d = c;
      ASSERT_TRUE(provider->supports(p));
      provider->run(p, a.data(), b.data(), c.data());
      gemmProvider("generated")->run(p, a.data(), b.data(), d.data());
      for (size_t i = 0; i < c.size(); ++i)
        ASSERT_NEAR(c[i], d[i], 1e-4) << provider->name();
    }
  }
}

TEST(Gemm, TilesOfAllInstructionSets) {
  std::mt19937 random(7);
  for (const GemmKernels *set : allGemmKernels())
    for (int64_t m : {1, 7, 13, 107})
      for (int64_t n : {1, 16, 37, 300})
        for (int64_t k : {1, 17, 401})
          for (int flags = 0; flags < 8; ++flags) {
            GemmProblem p{DType::f32,      DType::f32,      m, n, k,
                          bool(flags & 1), bool(flags & 2), 0, 0, n + 3,
                          bool(flags & 4)};
            p.lda = (p.transA ? p.m : p.k) + 1, p.ldb = (p.transB ? p.k : p.n) + 2;
            std::vector<float> a((p.transA ? k : m) * p.lda), b((p.transB ? n : k) * p.ldb),
                c(m * p.ldc);
            for (auto *list : {&a, &b, &c})
              for (float &value : *list)
                value = static_cast<float>(random() % 100) / 50 - 1;
            const std::vector<float> before = c;
            std::vector<float> expected = c, cut = c;
            multiplyPacked(*set, p, a.data(), b.data(), c.data());
            gemmProvider("generated")->run(p, a.data(), b.data(), expected.data());
            for (size_t i = 0; i < c.size(); ++i)
              ASSERT_NEAR(c[i], expected[i], 1e-3) << set->name << ' ' << m << 'x' << n << 'x' << k;
            // The bits of an element do not depend on the other rows and columns of the product.
            for (int64_t row = 0; row < m; row += 5)
              for (int64_t column = 0; column < n; column += 33) {
                GemmProblem part = p;
                part.m = std::min<int64_t>(5, m - row), part.n = std::min<int64_t>(33, n - column);
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

TEST(Gemm, SplitProductsOnOneDevice) {
  // One device and four workers: the product is cut by batches, rows and columns.
  for (int64_t batch : {1, 3}) {
    ProgramBuilder b;
    int64_t m = b.mesh(makeMesh({1})), p = b.part(m);
    GemmStep step = makeStep(DType::f32, batch, 300, 200, 700, false, false, false, 0);
    step.a = b.slot(p, DType::f32, Shape{batch, 300, 700});
    step.b = b.slot(p, DType::f32, Shape{batch, 700, 200});
    step.c = b.slot(p, DType::f32, Shape{batch, 300, 200});
    b.add(p, step);
    auto executor = openProgram(b.program, 4);
    auto *x = reinterpret_cast<float *>(executor->slotData(p, 0, step.a));
    auto *y = reinterpret_cast<float *>(executor->slotData(p, 0, step.b));
    auto *z = reinterpret_cast<float *>(executor->slotData(p, 0, step.c));
    for (int64_t i = 0; i < batch * 300 * 700; ++i)
      x[i] = static_cast<float>(i % 7) - 3;
    for (int64_t i = 0; i < batch * 700 * 200; ++i)
      y[i] = static_cast<float>(i % 5) - 2;
    ASSERT_TRUE(executor->run().ok());
    std::vector<float> expected(batch * 300 * 200);
    multiply(step, x, y, expected.data(), nullptr, {0, batch, 0, 300, 0, 200});
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(z[i], expected[i]); // sums of small integers are exact
  }
}

TEST(Gemm, CutsCoverTheResultOnce) {
  for (auto [batch, m, n] : {std::array<int64_t, 3>{1, 1, 4096},
                             {1, 64, 1000},
                             {1, 1000, 64},
                             {3, 100, 130},
                             {1, 513, 4097},
                             {5, 1, 1}})
    for (int64_t most : {1, 2, 5, 8, 64}) {
      GemmStep step = makeStep(DType::f32, batch, m, n, 1, false, false, false, 0);
      GemmCut cut = cutGemm(step, most);
      ASSERT_LE(cut.size(), most);
      std::vector<int> seen(batch * m * n);
      for (int64_t i = 0; i < cut.size(); ++i) {
        GemmPiece piece = cut.piece(step, i);
        for (int64_t b = piece.batchBegin; b < piece.batchEnd; ++b)
          for (int64_t row = piece.rowBegin; row < piece.rowEnd; ++row)
            for (int64_t column = piece.columnBegin; column < piece.columnEnd; ++column)
              ++seen[(b * m + row) * n + column];
      }
      ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), batch * m * n);
    }
}

TEST(Gemm, FewRowsAreCutByColumns) {
  GemmStep step = makeStep(DType::f32, 1, 64, 1024, 4096, false, false, false, 0);
  GemmCut cut = cutGemm(step, 8);
  EXPECT_EQ(cut.byRows, 1);
  EXPECT_EQ(cut.byColumns, 4);
}

TEST(Gemm, BitsAreIndependentOfTheNumberOfWorkers) {
  for (bool transB : {false, true})
    for (auto [m, n, k] :
         {std::array<int64_t, 3>{1, 8192, 2100}, {64, 512, 1100}, {200, 300, 700}}) {
      ProgramBuilder b;
      int64_t mesh = b.mesh(makeMesh({1})), p = b.part(mesh);
      GemmStep step = makeStep(DType::f32, 1, m, n, k, false, transB, false, 0);
      step.a = b.slot(p, DType::f32, Shape{m, k});
      step.b = b.slot(p, DType::f32, transB ? Shape{n, k} : Shape{k, n});
      step.c = b.slot(p, DType::f32, Shape{m, n});
      b.add(p, step);
      std::vector<float> first;
      for (int workers : {1, 2, 5}) {
        auto executor = openProgram(b.program, workers);
        auto dataOf = [&](int64_t slot) {
          return reinterpret_cast<float *>(executor->slotData(p, 0, slot));
        };
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        std::generate_n(dataOf(step.a), m * k, [&] { return normal(random); });
        std::generate_n(dataOf(step.b), k * n, [&] { return normal(random); });
        ASSERT_TRUE(executor->run().ok());
        std::vector<float> values(dataOf(step.c), dataOf(step.c) + m * n);
        if (first.empty())
          first = values;
        ASSERT_EQ(values, first) << workers << " workers";
      }
    }
}
