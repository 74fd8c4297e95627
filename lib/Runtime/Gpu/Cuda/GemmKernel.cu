//===- GemmKernel.cu - Matrix products that no library has ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of integers, and those of floats for which cuBLASLt has no
// algorithm: a thread an element of the result. GemmKernel.ptx is made of this
// by
//
//   nvcc -std=c++17 -ptx -arch=compute_80 GemmKernel.cu -o GemmKernel.ptx
//   sed -i 's/^.version .*/.version 8.3/' GemmKernel.ptx   # for drivers from CUDA 12.3
//
// and embedded as MoveKernels.ptx is.
//
//===----------------------------------------------------------------------===//

#include "DeviceScalars.h"
#include "GemmArguments.h"

using namespace tessera::runtime::gpu;

TESSERA_DEVICE float epilogueOf(int kind, float x) {
  if (kind == kEpilogueRelu)
    return x < 0 ? 0.0f : x; // NaN stays
  if (kind == kEpilogueGelu)
    return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
  return x;
}
// Other types have none; the verifier says so.
TESSERA_DEVICE double epilogueOf(int, double x) {
  return x;
}
TESSERA_DEVICE unsigned long long epilogueOf(int, unsigned long long x) {
  return x;
}

/// Elements of A and B stored as S, of C as R, summed as T. Integers wrap around, as they do
/// whatever their width when only the low bits are kept.
template <typename S, typename R, typename T>
TESSERA_DEVICE void multiplyElements(const GemmArguments &g, long long begin, long long step) {
  long long elements = g.batch * g.m * g.n;
  long long nextA = g.transA ? g.lda : 1, nextB = g.transB ? 1 : g.ldb;
  TESSERA_NO_UNROLL
  for (long long i = begin; i < elements; i += step) {
    long long row = i / g.n, column = i - row * g.n, batch = row / g.m;
    row -= batch * g.m;
    auto *a = static_cast<const S *>(g.a) + batch * g.strideA + row * (g.transA ? 1 : g.lda);
    auto *b = static_cast<const S *>(g.b) + batch * g.strideB + column * (g.transB ? g.ldb : 1);
    auto *c = static_cast<R *>(g.c) + batch * g.strideC + row * g.ldc + column;
    T sum = g.accumulate ? static_cast<T>(c->load()) : T(0);
    TESSERA_NO_UNROLL
    for (long long l = 0; l < g.k; ++l)
      sum += static_cast<T>(a[l * nextA].load()) * static_cast<T>(b[l * nextB].load());
    if (g.bias)
      sum += static_cast<T>(static_cast<const R *>(g.bias)[column].load());
    c->store(epilogueOf(g.epilogue, sum));
  }
}

/// i1: whether both are set anywhere.
struct Bit {
  unsigned char value;
  TESSERA_DEVICE unsigned long long load() const { return value != 0; }
  TESSERA_DEVICE void store(unsigned long long sum) { value = sum != 0; }
};

template <typename V> struct Wrapped {
  V value;
  TESSERA_DEVICE unsigned long long load() const { return static_cast<unsigned long long>(value); }
  TESSERA_DEVICE void store(unsigned long long sum) { value = static_cast<V>(sum); }
};

TESSERA_DEVICE void multiplyAll(const GemmArguments &g, long long begin, long long step) {
  using Wide = unsigned long long;
  switch (g.dtype) {
  case kTypeF64:
    return multiplyElements<Plain<double>, Plain<double>, double>(g, begin, step);
  case kTypeF32:
    return multiplyElements<Plain<float>, Plain<float>, float>(g, begin, step);
  case kTypeF16:
    if (g.resultType == kTypeF32)
      return multiplyElements<Half, Plain<float>, float>(g, begin, step);
    return multiplyElements<Half, Half, float>(g, begin, step);
  case kTypeBF16:
    if (g.resultType == kTypeF32)
      return multiplyElements<Brain, Plain<float>, float>(g, begin, step);
    return multiplyElements<Brain, Brain, float>(g, begin, step);
  case kTypeI64:
    return multiplyElements<Wrapped<long long>, Wrapped<long long>, Wide>(g, begin, step);
  case kTypeI32:
    return multiplyElements<Wrapped<int>, Wrapped<int>, Wide>(g, begin, step);
  case kTypeI16:
    return multiplyElements<Wrapped<short>, Wrapped<short>, Wide>(g, begin, step);
  case kTypeI8:
    return multiplyElements<Wrapped<signed char>, Wrapped<signed char>, Wide>(g, begin, step);
  case kTypeI1:
    return multiplyElements<Bit, Bit, Wide>(g, begin, step);
  }
}

#ifdef __CUDACC__
TESSERA_KERNEL tessera_gemm(const __grid_constant__ GemmArguments g) {
  multiplyAll(g, blockIdx.x * 256ll + threadIdx.x, gridDim.x * 256ll);
}
#endif
