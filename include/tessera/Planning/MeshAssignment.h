//===- MeshAssignment.h - The mesh of each value ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_MESHASSIGNMENT_H
#define TESSERA_PLANNING_MESHASSIGNMENT_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::dist {

/// The mesh of every tensor of a function. Values connected by an op are on the same mesh: that of
/// an annotation, else the first declared one. Meshes meet only through dist.reshard.
class MeshAssignment {
public:
  /// Fails, naming both meshes, if connected operands are on different meshes.
  static mlir::FailureOr<MeshAssignment> compute(mlir::func::FuncOp function,
                                                 const MeshTable &meshes);

  /// Null only when the module declares no mesh.
  mlir::FlatSymbolRefAttr lookup(mlir::Value value) const;
  /// The mesh of result `index` of the function.
  mlir::FlatSymbolRefAttr lookupResult(unsigned index) const { return results[index]; }

private:
  mlir::FlatSymbolRefAttr single; ///< of every value, if the module declares one mesh
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> assigned;
  mlir::SmallVector<mlir::FlatSymbolRefAttr> results;
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_MESHASSIGNMENT_H
