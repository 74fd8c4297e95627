//===- MeshClasses.h - Classes of values on the same mesh -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_MESHCLASSES_H
#define TESSERA_PLANNING_MESHCLASSES_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::dist {

/// Union-find over values; a class has the mesh and the location of its annotation.
class MeshClasses {
public:
  unsigned of(mlir::Value value) {
    auto [it, inserted] = index.try_emplace(value, parent.size());
    if (inserted) {
      parent.push_back(parent.size());
      mesh.emplace_back();
    }
    return find(it->second);
  }

  mlir::LogicalResult unite(mlir::Operation *at, mlir::Value a, mlir::Value b) {
    unsigned x = of(a), y = of(b);
    if (x == y)
      return mlir::success();
    if (mesh[x] && mesh[y] && mesh[x] != mesh[y])
      return at->emitError() << "'" << at->getName() << "' has operands on mesh '"
                             << mesh[x].getValue() << "' and on mesh '" << mesh[y].getValue()
                             << "'; move one with dist.reshard";
    parent[std::max(x, y)] = std::min(x, y);
    if (!mesh[std::min(x, y)])
      mesh[std::min(x, y)] = mesh[std::max(x, y)];
    return mlir::success();
  }

  mlir::LogicalResult pin(mlir::Operation *at, mlir::Value value, mlir::FlatSymbolRefAttr name) {
    unsigned x = of(value);
    if (mesh[x] && mesh[x] != name)
      return at->emitError() << "'" << at->getName() << "' puts a value of mesh '"
                             << mesh[x].getValue() << "' on mesh '" << name.getValue()
                             << "'; move it with dist.reshard";
    mesh[x] = name;
    return mlir::success();
  }

  mlir::FlatSymbolRefAttr meshOf(mlir::Value value) { return mesh[of(value)]; }

private:
  unsigned find(unsigned x) {
    while (parent[x] != x)
      x = parent[x] = parent[parent[x]];
    return x;
  }
  llvm::DenseMap<mlir::Value, unsigned> index;
  std::vector<unsigned> parent;
  std::vector<mlir::FlatSymbolRefAttr> mesh;
};

/// All tensors that an op ties to one mesh: operands, results, values read and yielded by its
/// regions.
void collectTied(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &tied);

/// Ties the values of a function. Skips ops for which `isLoose` holds. Fails with an error at the
/// op where two meshes meet.
mlir::LogicalResult classify(mlir::func::FuncOp function, MeshClasses &classes,
                             llvm::function_ref<bool(mlir::Value)> isLoose);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_MESHCLASSES_H
