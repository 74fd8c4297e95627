//===- WindowReshards.h - Reshards to windows of a value --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_WINDOWRESHARDS_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_WINDOWRESHARDS_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

namespace tessera::dist {

/// What the two parts of the planning of windows share.
class WindowReshards {
protected:
  WindowReshards(const MeshTable &meshes, OpShardings &shardings)
      : meshes(meshes), shardings(shardings) {}

  sharding::TensorSharding shardingOf(mlir::Value value) const;

  /// A reshard in the place of `before`, with the discardable attributes of `like`.
  ReshardOp reshard(mlir::Operation *before, mlir::Location loc, mlir::Value value,
                    mlir::FlatSymbolRefAttr mesh, const sharding::TensorSharding &target,
                    mlir::Attribute fill, mlir::DictionaryAttr attributes) const;

  /// The operand of the reshard that produces the value, or the value; null if it is on another
  /// mesh.
  static mlir::Value sourceOf(mlir::Value value, mlir::FlatSymbolRefAttr mesh);

  /// The op sharding for which the result of `op` has the sharding `target`.
  static std::optional<sharding::OpSharding> opShardingFor(mlir::Operation *op,
                                                           const sharding::Mesh &mesh,
                                                           const sharding::ShardingRule &rule,
                                                           const sharding::TensorSharding &target);

  /// Wire bytes of an exchange to `target`.
  int64_t exchangedBytes(mlir::Value value, const sharding::TensorSharding &target,
                         const sharding::Mesh &mesh) const;

  const MeshTable &meshes;
  OpShardings &shardings;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_WINDOWRESHARDS_H
