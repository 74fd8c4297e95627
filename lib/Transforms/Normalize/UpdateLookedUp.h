//===- UpdateLookedUp.h - Updates of what was looked up ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_UPDATELOOKEDUP_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_UPDATELOOKEDUP_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

namespace tessera::dist {

/// Rewrites x[i] = f(x[i]) as a choice between f(x) and x where the indexed dimension may be cut.
void updateLookedUp(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_UPDATELOOKEDUP_H
