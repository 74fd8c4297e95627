//===- Cublas.h - Batched products by pointers ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A batch of cuBLASLt has a single stride. Batches over two dimensions (a batch and
// its heads, of rows that contain both) need a pointer for each product, which
// cuBLAS accepts: cublasGemmBatchedEx.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_CUBLAS_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_CUBLAS_H

#include "../Driver.h"
#include "CudaApi.h"

#include <map>

namespace tessera::runtime::gpu {

/// cuBLAS, opened with dlopen if a program has such products.
class Cublas {
public:
  Status open();
  bool isOpen() const { return handle != nullptr; }
  /// Frees its resources; no work may be running.
  void close();
  /// The addresses that a call reads: those of A, then of B, then of C, one for each product and
  /// batch.
  static std::vector<const void *> addresses(const GemmStep &step,
                                             const std::vector<GemmOperands> &operands);
  /// Whether cuBLAS accepts the matrices: it may access 16 bytes at once, at each address and row,
  /// and a misaligned access ends the process's work on the GPU.
  static bool areAligned(const GemmStep &step, const std::vector<const void *> &addresses);
  /// `pointers` is device memory with the addresses of `count` products; `compute` is the compute
  /// type, as of cuBLASLt. Returns false, with a warning and without an effect, if the library
  /// refuses.
  Expected<bool> multiply(const GemmStep &step, std::byte *pointers, int64_t count, int type,
                          int resultType, int compute, void *workspace, size_t workspaceBytes,
                          CuStream stream);

private:
  /// Finds the functions and initializes the library.
  Status begin();

  using Status_t = int;
  SharedLibrary library;
  void *handle = nullptr;
  bool refused = false;
  Status_t (*create)(void **) = nullptr;
  Status_t (*destroy)(void *) = nullptr;
  Status_t (*setStream)(void *, CuStream) = nullptr;
  Status_t (*setWorkspace)(void *, void *, size_t) = nullptr;
  Status_t (*gemmBatched)(void *, int, int, int, int, int, const void *, const void *const *, int,
                          int, const void *const *, int, int, const void *, void *const *, int, int,
                          int, int compute, int algorithm) = nullptr;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_CUBLAS_H
