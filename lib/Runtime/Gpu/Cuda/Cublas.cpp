//===- Cublas.cpp - Batched products by pointers --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cublas.h"

#include <algorithm>
#include <cstdio>

namespace tessera::runtime::gpu {

constexpr int kAlgorithmDefault = -1, kReal64 = 1;

Status Cublas::open() {
  if (isOpen())
    return {};
  return library.open({"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
                      "batches over two dimensions need cuBLAS, which comes with the CUDA toolkit",
                      [this] { return begin(); });
}

Status Cublas::begin() {
  TESSERA_RETURN_IF_ERROR(library.find(create, "cublasCreate_v2"));
  TESSERA_RETURN_IF_ERROR(library.find(destroy, "cublasDestroy_v2"));
  TESSERA_RETURN_IF_ERROR(library.find(setStream, "cublasSetStream_v2"));
  TESSERA_RETURN_IF_ERROR(library.find(setWorkspace, "cublasSetWorkspace_v2"));
  TESSERA_RETURN_IF_ERROR(library.find(gemmBatched, "cublasGemmBatchedEx"));
  Status_t status = create(&handle);
  if (status == 0)
    return {};
  handle = nullptr;
  return Status::error("cannot initialize cuBLAS (status " + std::to_string(status) + ")");
}

void Cublas::close() {
  if (handle)
    (void)destroy(handle);
  handle = nullptr;
}

std::vector<const void *> Cublas::addresses(const GemmStep &step,
                                            const std::vector<GemmOperands> &operands) {
  int64_t size = sizeOf(step.dtype), resultSize = sizeOf(step.resultDType.value_or(step.dtype));
  std::vector<const void *> a, b, c;
  for (const GemmOperands &each : operands)
    for (int64_t batch = 0; batch < step.batch; ++batch) {
      auto at = [&](const void *base, int64_t stride, int64_t bytes) -> const void * {
        return static_cast<const std::byte *>(base) + batch * stride * bytes;
      };
      a.push_back(at(each.a, step.strideA, size));
      b.push_back(at(each.b, step.strideB, size));
      c.push_back(at(each.c, step.strideC, resultSize));
    }
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

bool Cublas::areAligned(const GemmStep &step, const std::vector<const void *> &addresses) {
  constexpr int64_t kAlignment = 16;
  int64_t size = sizeOf(step.dtype), resultSize = sizeOf(step.resultDType.value_or(step.dtype));
  auto isMultiple = [](int64_t bytes) { return bytes % kAlignment == 0; };
  return isMultiple(step.lda * size) && isMultiple(step.ldb * size) &&
         isMultiple(step.ldc * resultSize) &&
         std::all_of(addresses.begin(), addresses.end(), [&](const void *each) {
           return isMultiple(reinterpret_cast<intptr_t>(each));
         });
}

/// Column-major like cuBLASLt: C^T = B^T A^T.
Expected<bool> Cublas::multiply(const GemmStep &step, std::byte *pointers, int64_t count, int type,
                                int resultType, int compute, void *workspace, size_t workspaceBytes,
                                CuStream stream) {
  if (refused)
    return false;
  const auto *as = reinterpret_cast<const void *const *>(pointers);
  const void *const *bs = as + count;
  auto *cs = reinterpret_cast<void *const *>(pointers) + 2 * count;
  double one = 1, add = step.accumulate;
  auto oneFloat = 1.0f, addFloat = static_cast<float>(add);
  bool isDouble = type == kReal64;
  const void *alpha = isDouble ? static_cast<const void *>(&one) : &oneFloat;
  const void *beta = isDouble ? static_cast<const void *>(&add) : &addFloat;
  auto narrow = [](int64_t value) { return static_cast<int>(value); };
  Status_t status = setStream(handle, stream); // resets the workspace
  if (status == 0)
    status = setWorkspace(handle, workspace, workspaceBytes);
  if (status == 0)
    status = gemmBatched(handle, step.transB, step.transA, narrow(step.n), narrow(step.m),
                         narrow(step.k), alpha, bs, type, narrow(step.ldb), as, type,
                         narrow(step.lda), beta, cs, resultType, narrow(step.ldc), narrow(count),
                         compute, kAlgorithmDefault);
  refused = status != 0;
  if (refused)
    std::fprintf(stderr,
                 "tessera: warning: cuBLAS cannot compute %lld products of %lld x %lld x %lld in "
                 "one call (status %d); using one cuBLASLt call per product, which is slower\n",
                 static_cast<long long>(count), static_cast<long long>(step.m),
                 static_cast<long long>(step.n), static_cast<long long>(step.k), status);
  return !refused;
}

} // namespace tessera::runtime::gpu
