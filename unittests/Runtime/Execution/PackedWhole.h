//===- PackedWhole.h - Products whose right operand is packed ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_EXECUTION_PACKEDWHOLE_H
#define TESSERA_UNITTESTS_RUNTIME_EXECUTION_PACKEDWHOLE_H

#include "Execution/PackedGemm.h"

#include <algorithm>
#include <vector>

namespace tessera::runtime {

/// Packs B in two calls where it is wide enough, then multiplies block by block.
template <typename Kernels>
void multiplyPackedWhole(const Kernels &kernels, const GemmProblem &p,
                         const typename Kernels::Element *a, const typename Kernels::Element *b,
                         float *c) {
  std::vector<typename Kernels::Element> packed(packedElements(kernels, p.k, p.n));
  const int64_t cut = std::min(p.n, GemmCut::kColumns);
  packRight(kernels, p, b, cut, p.n, packed.data());
  packRight(kernels, p, b, 0, cut, packed.data());
  for (int64_t column = 0; column < p.n; column += GemmCut::kColumns) {
    GemmProblem part = p;
    part.n = std::min(GemmCut::kColumns, p.n - column);
    multiplyByPacked(kernels, part, a, packed.data(), column, p.n, c + column);
  }
}

} // namespace tessera::runtime

#endif // TESSERA_UNITTESTS_RUNTIME_EXECUTION_PACKEDWHOLE_H
