//===- PlanReshards.cpp - Split reshards into chains of single moves ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ComputeAgain.h"
#include "PlanWindows.h"

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Sharding/Buffers.h"
#include "tessera/Sharding/ReshardChain.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTPLANRESHARDS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::ReshardPlan;
using sharding::ReshardProblem;
using sharding::TensorSharding;

/// "all_gather by ring, slice (448 bytes, 7.00 us)"
static std::string describe(const ReshardPlan &plan, const ReshardProblem &problem,
                            const sharding::LinkModel &links) {
  std::string text;
  for (const sharding::Move &step : plan.moves) {
    text += (text.empty() ? "" : ", ") + std::string(sharding::toString(step.kind));
    sharding::Traffic traffic = sharding::trafficOf(problem, step);
    sharding::Timing timing = links.timing(problem.mesh, step.axes, step.kind, traffic);
    if (traffic.count > 0 && timing.algorithm != sharding::Algorithm::direct)
      text += " by " + std::string(sharding::toString(timing.algorithm));
  }
  return llvm::formatv("{0} ({1} bytes on the wire, {2} collectives, {3} messages, {4:F2} us "
                       "modelled)",
                       text, plan.traffic.wireBytes, plan.traffic.count, plan.traffic.messages,
                       plan.seconds * 1e6)
      .str();
}

namespace {
struct DistPlanReshards : dist::impl::DistPlanReshardsBase<DistPlanReshards> {
  using DistPlanReshardsBase::DistPlanReshardsBase;

  void runOnOperation() override {
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), objective, topology);
    if (failed(cost))
      return signalPassFailure();
    MeshTable meshes(getOperation());
    sharding::ReshardPlanner &planner = plannerOf(&getContext(), cost->objective, cost->topology);
    OpShardings shardings(meshes);
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (!isLocalView(function))
        computeAgain(function, meshes, shardings, *cost);
      planWindows(function, meshes, shardings);
    }
    SmallVector<ReshardOp> reshards;
    getOperation().walk([&](ReshardOp op) { reshards.push_back(op); });
    for (ReshardOp op : reshards)
      plan(op, meshes, planner, cost->objective);
  }

  void plan(ReshardOp op, const MeshTable &meshes, sharding::ReshardPlanner &planner,
            sharding::Objective minimised) {
    ShardingAttr from = getSharding(op.getOperand()), to = op.getSharding();
    if (!from || op->hasAttr(DistDialect::kMove))
      return;
    if (from.getMesh() != to.getMesh()) {
      for (ReshardOp within : splitBetweenMeshes(op, meshes))
        plan(within, meshes, planner, minimised);
      return;
    }
    RankedTensorType type = op.getType();
    TensorSharding source = resolveVerified(from, meshes, type);
    TensorSharding target = resolveVerified(to, meshes, type);
    ReshardProblem problem{meshes.get(to.getMesh()), type.getShape().vec(),
                           bytesPerElement(type.getElementType()), sharding::canonical(source),
                           sharding::canonical(target)};
    ReshardPlan chosen = sharding::chainOf(problem, op.getFillAttr() != nullptr, planner);
    if (remarks && chosen.traffic.count > 0)
      remark(op, problem, chosen, planner.linksOf(problem.mesh), minimised);
    OpBuilder builder(op);
    Value value = op.getOperand();
    for (const sharding::Move &step : chosen.moves) {
      ReshardOp link = reshardLike(op, builder, value, to.getMesh(), problem.mesh, step.target);
      link->setAttr(DistDialect::kMove, MoveAttr::get(problem.mesh, step, op.getContext()));
      if (sharding::isByBoxes(step.kind) && !step.target.windows.empty())
        link.setFillAttr(op.getFillAttr());
      value = link.getResult();
    }
    op.getResult().replaceAllUsesWith(value);
    op.erase();
  }

  /// A reshard with the discardable attributes of `op`.
  static ReshardOp reshardLike(ReshardOp op, OpBuilder &builder, Value value,
                               FlatSymbolRefAttr meshName, const sharding::Mesh &mesh,
                               const TensorSharding &target) {
    ShardingAttr sharding = ShardingAttr::get(meshName, mesh, target, op.getContext());
    auto link = ReshardOp::create(builder, op.getLoc(), op.getType(), value, sharding);
    link->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    setSharding(link.getResult(), sharding);
    return link;
  }

  /// Between meshes overlapping boxes of whole values are sent: there is only one plan. Returns the
  /// reshards before and behind, which reduce and make contributions.
  static SmallVector<ReshardOp> splitBetweenMeshes(ReshardOp op, const MeshTable &meshes) {
    SmallVector<ReshardOp> within;
    FlatSymbolRefAttr from = getSharding(op.getOperand()).getMesh(),
                      to = op.getSharding().getMesh();
    TensorSharding source =
        resolveVerified(getSharding(op.getOperand()), meshes, op.getType()).closed();
    TensorSharding target = resolveVerified(op.getSharding(), meshes, op.getType()).closed();
    OpBuilder builder(op);
    if (source.isPartial()) {
      within.push_back(reshardLike(op, builder, op.getOperand(), from, meshes.get(from),
                                   source.withoutPartial()));
      op.getOperandMutable().assign(within.back());
    }
    if (target.isPartial()) {
      builder.setInsertionPointAfter(op);
      within.push_back(reshardLike(op, builder, op.getResult(), to, meshes.get(to), target));
      op.getResult().replaceAllUsesExcept(within.back(), within.back());
      op.setShardingAttr(
          ShardingAttr::get(to, meshes.get(to), target.withoutPartial(), op.getContext()));
      setSharding(op.getResult(), op.getSharding());
    }
    return within;
  }

  static void remark(ReshardOp op, const ReshardProblem &problem, const ReshardPlan &chosen,
                     const sharding::LinkModel &links, sharding::Objective minimised) {
    std::optional<ReshardPlan> second = sharding::planRunnerUp(problem, chosen, minimised, links);
    int64_t bound =
        problem.bytesPerElement *
        sharding::receiveBound(problem.mesh, sharding::makeLayout(problem.source, problem.shape),
                               problem.mesh, sharding::makeLayout(problem.target, problem.shape));
    auto reason = op->getAttrOfType<StringAttr>(DistDialect::kReason);
    op.emitRemark() << (reason ? reason.getValue() : "required by dist.reshard") << ": "
                    << describe(chosen, problem, links)
                    << "; runner-up: " << (second ? describe(*second, problem, links) : "none")
                    << "; no plan receives less than " << bound << " bytes";
  }
};
} // namespace
