//===- CublasLt.h - Matrix products on a GPU --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_CUBLASLT_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_CUBLASLT_H

#include "CudaApi.h"
#include "tessera/Runtime/Artifact/Program.h"

#include <map>

namespace tessera::runtime::gpu {

/// cuBLASLt, opened with dlopen if a program has products. Descriptors and the algorithm of each
/// product are chosen once.
class CublasLt {
public:
  static constexpr int64_t kWorkspaceBytes = int64_t(32) << 20; ///< NVIDIA's choice for Hopper

  Status open();
  /// Frees its resources; no work may be running.
  void close();
  /// Lets products of f32 round their operands to TF32 (10 bits of mantissa), which tensor cores
  /// multiply; sums are f32. Call it before products are prepared.
  void useTf32() { tf32 = true; }
  /// cublasComputeType_t of products of a dtype, and cudaDataType of a dtype.
  int computeOf(DType dtype) const;
  static int dataTypeOf(DType dtype);
  /// Whether it multiplies a dtype: floats only.
  static bool multiplies(DType dtype);
  /// Chooses the algorithm of a product, once. `pointers` of A, B, C and the bias give their
  /// alignments; later pointers must have at least the same alignments.
  Status prepare(const GemmStep &step, const void *const (&pointers)[4]);
  /// C = epilogue(A B (+ C) (+ bias)) on a stream, for a prepared product; `workspace` has
  /// kWorkspaceBytes. Returns false, without an effect and after a warning, if the library does not
  /// support the product.
  Expected<bool> multiply(const GemmStep &step, const void *a, const void *b, void *c,
                          const void *bias, void *workspace, CuStream stream);

private:
  using Status_t = int;
  struct Algorithm {
    uint64_t data[8];
  };
  struct Heuristic {
    Algorithm algorithm;
    size_t workspace;
    Status_t state;
    float waves;
    int reserved[4];
  };
  struct Product {
    void *operation = nullptr, *a = nullptr, *b = nullptr, *c = nullptr;
    Heuristic chosen{};
    bool isDouble = false, isPossible = false;
  };
  /// Finds the functions and initializes the library.
  Status begin();
  Status check(Status_t status, const char *what) const;
  Status layout(void *&layout, int type, int64_t rows, int64_t columns, int64_t leading,
                int64_t batch, int64_t stride);
  Status describe(const GemmStep &step, const void *const (&pointers)[4], Product &product);
  Status choose(const GemmStep &step, const void *const (&pointers)[4], Product &product);
  /// Leaves the product to a kernel of the runtime, with a warning.
  void refuse(const GemmStep &step, Product &product, Status_t status) const;
  /// Sets the epilogue of the product within the library.
  Status setEpilogue(const GemmStep &step, const void *bias, Product &product);

  SharedLibrary library;
  bool tf32 = false;
  void *handle = nullptr;
  std::map<const GemmStep *, Product> products; ///< looked up; iterated only to free them
  Status_t (*create)(void **) = nullptr;
  Status_t (*destroy)(void *) = nullptr, (*descDestroy)(void *) = nullptr,
                           (*layoutDestroy)(void *) = nullptr;
  Status_t (*descCreate)(void **, int compute, int scale) = nullptr;
  Status_t (*descSet)(void *, int attribute, const void *, size_t) = nullptr;
  Status_t (*layoutCreate)(void **, int type, uint64_t rows, uint64_t columns, int64_t) = nullptr;
  Status_t (*layoutSet)(void *, int attribute, const void *, size_t) = nullptr;
  Status_t (*preferenceCreate)(void **) = nullptr;
  Status_t (*preferenceSet)(void *, int attribute, const void *, size_t) = nullptr;
  Status_t (*preferenceDestroy)(void *) = nullptr;
  Status_t (*heuristic)(void *, void *, void *, void *, void *, void *, void *, int, Heuristic *,
                        int *) = nullptr;
  Status_t (*matmul)(void *, void *, const void *alpha, const void *, void *, const void *, void *,
                     const void *beta, const void *, void *, void *, void *, const Algorithm *,
                     void *, size_t, CuStream) = nullptr;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_CUBLASLT_H
