//===- ComputeAgain.h - Looked-up values in several shardings ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEAGAIN_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEAGAIN_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

#include "tessera/Planning/CostOptions.h"

namespace tessera::dist {

/// Replaces reshards of looked-up and elementwise values by values that are computed again, where
/// that takes less time and sends no more (see ComputeAgain.cpp). The reshards of the function must
/// not be planned yet; planned ones are left as they are.
void computeAgain(mlir::func::FuncOp function, const MeshTable &meshes, OpShardings &shardings,
                  const CostOptions &cost);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEAGAIN_H
