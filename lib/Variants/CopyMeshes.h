//===- CopyMeshes.h - Copy meshes created by a search -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_VARIANTS_COPYMESHES_H
#define TESSERA_LIB_VARIANTS_COPYMESHES_H

#include "tessera/Dialect/Dist/IR/Dist.h"

namespace tessera {

/// Copies the meshes that the search created in one module to another.
inline void copyMeshes(mlir::ModuleOp from, mlir::ModuleOp to) {
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(to.getBody());
  for (dist::ProcessMeshOp mesh : from.getOps<dist::ProcessMeshOp>())
    if (!mlir::SymbolTable::lookupSymbolIn(to, mesh.getSymName()))
      builder.clone(*mesh);
}

} // namespace tessera

#endif // TESSERA_LIB_VARIANTS_COPYMESHES_H
