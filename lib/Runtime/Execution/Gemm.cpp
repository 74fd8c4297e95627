//===- Gemm.cpp - Matrix products of steps --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Execution/Gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tessera::runtime {

/// Widens a rows x columns matrix of halves to dense f32.
static void widen(DType dtype, const uint16_t *from, int64_t rows, int64_t columns, int64_t leading,
                  std::vector<float> &to) {
  to.resize(static_cast<size_t>(rows * columns));
  auto convert = [&](auto one) { // inlined, so that the loop is vectorized
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        to[i * columns + j] = one(from[i * leading + j]);
  };
  if (dtype == DType::f16)
    convert([](uint16_t value) { return halfToFloat(value); });
  else
    convert([](uint16_t value) { return bfloatToFloat(value); });
}

/// Rounds dense f32 to a matrix of halves.
static void narrow(DType dtype, const std::vector<float> &from, int64_t rows, int64_t columns,
                   uint16_t *to, int64_t leading) {
  auto convert = [&](auto one) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        to[i * leading + j] = one(from[i * columns + j]);
  };
  if (dtype == DType::f16)
    convert([](float value) { return floatToHalf(value); });
  else
    convert([](float value) { return floatToBfloat(value); });
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

/// f16 and bf16: products and sums in f32, rounded once at the end (not at all for an f32 result).
static void multiplyHalves(const GemmProblem &p, const void *a, const void *b, void *c) {
  // Kept by each worker between calls: no allocation once the largest product has been seen.
  thread_local std::vector<float> left, right, sum;
  int64_t rowsA = p.transA ? p.k : p.m, columnsA = p.transA ? p.m : p.k;
  int64_t rowsB = p.transB ? p.n : p.k, columnsB = p.transB ? p.k : p.n;
  widen(p.dtype, static_cast<const uint16_t *>(a), rowsA, columnsA, p.lda, left);
  widen(p.dtype, static_cast<const uint16_t *>(b), rowsB, columnsB, p.ldb, right);
  GemmProblem wide = p;
  wide.dtype = wide.resultDType = DType::f32;
  wide.lda = columnsA;
  wide.ldb = columnsB;
  const GemmProvider *provider = chooseGemmProvider(wide);
  if (p.resultDType == DType::f32) {
    provider->run(wide, left.data(), right.data(), c);
    finish(p, static_cast<float *>(c), p.ldc);
    return;
  }
  auto *out = static_cast<uint16_t *>(c);
  wide.ldc = p.n;
  if (p.accumulate)
    widen(p.dtype, out, p.m, p.n, p.ldc, sum);
  else
    sum.resize(static_cast<size_t>(p.m * p.n));
  provider->run(wide, left.data(), right.data(), sum.data());
  finish(p, sum.data(), p.n);
  narrow(p.dtype, sum, p.m, p.n, out, p.ldc);
}

void multiply(const GemmProblem &p, const void *a, const void *b, void *c) {
  if (p.m == 0 || p.n == 0)
    return;
  if (p.k == 0) {
    int64_t size = sizeOf(p.resultDType);
    for (int64_t i = 0; i < p.m && !p.accumulate; ++i)
      std::memset(static_cast<char *>(c) + i * p.ldc * size, 0, static_cast<size_t>(p.n * size));
    return;
  }
  if (isHalf(p.dtype)) {
    multiplyHalves(p, a, b, c);
    return;
  }
  chooseGemmProvider(p)->run(p, a, b, c);
  if (p.dtype == DType::f32)
    finish(p, static_cast<float *>(c), p.ldc);
}

void multiply(const GemmStep &step, const void *a, const void *b, void *c, const void *bias,
              int64_t batchBegin, int64_t batchEnd, int64_t rowBegin, int64_t rowEnd) {
  DType result = step.resultDType.value_or(step.dtype);
  GemmProblem problem{step.dtype,      result,      rowEnd - rowBegin, step.n,   step.k,
                      step.transA,     step.transB, step.lda,          step.ldb, step.ldc,
                      step.accumulate, bias,        step.epilogue};
  int64_t size = sizeOf(step.dtype), resultSize = sizeOf(result);
  int64_t skipA = rowBegin * (step.transA ? 1 : step.lda), skipC = rowBegin * step.ldc;
  for (int64_t batch = batchBegin; batch < batchEnd; ++batch)
    multiply(problem, static_cast<const char *>(a) + (batch * step.strideA + skipA) * size,
             static_cast<const char *>(b) + batch * step.strideB * size,
             static_cast<char *>(c) + (batch * step.strideC + skipC) * resultSize);
}

} // namespace tessera::runtime
