//===- OpShardings.h - How ops are distributed ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only `dist.op_sharding` on an op of the global view defines how the op is
// distributed. Propagation and search write it, dist-sink-partials adds forwards, and
// all other code (reshards, partition, reports) reads it here.
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

/// An op's rule, its sharding, and the resulting shardings of its operands.
struct ShardedOp {
  const sharding::ShardingRule &rule;
  sharding::OpSharding sharding;
  mlir::FlatSymbolRefAttr mesh;             ///< null if no tensor of the op has a sharding
  mlir::SmallVector<ShardingAttr> operands; ///< by operand; null if it is not a tensor

  const sharding::AxisList &axesOf(unsigned factor) const { return sharding.factors[factor]; }
};

/// Reads the shardings of ops from the IR. Ops with equal attributes share one result, which lives
/// as long as this. The attributes must have passed the verifier.
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

/// The mesh of the first tensor of an op with a sharding, results first; null if there is none.
mlir::FlatSymbolRefAttr meshOf(mlir::Operation *op);

/// The attribute of an op, or null.
OpShardingAttr getOpSharding(mlir::Operation *op);
/// Writes the attribute; a whole op gets none.
void setOpSharding(mlir::Operation *op, mlir::FlatSymbolRefAttr name, const sharding::Mesh &mesh,
                   const sharding::OpSharding &sharding);

/// Checks the result of dist-propagate: every tensor of a function of the global view has a
/// sharding, and every op whose results are not whole has an op sharding; else a located error.
mlir::LogicalResult checkShardingsDecided(mlir::func::FuncOp function, const MeshTable &meshes);

/// Checks op shardings against rules and results (O1 to O6). Most ops of a program repeat an
/// earlier op, whose result is looked up. Thread-safe.
class OpShardingVerifier {
public:
  mlir::LogicalResult verify(mlir::Operation *op, OpShardingAttr attr);

private:
  std::mutex mutex;
  std::unordered_set<AddressKey, AddressHash> correct;
};

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_OPSHARDINGS_H
