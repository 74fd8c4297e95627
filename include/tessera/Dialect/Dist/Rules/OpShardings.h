//===- OpShardings.h - How ops are distributed ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `dist.op_sharding` on an op of the global view is the one statement of how the
// op is distributed. Propagation and search write it, dist-sink-partials adds
// forwards, and everything else (reshards, partition, reports) reads it here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_OPSHARDINGS_H
#define TESSERA_DIALECT_DIST_RULES_OPSHARDINGS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/RuleTable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <mutex>
#include <unordered_set>

namespace tessera::dist {

/// An op's rule, its sharding, and the shardings of its operands that follow.
struct ShardedOp {
  const sharding::ShardingRule &rule;
  sharding::OpSharding sharding;
  mlir::FlatSymbolRefAttr mesh;             ///< null when no tensor of the op has a sharding
  mlir::SmallVector<ShardingAttr> operands; ///< by operand; null for what is not a tensor

  const sharding::AxisList &axesOf(unsigned factor) const { return sharding.factors[factor]; }
};

/// Reads the shardings of ops off the IR. Ops that say the same share one result, which lives as
/// long as this. The attributes must have passed the verifier.
class OpShardings {
public:
  explicit OpShardings(const MeshTable &meshes) : meshes(meshes) {}

  /// An op without `dist.op_sharding`, or without a rule, is whole.
  const ShardedOp &of(mlir::Operation *op);

private:
  const MeshTable &meshes;
  RuleTable rules;
  std::deque<ShardedOp> kept;
  AddressMap<const ShardedOp *> known;
};

/// The mesh of the first tensor of an op that has a sharding, results first; null when none has.
mlir::FlatSymbolRefAttr meshOf(mlir::Operation *op);

/// The attribute of an op, null when it has none.
OpShardingAttr getOpSharding(mlir::Operation *op);
/// Writes it; an op that is whole gets none.
void setOpSharding(mlir::Operation *op, mlir::FlatSymbolRefAttr name, const sharding::Mesh &mesh,
                   const sharding::OpSharding &sharding);

/// Every tensor of a function of the global view has a sharding, and every op whose results are not
/// whole says how it is distributed, as dist-propagate leaves them; else a located error.
mlir::LogicalResult checkShardingsDecided(mlir::func::FuncOp function, const MeshTable &meshes);

/// Checks op shardings against rules and results (O1 to O6). Most ops of a program say what another
/// one said before: that is looked up. Safe to call from several threads.
class OpShardingVerifier {
public:
  mlir::LogicalResult verify(mlir::Operation *op, OpShardingAttr attr);

private:
  std::mutex mutex;
  std::unordered_set<AddressKey, AddressHash> correct;
};

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_OPSHARDINGS_H
