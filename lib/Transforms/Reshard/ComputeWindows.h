//===- ComputeWindows.h - Windows of computed values ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEWINDOWS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEWINDOWS_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

namespace tessera::dist {

/// Computes windows of values where that sends less than moving them (see ComputeWindows.cpp).
void computeWindows(mlir::func::FuncOp function, const MeshTable &meshes, OpShardings &shardings);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_COMPUTEWINDOWS_H
