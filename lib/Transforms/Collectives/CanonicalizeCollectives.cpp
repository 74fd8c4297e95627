//===- CanonicalizeCollectives.cpp - Remove collectives by local rewrites -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PeelMoves.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTCANONICALIZECOLLECTIVES
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// The collectives in front of an op, in its block and in those around it.
struct Earlier {
  llvm::DenseMap<Value, SmallVector<Operation *>> byOperand; // looked up only
  const Earlier *outside;

  explicit Earlier(const Earlier *outside) : outside(outside) {}

  Operation *findEqual(Operation *op) const {
    auto others = byOperand.find(op->getOperand(0));
    if (others != byOperand.end())
      for (Operation *other : others->second)
        if (isEqual(other, op))
          return other;
    return outside ? outside->findEqual(op) : nullptr;
  }

  /// Their reasons may differ.
  static bool isEqual(Operation *one, Operation *other) {
    NamedAttrList a(one->getAttrs()), b(other->getAttrs());
    a.erase(DistDialect::kReason);
    b.erase(DistDialect::kReason);
    return one->getName() == other->getName() && one->getOperands() == other->getOperands() &&
           one->getResultTypes() == other->getResultTypes() &&
           a.getDictionary(one->getContext()) == b.getDictionary(one->getContext());
  }
};

/// Moves collectives of outer values that both branches have in front of them.
void hoistCommon(scf::IfOp branches) {
  if (branches.getElseRegion().empty())
    return;
  for (Operation &op : llvm::make_early_inc_range(*branches.thenBlock())) {
    bool isOuter = isa<CollectiveOpInterface>(op) && op.getNumOperands() > 0 &&
                   llvm::none_of(op.getOperands(), [&](Value operand) {
                     return branches->isAncestor(operand.getParentBlock()->getParentOp());
                   });
    if (!isOuter)
      continue;
    auto same = llvm::find_if(*branches.elseBlock(),
                              [&](Operation &other) { return Earlier::isEqual(&op, &other); });
    if (same == branches.elseBlock()->end())
      continue;
    op.moveBefore(branches);
    same->replaceAllUsesWith(&op);
    same->erase();
  }
}

/// Merges equal collectives of equal operands, those in loops and branches with one in front.
void mergeEqual(Block &block, const Earlier *outside = nullptr) {
  Earlier earlier(outside);
  for (Operation &op : block)
    if (auto branches = dyn_cast<scf::IfOp>(op))
      hoistCommon(branches);
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        mergeEqual(inner, &earlier);
    if (!isa<CollectiveOpInterface>(op) || op.getNumOperands() == 0)
      continue;
    if (Operation *same = earlier.findEqual(&op)) {
      op.replaceAllUsesWith(same);
      op.erase();
    } else {
      earlier.byOperand[op.getOperand(0)].push_back(&op);
    }
  }
}

/// Whether source and target have equal cuts, so that a device holds all that it contributes. Types
/// do not show this: a row held by one of three devices is one row on each.
static bool isCutAlike(MakePartialOp op) {
  ProcessMeshOp mesh = lookupMesh(op, op.getMeshAttr());
  if (!mesh || !op.getSources() || !op.getTargets() || !op.getGlobalTypes())
    return true; // without layouts values are whole
  Type type = cast<TypeAttr>((*op.getGlobalTypes())[0]).getValue();
  auto resolve = [&](Attribute attr) {
    return cast<ShardingAttr>(attr).resolve(mesh.getMesh(), type, [&] { return op.emitError(); });
  };
  auto source = resolve((*op.getSources())[0]), target = resolve((*op.getTargets())[0]);
  return succeeded(source) && succeeded(target) &&
         sharding::canonical(*source).dims == sharding::canonical(*target).dims;
}

/// A whole value is its own contribution to a mean on every device: nothing is copied.
static void dropMeans(func::FuncOp function) {
  function.walk([](MakePartialOp op) {
    if (op.getReduction() == ReduceKind::avg && op.getOperandTypes() == op.getResultTypes() &&
        isCutAlike(op)) {
      op.replaceAllUsesWith(op.getOperands());
      op.erase();
    }
  });
}

struct DistCanonicalizeCollectives
    : dist::impl::DistCanonicalizeCollectivesBase<DistCanonicalizeCollectives> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    AllReduceOp::getCanonicalizationPatterns(patterns, context);
    FrozenRewritePatternSet frozen(std::move(patterns));
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (!isLocalView(function))
        continue;
      dropMeans(function);
      peelMoves(function);
      for (Block &block : function.getBody())
        mergeEqual(block);
      SmallVector<Operation *> reductions;
      function.walk([&](AllReduceOp op) { reductions.push_back(op); });
      if (failed(applyOpPatternsGreedily(reductions, frozen)))
        return signalPassFailure();
    }
  }
};

} // namespace
