//===- ValueShardings.h - Read and write shardings in the IR ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the IR stores the sharding of a value (function arguments and results,
// op results, loops and branches), and the meshes of a module.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_IR_VALUESHARDINGS_H
#define TESSERA_DIALECT_DIST_IR_VALUESHARDINGS_H

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Sharding/Layout.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace tessera::dist {

/// The meshes that a module declares, by name in order of declaration.
class MeshTable {
public:
  explicit MeshTable(mlir::ModuleOp module);
  bool empty() const { return meshes.empty(); }
  size_t size() const { return meshes.size(); }
  /// Null if no mesh has that name.
  const sharding::Mesh *lookup(mlir::StringAttr name) const;
  const sharding::Mesh &get(mlir::FlatSymbolRefAttr name) const;
  /// The only mesh, or null.
  mlir::FlatSymbolRefAttr single() const;
  auto begin() const { return meshes.begin(); }
  auto end() const { return meshes.end(); }

private:
  llvm::MapVector<mlir::StringAttr, sharding::Mesh> meshes;
};

/// Whether a function is of the local view.
bool isLocalView(mlir::Operation *function);

/// The sharding attribute of a value: of a function argument, an op result, or an argument of a
/// loop's body (that of the loop's result). Null if it has none.
ShardingAttr getSharding(mlir::Value value);
/// Sets it. The value must be a function argument, an op result or a loop's region argument.
void setSharding(mlir::Value value, ShardingAttr sharding);
/// Sets the shardings of all results of an op (null: none).
void setResultShardings(mlir::Operation *op, llvm::ArrayRef<ShardingAttr> shardings);

/// `value`'s sharding resolved on its mesh; the attribute must have passed the verifier.
sharding::TensorSharding resolveVerified(ShardingAttr attr, const MeshTable &meshes,
                                         mlir::Type type);

/// The shape of a ranked tensor type as a vector.
std::vector<int64_t> shapeOf(mlir::Type type);
/// Bytes of one element: i1 takes one, index eight.
int64_t bytesPerElement(mlir::Type elementType);
/// The local type of a tensor under a sharding.
mlir::RankedTensorType localType(mlir::RankedTensorType global,
                                 const sharding::TensorSharding &sharding);

/// The global type of a value of the local view (`dist.global_type`), or its own type.
mlir::RankedTensorType getGlobalType(mlir::Value value);
void setGlobalType(mlir::Value value, mlir::RankedTensorType type);

/// `dist.name` of an argument or result, else argK / resultK.
std::string argumentName(mlir::FunctionOpInterface function, unsigned index);
std::string resultName(mlir::FunctionOpInterface function, unsigned index);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_IR_VALUESHARDINGS_H
