//===- FakeCublas.cpp - cuBLAS's batched products over host memory --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Multiplies f32 and f64, column-major, with addresses read from device memory when
// FakeCuda executes the call. FAKE_CUBLAS_TRACE prints its arguments to standard error;
// with FAKE_CUBLAS_FAILS=1 calls fail.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
void *currentStream = nullptr;

struct Call {
  int transA, transB, m, n, k, type, lda, ldb, ldc, count;
  double alpha, beta;
  const void *const *a;
  const void *const *b;
  void *const *c;
};

double load(int type, const void *data, int64_t at) {
  return type == 1 ? static_cast<const double *>(data)[at]
                   : static_cast<double>(static_cast<const float *>(data)[at]);
}

void multiply(void *argument) {
  const Call &call = *static_cast<const Call *>(argument);
  for (int each = 0; each < call.count; ++each)
    for (int64_t j = 0; j < call.n; ++j)
      for (int64_t i = 0; i < call.m; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < call.k; ++l)
          sum += load(call.type, call.a[each], call.transA ? l + i * call.lda : i + l * call.lda) *
                 load(call.type, call.b[each], call.transB ? j + l * call.ldb : l + j * call.ldb);
        int64_t at = i + j * call.ldc;
        sum =
            call.alpha * sum + (call.beta != 0 ? call.beta * load(call.type, call.c[each], at) : 0);
        if (call.type == 1)
          static_cast<double *>(call.c[each])[at] = sum;
        else
          static_cast<float *>(call.c[each])[at] = static_cast<float>(sum);
      }
}
} // namespace

EXPORT int cublasCreate_v2(void **handle) {
  static int anything;
  *handle = &anything;
  return 0;
}
EXPORT int cublasDestroy_v2(void *) {
  return 0;
}
EXPORT int cublasSetStream_v2(void *, void *stream) {
  currentStream = stream;
  return 0;
}
EXPORT int cublasSetWorkspace_v2(void *, void *workspace, size_t) {
  return reinterpret_cast<uintptr_t>(workspace) % 256 == 0 ? 0 : 7; // an invalid value
}
EXPORT int cublasGemmBatchedEx(void *, int transA, int transB, int m, int n, int k,
                               const void *alpha, const void *const *a, int typeA, int lda,
                               const void *const *b, int typeB, int ldb, const void *beta,
                               void *const *c, int typeC, int ldc, int count, int compute, int) {
  if (std::getenv("FAKE_CUBLAS_FAILS") || typeA > 1 || typeB != typeA || typeC != typeA)
    return 15; // not supported
  auto scalar = [&](const void *value) { return load(typeA, value, 0); };
  // Never freed: a graph may run it again.
  auto *call = new Call{transA,        transB,       m, n, k, typeA, lda, ldb, ldc, count,
                        scalar(alpha), scalar(beta), a, b, c};
  if (std::getenv("FAKE_CUBLAS_TRACE"))
    std::fprintf(stderr, "cublas: %d products of %d x %d x %d, compute %d\n", count, m, n, k,
                 compute);
  using Issue = void (*)(void *, void (*)(void *), void *);
  if (auto issue = reinterpret_cast<Issue>(::dlsym(RTLD_DEFAULT, "fake_cuda_issue")))
    issue(currentStream, multiply, call);
  else
    multiply(call);
  return 0;
}
