//===- Gemm.cpp - Matrix products of steps --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Execution/Gemm.h"

#include "HalfPackers.h"
#include "PackedGemm.h"
#include "tessera/Runtime/Execution/GemmTable.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tessera::runtime {

/// Widens a rows x columns matrix of halves to dense f32.
static void widen(DType dtype, const uint16_t *from, int64_t rows, int64_t columns, int64_t leading,
                  std::vector<float> &to) {
  to.resize(static_cast<size_t>(rows * columns));
  const auto widenF16 = halfPackers().widenF16;
  for (int64_t i = 0; i < rows; ++i, from += leading) {
    float *row = to.data() + i * columns;
    if (dtype == DType::f16)
      widenF16(from, columns, row);
    else
      for (int64_t j = 0; j < columns; ++j)
        row[j] = bfloatToFloat(from[j]);
  }
}

/// Rounds dense f32 to a matrix of halves.
static void narrow(DType dtype, const std::vector<float> &from, int64_t rows, int64_t columns,
                   uint16_t *to, int64_t leading) {
  const auto narrowRow = dtype == DType::f16 ? halfPackers().narrowF16 : halfPackers().narrow;
  for (int64_t i = 0; i < rows; ++i)
    narrowRow(from.data() + i * columns, columns, to + i * leading);
}

static float gelu(float x) {
  constexpr float kScale = 0.7978845608028654f; // sqrt(2 / pi)
  return 0.5f * x * (1.0f + std::tanh(kScale * (x + 0.044715f * x * x * x)));
}

/// Bias and epilogue over a product in f32, rows `leading` apart.
static void finish(const GemmProblem &p, float *c, int64_t leading) {
  if (!p.bias && p.epilogue == Epilogue::none)
    return;
  thread_local std::vector<float> bias;
  bias.assign(static_cast<size_t>(p.n), 0);
  if (p.bias && isHalf(p.resultDType))
    widen(p.resultDType, static_cast<const uint16_t *>(p.bias), 1, p.n, p.n, bias);
  else if (p.bias)
    std::memcpy(bias.data(), p.bias, bias.size() * sizeof(float));
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      float &value = c[i * leading + j];
      value += bias[j];
      if (p.epilogue == Epilogue::relu)
        value = value < 0 ? 0 : value; // NaN stays
      else if (p.epilogue == Epilogue::gelu)
        value = gelu(value);
    }
}

namespace {
/// A right operand in panels.
struct Panels {
  bool isPacked;
  int64_t first, all; ///< columns: the product's first one, and those that are packed
};
} // namespace

/// A · B (+ C) by panels, C in f32.
template <typename Kernels>
static void multiplyPanels(const Kernels &kernels, const GemmProblem &p, const void *a,
                           const void *b, const Panels *panels, float *c) {
  using Element = typename Kernels::Element;
  const auto *left = static_cast<const Element *>(a), *right = static_cast<const Element *>(b);
  if (panels && panels->isPacked)
    multiplyByPacked(kernels, p, left, right, panels->first, panels->all, c);
  else
    multiplyPacked(kernels, p, left, right, c);
}

/// f16 and bf16: products and sums in f32, by instructions of 16-bit floats where the machine has
/// them, rounded once at the end (not at all for an f32 result).
static void multiplyHalves(const GemmProblem &p, const void *a, const void *b, const Panels *panels,
                           void *c) {
  // Kept by each worker between calls: no allocation once the largest product has been seen.
  thread_local std::vector<float> left, right, sum;
  const HalfGemmKernels *kernels = halfGemmKernels(p.dtype);
  GemmProblem wide = p;
  wide.dtype = wide.resultDType = DType::f32;
  auto *halvesA = static_cast<const uint16_t *>(a), *halvesB = static_cast<const uint16_t *>(b);
  if (!kernels) {
    int64_t rowsA = p.transA ? p.k : p.m, columnsA = p.transA ? p.m : p.k;
    int64_t rowsB = p.transB ? p.n : p.k, columnsB = p.transB ? p.k : p.n;
    widen(p.dtype, halvesA, rowsA, columnsA, p.lda, left);
    widen(p.dtype, halvesB, rowsB, columnsB, p.ldb, right);
    wide.lda = columnsA;
    wide.ldb = columnsB;
  }
  auto product = [&](float *to) {
    if (kernels)
      multiplyPanels(*kernels, wide, a, b, panels, to);
    else
      chooseGemmProvider(wide)->run(wide, left.data(), right.data(), to);
  };
  if (p.resultDType == DType::f32) {
    product(static_cast<float *>(c));
    finish(p, static_cast<float *>(c), p.ldc);
    return;
  }
  auto *out = static_cast<uint16_t *>(c);
  wide.ldc = p.n;
  if (p.accumulate)
    widen(p.dtype, out, p.m, p.n, p.ldc, sum);
  else
    sum.resize(static_cast<size_t>(p.m * p.n));
  product(sum.data());
  finish(p, sum.data(), p.n);
  narrow(p.dtype, sum, p.m, p.n, out, p.ldc);
}

/// `whole`: the product that this is a part of, for which the provider is chosen. `panels`: null
/// for the provider's way.
static void multiply(const GemmProblem &p, const GemmProblem &whole, const void *a, const void *b,
                     const Panels *panels, void *c) {
  if (p.m == 0 || p.n == 0)
    return;
  if (p.k == 0) {
    int64_t size = sizeOf(p.resultDType);
    for (int64_t i = 0; i < p.m && !p.accumulate; ++i)
      std::memset(static_cast<char *>(c) + i * p.ldc * size, 0, static_cast<size_t>(p.n * size));
    return;
  }
  if (isHalf(p.dtype)) {
    multiplyHalves(p, a, b, panels, c);
    return;
  }
  if (panels)
    multiplyPanels(*allGemmKernels().front(), p, a, b, panels, static_cast<float *>(c));
  else
    chooseGemmProvider(whole)->run(p, a, b, c);
  if (p.dtype == DType::f32)
    finish(p, static_cast<float *>(c), p.ldc);
}

void multiply(const GemmProblem &p, const void *a, const void *b, void *c) {
  multiply(p, p, a, b, nullptr, c);
}

/// One batch of a step.
static GemmProblem problemOf(const GemmStep &step) {
  return {step.dtype,      step.resultDType.value_or(step.dtype),
          step.m,          step.n,
          step.k,          step.transA,
          step.transB,     step.lda,
          step.ldb,        step.ldc,
          step.accumulate, nullptr,
          step.epilogue};
}

void multiply(const GemmStep &step, const void *a, const void *b, void *c, const void *bias,
              const GemmPiece &piece, RightOperand right) {
  DType result = step.resultDType.value_or(step.dtype);
  int64_t size = sizeOf(step.dtype), resultSize = sizeOf(result);
  const GemmProblem whole = problemOf(step);
  GemmProblem problem = whole;
  problem.m = piece.rowEnd - piece.rowBegin;
  problem.n = piece.columnEnd - piece.columnBegin;
  if (bias)
    problem.bias = static_cast<const char *>(bias) + piece.columnBegin * resultSize;
  int64_t skipA = piece.rowBegin * (step.transA ? 1 : step.lda);
  int64_t skipB = piece.columnBegin * (step.transB ? step.ldb : 1);
  int64_t skipC = piece.rowBegin * step.ldc + piece.columnBegin;
  const bool isPacked = right == RightOperand::packed;
  const Panels panels{isPacked, piece.columnBegin, step.n};
  for (int64_t batch = piece.batchBegin; batch < piece.batchEnd; ++batch)
    multiply(problem, whole, static_cast<const char *>(a) + (batch * step.strideA + skipA) * size,
             static_cast<const char *>(b) + (isPacked ? 0 : (batch * step.strideB + skipB) * size),
             right == RightOperand::plain ? nullptr : &panels,
             static_cast<char *>(c) + (batch * step.strideC + skipC) * resultSize);
}

bool multipliesPanels(DType dtype) {
  if (dtype == DType::f32)
    return !allGemmKernels().empty() && choosesPanels();
  return dtype == DType::bf16 && halfGemmKernels(dtype);
}

int64_t packedBytes(DType dtype, int64_t k, int64_t n) {
  constexpr int64_t kMostUnit = 32, kMostLanes = 16, kLine = 64;
  auto up = [](int64_t size, int64_t to) { return (size + to - 1) / to * to; };
  return up(up(k, kMostUnit) * up(n, kMostLanes) * sizeOf(dtype), kLine);
}

void packColumns(const GemmStep &step, const void *b, int64_t begin, int64_t end, void *packed) {
  GemmProblem problem;
  problem.n = step.n, problem.k = step.k;
  problem.transB = step.transB, problem.ldb = step.ldb;
  if (step.dtype == DType::f32)
    packRight(*allGemmKernels().front(), problem, static_cast<const float *>(b), begin, end,
              static_cast<float *>(packed));
  else
    packRight(*halfGemmKernels(step.dtype), problem, static_cast<const uint16_t *>(b), begin, end,
              static_cast<uint16_t *>(packed));
}

GemmCut cutGemm(const GemmStep &step, int64_t most) {
  // A provider packs A for each block of columns and B for each block of rows: of the grids with
  // enough pieces the one that packs least. Edges are multiples of a provider's tiles; fewer rows
  // than kLeast are not worth packing B once more.
  constexpr int64_t kLeast = 2 * GemmCut::kRows;
  auto up = [](int64_t size, int64_t to) { return (size + to - 1) / to * to; };
  auto blocks = [](int64_t size, int64_t block) { return (size + block - 1) / block; };
  GemmCut cut;
  cut.batches = std::clamp<int64_t>(most, 1, step.batch);
  int64_t wanted = most / cut.batches;
  double least = 0;
  cut.rows = up(std::max<int64_t>(1, step.m), GemmCut::kRows);
  cut.columns = up(std::max<int64_t>(1, step.n), GemmCut::kColumns);
  int64_t pieces = 1;
  for (int64_t byRows = 1; byRows <= wanted; ++byRows) {
    int64_t rows = up(blocks(step.m, byRows), kLeast);
    int64_t columns = up(blocks(step.n, wanted / byRows), GemmCut::kColumns);
    int64_t count = blocks(step.m, rows) * blocks(step.n, columns);
    double packing = static_cast<double>(blocks(step.n, columns)) * static_cast<double>(step.m) +
                     static_cast<double>(blocks(step.m, rows)) * static_cast<double>(step.n);
    // Three quarters of the pieces are as good as all: they are taken by whoever is free.
    bool isMore = 4 * count > 5 * pieces, isAsMany = 4 * count >= 3 * pieces;
    if (isMore || (isAsMany && packing < least)) {
      cut.rows = rows;
      cut.columns = columns;
      pieces = std::max(pieces, count);
      least = packing;
    }
  }
  cut.byRows = std::max<int64_t>(1, blocks(step.m, cut.rows));
  cut.byColumns = std::max<int64_t>(1, blocks(step.n, cut.columns));
  return cut;
}

GemmCut cutGemm(const GemmStep &step) {
  constexpr double kOperationsOfPiece = 1 << 25, kOperationsOfMore = 1 << 29;
  constexpr double kOperationsOfFew = 1 << 22; // what waking a worker is worth
  constexpr double kFewPieces = 4, kPieces = 16, kMostPieces = 64;
  constexpr int64_t kReused = 16; // fewer rows wait for memory
  double operations = 2.0 * static_cast<double>(step.batch) *
                      static_cast<double>(std::max(step.m, kReused)) * static_cast<double>(step.n) *
                      static_cast<double>(step.k);
  double pieces = std::max({std::min(operations / kOperationsOfFew, kFewPieces),
                            std::min(operations / kOperationsOfPiece, kPieces),
                            std::min(operations / kOperationsOfMore, kMostPieces)});
  return cutGemm(step, std::max<int64_t>(1, static_cast<int64_t>(pieces)));
}

GemmCut cutGemm(const GemmStep &step, RightOperand right, int64_t workers) {
  constexpr int64_t kPerWorker = 4; // the last pieces are taken by whoever is free
  const GemmCut cut = cutGemm(step);
  const int64_t most = workers > 1 ? kPerWorker * workers : 1;
  // Workers keep the f32 sums of a piece whose result has 16 bits: its pieces stay small.
  if (cut.size() <= most || isHalf(step.resultDType.value_or(step.dtype)))
    return cut;
  const bool isFree = right != RightOperand::plain ||
                      (isHalf(step.dtype) ? halfGemmKernels(step.dtype) != nullptr
                                          : chooseGemmProvider(problemOf(step))->hasBitsOfAnyCut());
  return isFree ? cutGemm(step, most) : cut;
}

GemmPiece GemmCut::piece(const GemmStep &step, int64_t index) const {
  int64_t column = index % byColumns, row = index / byColumns % byRows;
  int64_t batch = index / (byColumns * byRows);
  return {step.batch * batch / batches,       step.batch * (batch + 1) / batches,
          std::min(step.m, row * rows),       std::min(step.m, (row + 1) * rows),
          std::min(step.n, column * columns), std::min(step.n, (column + 1) * columns)};
}

} // namespace tessera::runtime
