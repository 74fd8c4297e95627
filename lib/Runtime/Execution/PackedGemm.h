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
#include "HalfGemmKernels.h"

namespace tessera::runtime {

// `Kernels` is GemmKernels (f32) or HalfGemmKernels (16-bit floats). C is f32; bias and epilogue
// are ignored. An element's summands are added in an order that depends on k alone, so that any
// cut in rows and columns has equal bits, and products of packed matrices have them, too.

/// A · B (+ C).
template <typename Kernels>
void multiplyPacked(const Kernels &kernels, const GemmProblem &problem,
                    const typename Kernels::Element *a, const typename Kernels::Element *b,
                    float *c);

/// Elements of a k x n matrix B that is packed whole.
template <typename Kernels> int64_t packedElements(const Kernels &kernels, int64_t k, int64_t n);

/// Packs columns [begin, end) of B, whose n, k, transB and ldb are the problem's. `begin` is a
/// multiple of GemmCut::kColumns, `end` too, or n.
template <typename Kernels>
void packRight(const Kernels &kernels, const GemmProblem &problem,
               const typename Kernels::Element *b, int64_t begin, int64_t end,
               typename Kernels::Element *packed);

/// A · B (+ C) for the problem's n columns of B from `column`, a multiple of GemmCut::kColumns, of
/// `columns` that are packed. The problem's transB and ldb are ignored.
template <typename Kernels>
void multiplyByPacked(const Kernels &kernels, const GemmProblem &problem,
                      const typename Kernels::Element *a, const typename Kernels::Element *packed,
                      int64_t column, int64_t columns, float *c);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_PACKEDGEMM_H
