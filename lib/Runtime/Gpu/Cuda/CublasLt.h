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

/// cuBLASLt, opened with dlopen when a program has products. Descriptors and the algorithm of each
/// product are chosen once.
class CublasLt {
public:
  static constexpr int64_t kWorkspaceBytes = int64_t(32) << 20; ///< NVIDIA's advice for Hopper

  Status open();
  /// Frees what was made; nothing runs any more.
  void close();
  /// Lets products of f32 round their operands to TF32 (10 bits of mantissa), which tensor cores
  /// multiply; sums are f32. Call it before products are prepared.
  void useTf32() { tf32 = true; }
  /// cublasComputeType_t of products of a dtype, and cudaDataType of a dtype.
  int computeOf(DType dtype) const;
  static int dataTypeOf(DType dtype);
  /// Whether it has products of a dtype: those of floats.
  static bool multiplies(DType dtype);
  /// Chooses the algorithm of a product, unless it has been. `pointers` of A, B, C and the bias say
  /// how they are aligned; those of other calls are no less.
  Status prepare(const GemmStep &step, const void *const (&pointers)[4]);
  /// C = epilogue(A B (+ C) (+ bias)) on a stream, of a product that was prepared; `workspace` has
  /// kWorkspaceBytes. False, with nothing done, where the library does not multiply it, which a
  /// warning has said.
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
  Status check(Status_t status, const char *what) const;
  Status layout(void *&layout, int type, int64_t rows, int64_t columns, int64_t leading,
                int64_t batch, int64_t stride);
  Status describe(const GemmStep &step, const void *const (&pointers)[4], Product &product);
  Status choose(const GemmStep &step, const void *const (&pointers)[4], Product &product);
  /// The product is left to a kernel of ours, and the user is told.
  void refuse(const GemmStep &step, Product &product, Status_t status) const;
  /// What follows the product within the library.
  Status setEpilogue(const GemmStep &step, const void *bias, Product &product);

  SharedLibrary library;
  bool tf32 = false;
  void *handle = nullptr;
  std::map<const GemmStep *, Product> products; ///< found; iterated to free them
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
