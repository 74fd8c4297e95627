//===- FakeCublasLt.cpp - cuBLASLt's functions over host memory -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Multiplies as given by descriptors and layouts, column-major, when FakeCuda executes
// the call. FAKE_CUBLAS_TRACE prints its arguments to standard error.
// FAKE_CUBLAS_ALGORITHMS=0: no algorithm for any product. During a capture the search
// for an algorithm fails; with FAKE_CUBLAS_FAILS=1 the product fails, too.
// FAKE_CUBLAS_REFUSES=TEXT: a library with this text in its path does not initialize.
//
//===----------------------------------------------------------------------===//

#include "Gpu/Cuda/DeviceScalars.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
struct Operation {
  int compute, scale;
  int32_t transA = 0, transB = 0;
  uint32_t epilogue = 1;
  const void *bias = nullptr;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};

double load(int type, const void *data, int64_t at) {
  switch (type) {
  case 0:
    return static_cast<const float *>(data)[at];
  case 1:
    return static_cast<const double *>(data)[at];
  case 2:
    return static_cast<const Half *>(data)[at].load();
  default:
    return static_cast<const Bfloat16 *>(data)[at].load();
  }
}
void store(int type, void *data, int64_t at, double value) {
  switch (type) {
  case 0:
    static_cast<float *>(data)[at] = static_cast<float>(value);
    return;
  case 1:
    static_cast<double *>(data)[at] = value;
    return;
  case 2:
    static_cast<Half *>(data)[at].store(static_cast<float>(value));
    return;
  default:
    static_cast<Bfloat16 *>(data)[at].store(static_cast<float>(value));
  }
}
template <typename T> int set(T &field, const void *value, size_t size) {
  if (size != sizeof(T))
    return 7; // an invalid value
  std::memcpy(&field, value, size);
  return 0;
}
double scalarOf(const Operation &operation, const void *value) {
  return load(operation.scale, value, 0);
}
} // namespace

EXPORT int cublasLtCreate(void **handle) {
  static int anything; // of this library, whatever others are loaded
  const char *refused = std::getenv("FAKE_CUBLAS_REFUSES");
  Dl_info self{};
  if (refused && ::dladdr(&anything, &self) && std::strstr(self.dli_fname, refused))
    return 1; // not initialized
  *handle = &anything;
  return 0;
}
EXPORT int cublasLtDestroy(void *) {
  return 0;
}
EXPORT int cublasLtMatmulDescDestroy(void *object) {
  delete static_cast<Operation *>(object);
  return 0;
}
EXPORT int cublasLtMatrixLayoutDestroy(void *object) {
  delete static_cast<Layout *>(object);
  return 0;
}
EXPORT int cublasLtMatmulDescCreate(void **made, int compute, int scale) {
  *made = new Operation{compute, scale};
  return 0;
}
EXPORT int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value,
                                          size_t size) {
  auto &operation = *static_cast<Operation *>(object);
  switch (attribute) {
  case 3:
    return set(operation.transA, value, size);
  case 4:
    return set(operation.transB, value, size);
  case 7:
    return set(operation.epilogue, value, size);
  case 8:
    return set(operation.bias, value, size);
  }
  return 7;
}
EXPORT int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t columns,
                                      int64_t leading) {
  *made = new Layout{type, rows, columns, leading};
  return 0;
}
EXPORT int cublasLtMatrixLayoutSetAttribute(void *object, int attribute, const void *value,
                                            size_t size) {
  auto &layout = *static_cast<Layout *>(object);
  return attribute == 5   ? set(layout.batch, value, size)
         : attribute == 6 ? set(layout.stride, value, size)
                          : 7;
}
EXPORT int cublasLtMatmulPreferenceCreate(void **made) {
  static int anything;
  *made = &anything;
  return 0;
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(void *, int, const void *, size_t) {
  return 0;
}
EXPORT int cublasLtMatmulPreferenceDestroy(void *) {
  return 0;
}
EXPORT int cublasLtMatmulAlgoGetHeuristic(void *, void *, void *, void *, void *, void *, void *,
                                          int, void *result, int *found) {
  auto captures = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "fake_cuda_captures"));
  *found = 0;
  if (captures && captures())
    return 14; // an internal error, as in cuBLAS 13.3
  const char *text = std::getenv("FAKE_CUBLAS_ALGORITHMS");
  *found = text ? std::atoi(text) : 1;
  std::memset(result, 0, 96);
  return *found > 0 ? 0 : 15; // not supported
}

namespace {
/// A call with all its arguments.
struct Call {
  Operation operation;
  double alpha, beta;
  Layout layoutA, layoutB, layoutD;
  const void *a, *b, *c;
  void *d;
};
} // namespace

static void multiply(void *argument) {
  const auto &[operation, alpha, beta, A, B, D, a, b, c, d] = *static_cast<const Call *>(argument);
  auto rows = static_cast<int64_t>(D.rows), columns = static_cast<int64_t>(D.columns);
  auto inner = static_cast<int64_t>(operation.transA ? A.rows : A.columns);
  for (int32_t batch = 0; batch < D.batch; ++batch)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < inner; ++l) {
          int64_t left = operation.transA ? l + i * A.leading : i + l * A.leading;
          int64_t right = operation.transB ? j + l * B.leading : l + j * B.leading;
          sum +=
              load(A.type, a, batch * A.stride + left) * load(B.type, b, batch * B.stride + right);
        }
        int64_t at = batch * D.stride + i + j * D.leading;
        sum = alpha * sum + (beta != 0 ? beta * load(D.type, c, at) : 0);
        if (operation.epilogue & 4)
          sum += load(D.type, operation.bias, i);
        uint32_t kind = operation.epilogue & ~4u;
        if (kind == 2)
          sum = sum < 0 ? 0 : sum;
        if (kind == 32)
          sum =
              0.5 * sum * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
        store(D.type, d, at, sum);
      }
}

EXPORT int cublasLtMatmul(void *, void *object, const void *alpha, const void *a, void *layoutA,
                          const void *b, void *layoutB, const void *beta, const void *c, void *,
                          void *d, void *layoutD, void *, void *, size_t, void *stream) {
  const auto &operation = *static_cast<const Operation *>(object);
  bool hasBias = operation.epilogue & 4;
  if (std::getenv("FAKE_CUBLAS_FAILS"))
    return 13; // execution failed
  if (hasBias && !operation.bias)
    return 7;
  // Never freed: a graph may run it again.
  auto *call = new Call{operation,
                        scalarOf(operation, alpha),
                        scalarOf(operation, beta),
                        *static_cast<const Layout *>(layoutA),
                        *static_cast<const Layout *>(layoutB),
                        *static_cast<const Layout *>(layoutD),
                        a,
                        b,
                        c,
                        d};
  if (std::getenv("FAKE_CUBLAS_TRACE"))
    std::fprintf(stderr, "cublas: %ld x %ld x %ld, epilogue %u%s, compute %d\n",
                 static_cast<long>(call->layoutD.rows), static_cast<long>(call->layoutD.columns),
                 static_cast<long>(operation.transA ? call->layoutA.rows : call->layoutA.columns),
                 operation.epilogue, hasBias ? ", bias" : "", operation.compute);
  using Issue = void (*)(void *, void (*)(void *), void *);
  auto issue = reinterpret_cast<Issue>(::dlsym(RTLD_DEFAULT, "fake_cuda_issue"));
  if (issue)
    issue(stream, multiply, call);
  else
    multiply(call);
  return 0;
}
