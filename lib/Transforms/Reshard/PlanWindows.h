//===- PlanWindows.h - Where windows are made -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_PLANWINDOWS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_PLANWINDOWS_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

namespace tessera::dist {

/// Decides which reshards to windows remain (see PlanWindows.cpp), and erases unused reshards. The
/// reshards of a function must not be planned yet; planned ones are left as they are.
void planWindows(mlir::func::FuncOp function, const MeshTable &meshes, OpShardings &shardings);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_PLANWINDOWS_H
