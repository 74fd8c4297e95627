//===- GemmArguments.h - Parameters of the plain product --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_GEMMARGUMENTS_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_GEMMARGUMENTS_H

#include "MoveArguments.h"

namespace tessera::runtime::gpu {

constexpr int kTypeI1 = 8; ///< extends MoveArguments.h: sums are or, products are and
constexpr int kEpilogueNone = 0, kEpilogueRelu = 1, kEpilogueGelu = 2;

/// The parameter of the kernel `tessera_gemm`: a GemmStep with pointers.
struct GemmArguments {
  int dtype, resultType, transA, transB, accumulate, epilogue;
  long long batch, m, n, k, lda, ldb, ldc, strideA, strideB, strideC;
  const void *a, *b;
  void *c;
  const void *bias; ///< null: none
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_GEMMARGUMENTS_H
