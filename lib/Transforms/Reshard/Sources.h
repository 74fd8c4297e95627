//===- Sources.h - Values that are made where they are needed ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RESHARD_SOURCES_H
#define TESSERA_LIB_TRANSFORMS_RESHARD_SOURCES_H

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

namespace tessera::dist {

/// Makes splats, and what is computed of splats and indices element by element, again in the layout
/// that a user needs: computing them costs less than moving them.
class Sources {
public:
  Sources(const MeshTable &meshes, OpShardings &shardings) : meshes(meshes), shardings(shardings) {}

  /// Whether any part of what an op makes can be made again.
  static bool isSource(mlir::Operation *op);
  /// The same source with another sharding, in front of itself; null where it cannot lie so. Made
  /// once for each sharding.
  mlir::Value make(mlir::Operation *source, ShardingAttr sharding);
  /// Notes that users of a source read another one.
  void replaced(mlir::Operation *source) { unused.push_back(source); }
  /// Erases sources that nobody reads any more, and what only they read.
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
