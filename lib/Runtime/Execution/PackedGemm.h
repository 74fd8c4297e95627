//===- PackedGemm.h - Products of packed blocks -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_PACKEDGEMM_H
#define TESSERA_LIB_RUNTIME_EXECUTION_PACKEDGEMM_H

#include "tessera/Runtime/Execution/Gemm.h"

#include "GemmKernels.h"

namespace tessera::runtime {

/// A · B (+ C) in f32 by tiles of `kernels`, without bias and epilogue. An element's summands are
/// added in an order that depends on k alone, so that any cut in rows and columns has equal bits.
void multiplyPacked(const GemmKernels &kernels, const GemmProblem &problem, const float *a,
                    const float *b, float *c);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_PACKEDGEMM_H
