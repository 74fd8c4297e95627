//===- DistDialect.cpp - The dist dialect ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

#include "tessera/Dialect/Dist/IR/DistDialect.cpp.inc"

namespace {
/// Annotations have no effect, so functions that contain them can be inlined.
struct DistInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const override { return true; }
};
} // namespace

void DistDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerOperations();
  addInterfaces<DistInlinerInterface, ReshardCacheInterface>();
  attachShardingRules(getContext());
  opShardingVerifier = std::make_shared<OpShardingVerifier>();
}

sharding::ReshardPlanner &dist::plannerOf(MLIRContext *context, sharding::Objective objective,
                                          const sharding::Topology &topology) {
  auto *dialect = context->getLoadedDialect<DistDialect>();
  return dialect->getRegisteredInterface<ReshardCacheInterface>()->plans().planner(objective,
                                                                                   topology);
}

ProcessMeshOp dist::lookupMesh(Operation *op, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<ProcessMeshOp>(op, name);
}
