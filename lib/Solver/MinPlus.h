//===- MinPlus.h - Computation of one bucket --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_MINPLUS_H
#define TESSERA_LIB_SOLVER_MINPLUS_H

#include "Plan.h"

#include <memory>

namespace tessera::solver {

/// A table of costs in memory with any order of dimensions. Infinite entries are never chosen.
struct Table {
  std::vector<Index> sizes;
  std::vector<int64_t> strides; ///< by dimension
  const double *data = nullptr; ///< of the model, or `own`
  std::unique_ptr<double[]> own;
  bool hasInfinite = false;
  std::vector<std::pair<Index, std::unique_ptr<double[]>>> turned; ///< copies, by last dimension

  int64_t entries() const;
  /// Row-major, first dimension slowest; the content is uninitialized.
  void allocate(std::vector<Index> sizes);
};

/// result[rest] = min over the eliminated variables of the sum of the parts. `parts[p]` is the
/// table of the bucket's part p and caches copies with another last dimension. After the deadline
/// it stops with a result that must not be used.
Table minPlus(const Bucket &bucket, const std::vector<Table *> &parts,
              const Deadline *deadline = nullptr);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MINPLUS_H
