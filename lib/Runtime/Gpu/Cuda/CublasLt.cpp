//===- CublasLt.cpp - Matrix products on a GPU ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CublasLt.h"

#include <cstdio>

namespace tessera::runtime::gpu {

// From the reference of cuBLASLt: the values used here.
constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kBrain16 = 14;
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;
constexpr int kTransA = 3, kTransB = 4, kEpilogue = 7, kBiasPointer = 8; ///< of an operation
constexpr uint32_t kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32;
constexpr int kBatchCount = 5, kBatchStride = 6; ///< attributes of a layout
constexpr int kAlignmentOfA = 5;                 ///< attribute of a preference; B, C and D follow
constexpr int kMaxWorkspace = 1;                 ///< attribute of a preference
constexpr int kNotSupported = 15;                ///< status

/// A library that is newer than the driver is refused, where an older one may work.
Status CublasLt::open() {
  if (library.isOpen())
    return {};
  return library.open(
      {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
      "matrix products need cuBLASLt, which comes with the CUDA toolkit (libcublas)",
      [this] { return begin(); });
}

Status CublasLt::begin() {
  TESSERA_RETURN_IF_ERROR(library.find(create, "cublasLtCreate"));
  TESSERA_RETURN_IF_ERROR(library.find(destroy, "cublasLtDestroy"));
  TESSERA_RETURN_IF_ERROR(library.find(descDestroy, "cublasLtMatmulDescDestroy"));
  TESSERA_RETURN_IF_ERROR(library.find(layoutDestroy, "cublasLtMatrixLayoutDestroy"));
  TESSERA_RETURN_IF_ERROR(library.find(descCreate, "cublasLtMatmulDescCreate"));
  TESSERA_RETURN_IF_ERROR(library.find(descSet, "cublasLtMatmulDescSetAttribute"));
  TESSERA_RETURN_IF_ERROR(library.find(layoutCreate, "cublasLtMatrixLayoutCreate"));
  TESSERA_RETURN_IF_ERROR(library.find(layoutSet, "cublasLtMatrixLayoutSetAttribute"));
  TESSERA_RETURN_IF_ERROR(library.find(preferenceCreate, "cublasLtMatmulPreferenceCreate"));
  TESSERA_RETURN_IF_ERROR(library.find(preferenceSet, "cublasLtMatmulPreferenceSetAttribute"));
  TESSERA_RETURN_IF_ERROR(library.find(preferenceDestroy, "cublasLtMatmulPreferenceDestroy"));
  TESSERA_RETURN_IF_ERROR(library.find(heuristic, "cublasLtMatmulAlgoGetHeuristic"));
  TESSERA_RETURN_IF_ERROR(library.find(matmul, "cublasLtMatmul"));
  return check(create(&handle), "cannot initialize cuBLASLt");
}

void CublasLt::close() {
  for (auto &[step, product] : products) {
    for (void *layout : {product.a, product.b, product.c})
      if (layout)
        (void)layoutDestroy(layout);
    if (product.operation)
      (void)descDestroy(product.operation);
  }
  products.clear();
  if (handle)
    (void)destroy(handle);
  handle = nullptr;
}

Status CublasLt::check(Status_t status, const char *what) const {
  return status == 0
             ? Status()
             : Status::error(std::string(what) + " (cuBLAS status " + std::to_string(status) + ")");
}

int CublasLt::dataTypeOf(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return kReal64;
  case DType::f32:
    return kReal32;
  case DType::f16:
    return kReal16;
  case DType::bf16:
    return kBrain16;
  default:
    return -1;
  }
}

int CublasLt::computeOf(DType dtype) const {
  return dtype == DType::f64 ? kCompute64 : dtype == DType::f32 && tf32 ? kComputeTf32 : kCompute32;
}

bool CublasLt::multiplies(DType dtype) {
  return dataTypeOf(dtype) >= 0;
}

Status CublasLt::layout(void *&layout, int type, int64_t rows, int64_t columns, int64_t leading,
                        int64_t batch, int64_t stride) {
  TESSERA_RETURN_IF_ERROR(check(layoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                             static_cast<uint64_t>(columns), leading),
                                "cannot create a matrix layout"));
  auto count = static_cast<int32_t>(batch);
  TESSERA_RETURN_IF_ERROR(
      check(layoutSet(layout, kBatchCount, &count, sizeof(count)), "cannot set a batch count"));
  return check(layoutSet(layout, kBatchStride, &stride, sizeof(stride)),
               "cannot set a batch stride");
}

/// Our rows are cuBLASLt's columns, so its bias, one element per row of its result, is added to
/// every row of ours. The pointer is part of the descriptor: devices that share it set their own.
Status CublasLt::setEpilogue(const GemmStep &step, const void *bias, Product &product) {
  if (!step.hasEpilogue())
    return {};
  uint32_t epilogue = step.epilogue == Epilogue::relu   ? kEpilogueRelu
                      : step.epilogue == Epilogue::gelu ? kEpilogueGelu
                                                        : 0;
  epilogue |= bias ? kEpilogueBias : 0;
  TESSERA_RETURN_IF_ERROR(check(descSet(product.operation, kEpilogue, &epilogue, sizeof(epilogue)),
                                "cannot set an epilogue"));
  if (!bias)
    return {};
  return check(descSet(product.operation, kBiasPointer, &bias, sizeof(bias)), "cannot set a bias");
}

/// cuBLAS is column-major: our row-major matrices are transposed there, so it computes C^T = B^T
/// A^T on our buffers as they are.
Status CublasLt::describe(const GemmStep &step, const void *const (&pointers)[4],
                          Product &product) {
  int type = dataTypeOf(step.dtype), result = dataTypeOf(step.resultDType.value_or(step.dtype));
  product.isDouble = step.dtype == DType::f64;
  TESSERA_RETURN_IF_ERROR(check(
      descCreate(&product.operation, computeOf(step.dtype), product.isDouble ? kReal64 : kReal32),
      "cannot create a matrix product"));
  int32_t first = step.transB, second = step.transA;
  TESSERA_RETURN_IF_ERROR(check(descSet(product.operation, kTransA, &first, sizeof(first)),
                                "cannot set a transposition"));
  TESSERA_RETURN_IF_ERROR(check(descSet(product.operation, kTransB, &second, sizeof(second)),
                                "cannot set a transposition"));
  TESSERA_RETURN_IF_ERROR(setEpilogue(step, pointers[3], product));
  TESSERA_RETURN_IF_ERROR(layout(product.b, type, step.transB ? step.k : step.n,
                                 step.transB ? step.n : step.k, step.ldb, step.batch,
                                 step.strideB));
  TESSERA_RETURN_IF_ERROR(layout(product.a, type, step.transA ? step.m : step.k,
                                 step.transA ? step.k : step.m, step.lda, step.batch,
                                 step.strideA));
  return layout(product.c, result, step.n, step.m, step.ldc, step.batch, step.strideC);
}

/// If the library refuses a product, for whatever reason, a kernel of the runtime is slower but
/// correct: heuristics have been observed to fail with an internal error during a capture.
void CublasLt::refuse(const GemmStep &step, Product &product, Status_t status) const {
  product.isPossible = false;
  std::fprintf(stderr,
               "tessera: warning: cuBLASLt cannot multiply %lld x %lld x %lld %s (%s, status %d); "
               "using a plain kernel, which is slower\n",
               static_cast<long long>(step.m), static_cast<long long>(step.n),
               static_cast<long long>(step.k), std::string(toString(step.dtype)).c_str(),
               status == 0 || status == kNotSupported ? "no algorithm" : "failed", status);
}

Status CublasLt::choose(const GemmStep &step, const void *const (&pointers)[4], Product &product) {
  void *preference = nullptr;
  TESSERA_RETURN_IF_ERROR(check(preferenceCreate(&preference), "cannot create a preference"));
  auto bytes = static_cast<uint64_t>(kWorkspaceBytes);
  int found = 0;
  Status status = check(preferenceSet(preference, kMaxWorkspace, &bytes, sizeof(bytes)),
                        "cannot set the size of the workspace");
  // Its A is our B; C and D are the same.
  const void *const theirs[4] = {pointers[1], pointers[0], pointers[2], pointers[2]};
  for (int i = 0; i < 4 && status.ok(); ++i) {
    auto address = reinterpret_cast<uintptr_t>(theirs[i]) | 256;
    auto alignment = static_cast<uint32_t>(address & (~address + 1));
    status = check(preferenceSet(preference, kAlignmentOfA + i, &alignment, sizeof(alignment)),
                   "cannot set an alignment");
  }
  if (status.ok()) {
    // An unsupported product gives an error status or an empty list.
    Status_t answer = heuristic(handle, product.operation, product.b, product.a, product.c,
                                product.c, preference, 1, &product.chosen, &found);
    product.isPossible = answer == 0 && found > 0 && product.chosen.state == 0;
    if (!product.isPossible)
      refuse(step, product, answer);
  }
  preferenceDestroy(preference);
  return status;
}

Status CublasLt::prepare(const GemmStep &step, const void *const (&pointers)[4]) {
  Product &product = products[&step];
  if (product.operation)
    return {};
  TESSERA_RETURN_IF_ERROR(describe(step, pointers, product));
  return choose(step, pointers, product);
}

Expected<bool> CublasLt::multiply(const GemmStep &step, const void *a, const void *b, void *c,
                                  const void *bias, void *workspace, CuStream stream) {
  TESSERA_RETURN_IF_ERROR(prepare(step, {a, b, c, bias}));
  Product &product = products[&step];
  if (!product.isPossible)
    return false;
  if (bias)
    TESSERA_RETURN_IF_ERROR(setEpilogue(step, bias, product));
  double one = 1, add = step.accumulate;
  auto oneFloat = 1.0f, addFloat = static_cast<float>(add);
  const void *alpha = product.isDouble ? static_cast<const void *>(&one) : &oneFloat;
  const void *beta = product.isDouble ? static_cast<const void *>(&add) : &addFloat;
  Status_t done = matmul(handle, product.operation, alpha, b, product.b, a, product.a, beta, c,
                         product.c, c, product.c, &product.chosen.algorithm, workspace,
                         static_cast<size_t>(kWorkspaceBytes), stream);
  if (done != 0)
    refuse(step, product, done);
  return done == 0;
}

} // namespace tessera::runtime::gpu
