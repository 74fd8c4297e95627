//===- CostOptions.h - Objective and machine of passes ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_COSTOPTIONS_H
#define TESSERA_PLANNING_COSTOPTIONS_H

#include "tessera/Sharding/Topology.h"

#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// The options `objective` and `topology` that passes with a cost have in common.
struct CostOptions {
  sharding::Objective objective = sharding::Objective::time;
  sharding::Topology topology;
};

/// Reads them: objective is "time" or "bytes", topology the path of a JSON file or empty for the
/// default. Emits an error on `at` that names what is wrong.
mlir::FailureOr<CostOptions> readCostOptions(mlir::Operation *at, llvm::StringRef objective,
                                             llvm::StringRef topology);

/// The bytes of a memory budget in GiB; 0: none. Emits an error on `at`, in the name of the pass,
/// for a negative or non-finite budget.
mlir::FailureOr<double> readMemoryBudget(mlir::Operation *at, llvm::StringRef pass,
                                         double gibibytes);

/// Limit on the memory with overlap, relative to that without, if there is no budget.
inline constexpr double kOverlapMemory = 1.1;

} // namespace tessera::dist

#endif // TESSERA_PLANNING_COSTOPTIONS_H
