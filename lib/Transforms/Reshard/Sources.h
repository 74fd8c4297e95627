//===- Sources.h - Values recomputed at their uses --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_SOURCES_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_SOURCES_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

namespace tessera::dist {

/// Rematerializes splats, and elementwise functions of splats and indices, in the sharding that a
/// user needs: computing them is cheaper than moving them.
class Sources {
public:
  Sources(const MeshTable &meshes, OpShardings &shardings) : meshes(meshes), shardings(shardings) {}

  /// Whether any part of an op's result can be recomputed.
  static bool isSource(mlir::Operation *op);
  /// The source with another sharding, before the original; null if that is impossible. One per
  /// sharding.
  mlir::Value make(mlir::Operation *source, ShardingAttr sharding);
  /// Records that users of a source read another one.
  void replaced(mlir::Operation *source) { unused.push_back(source); }
  /// Erases unused sources, and operands that only they read.
  void eraseReplaced();

private:
  ShardingAttr operandOf(mlir::Operation *source, int64_t index, ShardingAttr sharding);
  bool canMake(mlir::Operation *source, ShardingAttr sharding);

  const MeshTable &meshes;
  OpShardings &shardings;
  llvm::DenseMap<std::pair<mlir::Value, ShardingAttr>, mlir::Value> made; // looked up only
  llvm::SmallVector<mlir::Operation *> unused;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RESHARD_SOURCES_H
