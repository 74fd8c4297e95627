//===- PackedHalfGemm.h - Products of packed 16-bit floats ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_PACKEDHALFGEMM_H
#define TESSERA_LIB_RUNTIME_EXECUTION_PACKEDHALFGEMM_H

#include "tessera/Runtime/Execution/Gemm.h"

#include "HalfGemmKernels.h"

namespace tessera::runtime {

/// A · B (+ C) with operands of the type of `kernels` and C in f32, without bias and epilogue. An
/// element's summands are added in an order that depends on k alone, so that any cut in rows and
/// columns has equal bits.
void multiplyPacked(const HalfGemmKernels &kernels, const GemmProblem &problem, const uint16_t *a,
                    const uint16_t *b, float *c);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_PACKEDHALFGEMM_H
