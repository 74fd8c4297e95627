//===- StepOps.h - Classify ops of the local view as steps ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_STEPOPS_H
#define TESSERA_LIB_CODEGEN_STEPOPS_H

#include "mlir/IR/Operation.h"

namespace tessera::codegen {

/// The kind of step of an op at the level of a function, loop or branch.
enum class StepKind {
  scalar,  ///< arithmetic on scalars: recomputed by each user
  free,    ///< tensor.empty, a fill, a constant of one value, a slice for kernels: likewise
  view,    ///< another shape of a buffer, or a contiguous part of it
  gemm,    ///< a contraction that a gemm computes
  compute, ///< becomes a kernel, alone or with others
  other,   ///< collectives, control flow, existing groups and kernels, coordinates
};

StepKind classify(mlir::Operation *op);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_STEPOPS_H
