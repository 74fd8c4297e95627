//===- OpShardings.h - An op's cut, read back from the IR -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_OPSHARDINGS_H
#define TESSERA_TRANSFORMS_OPSHARDINGS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Sharding/ShardingRule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// How an op's loops are cut, and how its operands must lie for that.
struct OpShardings {
  sharding::ShardingRule rule;
  sharding::FactorAxes axes;
  mlir::FlatSymbolRefAttr mesh;             ///< null when no tensor has a sharding
  mlir::SmallVector<ShardingAttr> operands; ///< one an operand, null for what is no tensor
};

/// Reads it from the shardings of the op's results, and of its operands where a partial result does
/// not say which reduction is cut. Ops without a rule are whole.
OpShardings deriveOpShardings(mlir::Operation *op, const MeshTable &meshes);

/// Every tensor of a function of the global view has a sharding, as dist-propagate leaves it; else
/// a located error.
mlir::LogicalResult checkShardingsDecided(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_OPSHARDINGS_H
