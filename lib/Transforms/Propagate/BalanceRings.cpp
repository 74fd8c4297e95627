//===- BalanceRings.cpp - Choose which rings to balance -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Ext/IR/AttentionRing.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/Support/FormatVariadic.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTBALANCERINGS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

struct DistBalanceRings : dist::impl::DistBalanceRingsBase<DistBalanceRings> {
  using DistBalanceRingsBase::DistBalanceRingsBase;

  void runOnOperation() override {
    MeshTable meshes(getOperation());
    if (meshes.empty())
      return;
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    OpShardings shardings(meshes);
    getOperation().walk([&](Operation *op) {
      if (isa<ext::AttentionOp, ext::AttentionBackwardOp>(op) && op->hasAttr("ring") &&
          !op->hasAttr("balanced"))
        choose(op, meshes, shardings.of(op), cost->topology);
    });
  }

  /// Seconds of a ring: of its products and its softmax, and of its communication.
  struct Seconds {
    double computing, moving;
    double sum() const { return computing + moving; }
  };

  void choose(Operation *op, const MeshTable &meshes, const ShardedOp &sharded,
              const sharding::Topology &machine) {
    ext::AttentionParts parts = ext::partsOf(op);
    std::optional<unsigned> query = ext::ringQueryOf(parts);
    SmallVector<int64_t> factors = parts.factors();
    if (!query || !sharded.mesh || sharded.axesOf(factors[*query]).empty() ||
        !ext::mayBeBalanced(parts, *query))
      return;
    const sharding::Mesh &mesh = meshes.get(sharded.mesh);
    double rows = 1;
    for (unsigned loop : parts.rows)
      rows *= static_cast<double>(sharding::ceilDiv(
          parts.domain.extents[loop], sharding::sizeOf(sharded.axesOf(factors[loop]))));
    std::string dtype;
    llvm::raw_string_ostream(dtype) << getElementTypeOrSelf(op->getOperand(0).getType());
    sharding::ReshardPlanner &planner =
        plannerOf(&getContext(), sharding::Objective::time, machine);
    auto price = [&](bool isBalanced) -> Seconds {
      ext::RingCost cost =
          ext::costOfRing(op, sharded.rule, sharded.sharding.factors, mesh, planner, isBalanced);
      double operations = rows * cost.scoresPerQuery * static_cast<double>(dist::operationsOf(op));
      return {machine.computeSeconds(operations, 0, dtype, mesh.numDevices()), cost.seconds};
    };
    Seconds plain = price(false), balanced = price(true);
    bool isLess = balanced.sum() < plain.sum();
    if (isLess)
      op->setAttr("balanced", UnitAttr::get(op->getContext()));
    if (remarks)
      op->emitRemark() << llvm::formatv(
          "{0} causal ring: {1:F2} us to compute and {2:F2} us to move with chunks i and 2n - 1 - "
          "i on device i of n, {3:F2} us and {4:F2} us with blocks in order",
          isLess ? "balanced" : "kept the blocks of a", balanced.computing * 1e6,
          balanced.moving * 1e6, plain.computing * 1e6, plain.moving * 1e6);
  }
};

} // namespace
