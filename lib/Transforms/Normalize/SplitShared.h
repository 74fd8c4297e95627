//===- SplitShared.h - One argument for each mesh ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITSHARED_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITSHARED_H

#include "tessera/Planning/MeshAssignment.h"

namespace tessera::dist {

/// Splits an unannotated argument that is used on several meshes into one copy per mesh
/// (`dist.argument` has its index).
void splitSharedArguments(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITSHARED_H
