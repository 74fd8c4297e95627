//===- ReshardCache.h - Reshard plans of a context --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_IR_RESHARDCACHE_H
#define TESSERA_DIALECT_DIST_IR_RESHARDCACHE_H

#include "tessera/Sharding/ReshardPlanner.h"

#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/MLIRContext.h"

namespace tessera::dist {

/// The dist dialect owns the planners of its context, so that all passes and searches in a context
/// plan each reshard once.
class ReshardCacheInterface : public mlir::DialectInterface::Base<ReshardCacheInterface> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReshardCacheInterface)
  explicit ReshardCacheInterface(mlir::Dialect *dialect) : Base(dialect) {}

  sharding::ReshardCache &plans() const { return cache; }

private:
  mutable sharding::ReshardCache cache;
};

/// The planner of a context for an objective on a machine. Requires that the dist dialect is
/// loaded.
sharding::ReshardPlanner &plannerOf(mlir::MLIRContext *context, sharding::Objective objective,
                                    const sharding::Topology &topology);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_IR_RESHARDCACHE_H
