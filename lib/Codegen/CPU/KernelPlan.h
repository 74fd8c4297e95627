//===- KernelPlan.h - Plan the vectorization of a nest ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_CPU_KERNELPLAN_H
#define TESSERA_LIB_CODEGEN_CPU_KERNELPLAN_H

#include "../Kernels/KernelNest.h"
#include "KernelTarget.h"

namespace tessera::codegen {

/// The vectorization of a nest. `vector` < 0: scalar code.
struct NestPlan {
  int vector = -1;     ///< the vectorized loop
  int64_t lanes = 1;   ///< elements per vector
  int64_t vectors = 1; ///< adjacent vectors
  int jam = -1;        ///< a parallel loop unrolled into the innermost one for reuse, or -1
  int64_t jams = 1;    ///< its unroll factor
  bool transpose =
      false; ///< `jam` is a contiguous direction of some operand: transpose in registers
  llvm::SmallVector<unsigned> outer; ///< the other parallel loops, outermost first
  llvm::SmallVector<unsigned> inner; ///< the other reduction loops, outermost first
};

/// Chooses vector direction and register blocking by the number of instructions. May split a loop
/// of `nest` in two.
NestPlan planNest(Nest &nest, const KernelTarget &target);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_CPU_KERNELPLAN_H
