//===- ComputeAtOwners.h - Compute where the only part is -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEATOWNERS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEATOWNERS_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

namespace tessera::dist {

/// What is computed from one part of a cut dimension, such as the loss from the results of a
/// pipeline's last stage, is computed by the device that has the part, and the few values that
/// others need are sent in place of the part. Shardings are decided; reshards are not inserted.
void computeAtOwners(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEATOWNERS_H
