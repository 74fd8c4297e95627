//===- GemmProviders.cpp - Packed tiles, oneDNN, OpenBLAS, a loop ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractKernels.h"
#include "PackedGemm.h"
#include "tessera/Runtime/Execution/Contract.h"

#include <algorithm>
#include <deque>
#include <dlfcn.h>
#include <sstream>
#include <tuple>
#include <type_traits>

namespace tessera::runtime {

namespace {

template <typename Function> Function symbol(void *library, const char *name) {
  return reinterpret_cast<Function>(library ? ::dlsym(library, name) : nullptr);
}

/// OpenBLAS through its CBLAS interface.
class OpenBlas final : public GemmProvider {
public:
  OpenBlas() {
    void *library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    sgemm = symbol<Sgemm>(library, "cblas_sgemm");
    dgemm = symbol<Dgemm>(library, "cblas_dgemm");
    if (auto setThreads = symbol<void (*)(int)>(library, "openblas_set_num_threads"))
      setThreads(1); // the executor's workers are the threads
    // "OpenBLAS 0.3.21 DYNAMIC_ARCH … Zen MAX_THREADS=128"
    if (auto config = symbol<char *(*)()>(library, "openblas_get_config"))
      std::istringstream(config()) >> text >> text;
  }
  bool available() const { return sgemm && dgemm; }
  const char *name() const override { return "openblas"; }
  std::string version() const override { return text; }
  bool supports(const GemmProblem &p) const override {
    return (p.dtype == DType::f32 || p.dtype == DType::f64) && p.resultDType == p.dtype;
  }
  void run(const GemmProblem &p, const void *a, const void *b, void *c) const override {
    auto call = [&](auto function, auto zero) {
      using T = decltype(zero);
      function(kRowMajor, p.transA ? kTrans : kNoTrans, p.transB ? kTrans : kNoTrans,
               static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), T(1),
               static_cast<const T *>(a), static_cast<int>(p.lda), static_cast<const T *>(b),
               static_cast<int>(p.ldb), p.accumulate ? T(1) : T(0), static_cast<T *>(c),
               static_cast<int>(p.ldc));
    };
    if (p.dtype == DType::f32)
      call(sgemm, float());
    else
      call(dgemm, double());
  }

private:
  // The values of CBLAS_ORDER and CBLAS_TRANSPOSE.
  static constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;
  template <typename T>
  using Gemm = void (*)(int, int, int, int, int, int, T, const T *, int, const T *, int, T, T *,
                        int);
  using Sgemm = Gemm<float>;
  using Dgemm = Gemm<double>;
  Sgemm sgemm;
  Dgemm dgemm;
  std::string text;
};

/// oneDNN through dnnl_sgemm, which is row-major.
class OneDnn final : public GemmProvider {
public:
  OneDnn() {
    for (const char *file : {"libdnnl.so.2", "libdnnl.so.3"})
      if (void *library = ::dlopen(file, RTLD_NOW | RTLD_GLOBAL)) {
        sgemm = symbol<Sgemm>(library, "dnnl_sgemm");
        getThreads = symbol<int (*)()>(library, "omp_get_max_threads");
        setThreads = symbol<void (*)(int)>(library, "omp_set_num_threads");
        // dnnl_version_t begins with the three numbers.
        if (auto version = symbol<const int *(*)()>(library, "dnnl_version"))
          for (int i = 0; i < 3; ++i)
            text += (i ? "." : "") + std::to_string(version()[i]);
        break;
      }
  }
  bool available() const { return sgemm; }
  const char *name() const override { return "onednn"; }
  std::string version() const override { return text; }
  bool supports(const GemmProblem &p) const override {
    return p.dtype == DType::f32 && p.resultDType == DType::f32;
  }
  void run(const GemmProblem &p, const void *a, const void *b, void *c) const override {
    // OpenMP keeps its thread count per calling thread, which may be the user's: PyTorch shares it.
    const int before = getThreads && setThreads ? getThreads() : 1;
    if (before != 1)
      setThreads(1);
    sgemm(p.transA ? 'T' : 'N', p.transB ? 'T' : 'N', p.m, p.n, p.k, 1.0f,
          static_cast<const float *>(a), p.lda, static_cast<const float *>(b), p.ldb,
          p.accumulate ? 1.0f : 0.0f, static_cast<float *>(c), p.ldc);
    if (before != 1)
      setThreads(before);
  }

private:
  using Sgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t,
                        const float *, int64_t, float, float *, int64_t);
  Sgemm sgemm = nullptr;
  int (*getThreads)() = nullptr;
  void (*setThreads)(int) = nullptr;
  std::string text;
};

/// Our tiles, where the processor has vectors with fused multiply-adds.
class Packed final : public GemmProvider {
public:
  Packed() {
    if (auto all = allGemmKernels(); !all.empty())
      kernels = all.front();
  }
  bool available() const { return kernels; }
  const char *name() const override { return "packed"; }
  std::string version() const override { return kernels->name; }
  bool hasBitsOfAnyCut() const override { return true; }
  bool supports(const GemmProblem &p) const override {
    return p.dtype == DType::f32 && p.resultDType == DType::f32;
  }
  void run(const GemmProblem &p, const void *a, const void *b, void *c) const override {
    multiplyPacked(*kernels, p, static_cast<const float *>(a), static_cast<const float *>(b),
                   static_cast<float *>(c));
  }

private:
  const GemmKernels *kernels = nullptr;
};

/// The tiles of contractions, which read one operand where it is: the rows of a transposed B, whose
/// summands lie together, while the columns of the tile are rows of A.
class Direct final : public GemmProvider {
public:
  bool available() const { return tileKernels().lanes >= 8; }
  const char *name() const override { return "direct"; }
  std::string version() const override { return tileKernels().name; }
  bool hasBitsOfAnyCut() const override { return true; }
  bool supports(const GemmProblem &p) const override {
    return p.dtype == DType::f32 && p.resultDType == DType::f32 && p.transB && !p.transA;
  }
  void run(const GemmProblem &p, const void *a, const void *b, void *c) const override {
    contractionOf(p).run(0, a, b, static_cast<float *>(c));
  }

private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool>;

  /// Those of the last products of this thread are kept: finding one takes as long as a product of
  /// a few rows.
  static const Contraction &contractionOf(const GemmProblem &p) {
    constexpr size_t kMostKept = 32;
    static thread_local std::deque<std::pair<Key, Contraction>> kept;
    const Key key{p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.accumulate};
    for (const auto &[known, contraction] : kept)
      if (known == key)
        return contraction;
    ContractStep step;
    step.accumulate = p.accumulate;
    step.loops = {{p.m, {p.lda, 0, p.ldc}}, {p.n, {0, p.ldb, 1}}, {p.k, {1, 1, 0}}};
    if (kept.size() == kMostKept)
      kept.pop_front();
    kept.emplace_back(key, Contraction(step)).second.split(1);
    return kept.back().second;
  }
};

/// Row by row of C, k outside of n so that the inner loop runs along rows of B and C.
/// Integers are multiplied as unsigned 64-bit numbers: wrapping is defined there, and the low bits
/// that remain are the same.
template <typename T> void plainProduct(const GemmProblem &p, const T *a, const T *b, T *c) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  for (int64_t i = 0; i < p.m; ++i) {
    T *row = c + i * p.ldc;
    if (!p.accumulate)
      std::fill(row, row + p.n, T(0));
    for (int64_t l = 0; l < p.k; ++l) {
      auto left = static_cast<Sum>(p.transA ? a[l * p.lda + i] : a[i * p.lda + l]);
      const T *right = p.transB ? b + l : b + l * p.ldb;
      int64_t stride = p.transB ? p.ldb : 1;
      for (int64_t j = 0; j < p.n; ++j)
        row[j] =
            static_cast<T>(static_cast<Sum>(row[j]) + left * static_cast<Sum>(right[j * stride]));
    }
  }
}

/// Booleans: or of ands.
void booleanProduct(const GemmProblem &p, const uint8_t *a, const uint8_t *b, uint8_t *c) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      bool any = p.accumulate && c[i * p.ldc + j];
      for (int64_t l = 0; l < p.k && !any; ++l)
        any = (p.transA ? a[l * p.lda + i] : a[i * p.lda + l]) &&
              (p.transB ? b[j * p.ldb + l] : b[l * p.ldb + j]);
      c[i * p.ldc + j] = any;
    }
}

class Generated final : public GemmProvider {
public:
  const char *name() const override { return "generated"; }
  bool supports(const GemmProblem &p) const override {
    return !isHalf(p.dtype) && p.resultDType == p.dtype;
  }
  void run(const GemmProblem &p, const void *a, const void *b, void *c) const override {
    auto plain = [&](auto zero) {
      using T = decltype(zero);
      plainProduct(p, static_cast<const T *>(a), static_cast<const T *>(b), static_cast<T *>(c));
    };
    switch (p.dtype) {
    case DType::f64:
      return plain(double());
    case DType::f32:
      return plain(float());
    case DType::i64:
    case DType::index:
      return plain(uint64_t());
    case DType::i32:
      return plain(uint32_t());
    case DType::i16:
      return plain(uint16_t());
    case DType::i8:
      return plain(uint8_t());
    case DType::i1:
      return booleanProduct(p, static_cast<const uint8_t *>(a), static_cast<const uint8_t *>(b),
                            static_cast<uint8_t *>(c));
    case DType::f16:
    case DType::bf16:
      break;
    }
  }
};

} // namespace

// The libraries stay open: unloading a library that keeps threads of its own is not safe.
const GemmProvider *gemmProvider(std::string_view name) {
  if (name == "packed") {
    static const Packed packed;
    return packed.available() ? &packed : nullptr;
  }
  if (name == "direct") {
    static const Direct direct;
    return direct.available() ? &direct : nullptr;
  }
  if (name == "onednn") {
    static const OneDnn &onednn = *new OneDnn;
    return onednn.available() ? &onednn : nullptr;
  }
  if (name == "openblas") {
    static const OpenBlas &openblas = *new OpenBlas;
    return openblas.available() ? &openblas : nullptr;
  }
  static const Generated generated;
  return name == "generated" ? &generated : nullptr;
}

const GemmProvider *shippedGemmProvider(const GemmProblem &p) {
  // Measured on x86-64 (AVX-512) with oneDNN 2.6 and OpenBLAS 0.3.21, one thread, processor time:
  // oneDNN's sgemm is ahead on few rows (1.2 to 3.7 times) and where memory bounds (1.05 to 1.4
  // times); our tiles make 0.96 to 1.16 times OpenBLAS's speed and need no library.
  // Of few summands in a transposed A, as in gradients of weights, our tiles make 1.25 times
  // oneDNN's speed, for example 1024x512 from 64 rows (Zen 5).
  // A transposed B is neither packed nor transposed where its rows are read in place: 2.4 times
  // oneDNN's speed for 16 rows of 1024x1024, 1.9 for 32, 1.4 for 64, 1.1 for 256.
  constexpr int64_t kFewSummands = 256, kFewestRows = 9;
  const GemmProvider *tiles = nullptr;
  if (p.transA && p.k <= kFewSummands)
    tiles = gemmProvider("packed");
  else if (p.m >= kFewestRows && p.k >= kFewSummands)
    tiles = gemmProvider("direct");
  if (tiles && tiles->supports(p))
    return tiles;
  if (p.dtype == DType::f32 || p.dtype == DType::f64)
    for (const char *name : {"onednn", "packed", "openblas"})
      if (const GemmProvider *provider = gemmProvider(name); provider && provider->supports(p))
        return provider;
  return gemmProvider("generated");
}

} // namespace tessera::runtime
