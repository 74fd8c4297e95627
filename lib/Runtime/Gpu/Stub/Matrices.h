//===- Matrices.h - Emulated matrix instructions ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ldmatrix, mma.sync.m16n8k16 and, of tf32, mma.sync.m16n8k8 on the fragments that the PTX ISA
// defines ("Matrix Fragments for mma.m16n8k16 with floating point type", "Warp-level matrix
// instructions: ldmatrix"). With lane l, g = l / 4, t = l % 4, a word of two halves h:
//
//   a   word 0 (g, 2t + h)   1 (g + 8, 2t + h)   2 (g, 2t + 8 + h)   3 (g + 8, 2t + 8 + h)
//   b   word 0 (2t + h, g)   1 (2t + 8 + h, g)
//   c, d     0 (g, 2t)       1 (g, 2t + 1)       2 (g + 8, 2t)       3 (g + 8, 2t + 1)
//   tf32, a   word 0 (g, t)   1 (g + 8, t)   2 (g, t + 4)   3 (g + 8, t + 4)
//         b   word 0 (t, g)   1 (t + 4, g)
//   ldmatrix word m: of matrix m, (g, 2t + h); with .trans (2t + h, g)
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_MATRICES_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_MATRICES_H

#include <cstdint>

namespace tessera::runtime {

enum class MatrixInstruction { load, multiplyBf16, multiplyF16, multiplyTf32 };

/// Operands and results of a lane.
struct MatrixOperands {
  MatrixInstruction instruction = MatrixInstruction::load;
  uint32_t count = 0; ///< of a load: 1, 2 or 4 matrices
  bool transposed = false;
  const void *row = nullptr; ///< row l % 8 of matrix l / 8
  uint32_t *loaded = nullptr;
  const uint32_t *a = nullptr, *b = nullptr; ///< 4 and 2 words
  const float *c = nullptr;                  ///< 4, as d
  float *d = nullptr;
};

/// The value of a bf16, or f16.
float widenBf16(uint16_t bits);
float widenF16(uint16_t bits);

/// Executes the instruction for all 32 lanes of a warp.
void execute(MatrixOperands *const *lanes);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_MATRICES_H
