//===- MeshAssignment.h - Which mesh a value lies on ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_MESHASSIGNMENT_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_MESHASSIGNMENT_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::dist {

/// The mesh of every tensor of a function. Values that an op ties together lie on one mesh: the one
/// that an annotation names, else the first declared. Meshes meet only through dist.reshard.
class MeshAssignment {
public:
  /// Fails, naming both meshes, when operands that meet lie on different ones.
  static mlir::FailureOr<MeshAssignment> compute(mlir::func::FuncOp function,
                                                 const MeshTable &meshes);

  /// Null only when the module declares no mesh.
  mlir::FlatSymbolRefAttr lookup(mlir::Value value) const;
  /// The mesh of result `index` of the function.
  mlir::FlatSymbolRefAttr lookupResult(unsigned index) const { return results[index]; }

private:
  mlir::FlatSymbolRefAttr single; ///< of every value, where the module declares one mesh
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> assigned;
  mlir::SmallVector<mlir::FlatSymbolRefAttr> results;
};

/// Gives an unannotated argument that is used on several meshes one copy a mesh (`dist.argument`
/// says whose), so that each copy lies on one.
void splitSharedArguments(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_MESHASSIGNMENT_H
