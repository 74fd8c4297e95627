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

/// Merges equal collectives of equal operands in one block.
void mergeEqual(Block &block) {
  llvm::DenseMap<Value, SmallVector<Operation *>> byOperand;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        mergeEqual(inner);
    if (!isa<CollectiveOpInterface>(op) || op.getNumOperands() == 0)
      continue;
    SmallVector<Operation *> &others = byOperand[op.getOperand(0)];
    auto same = llvm::find_if(others, [&](Operation *other) {
      // Their reasons may differ.
      NamedAttrList a(other->getAttrs()), b(op.getAttrs());
      a.erase(DistDialect::kReason);
      b.erase(DistDialect::kReason);
      return other->getName() == op.getName() && other->getOperands() == op.getOperands() &&
             other->getResultTypes() == op.getResultTypes() &&
             a.getDictionary(op.getContext()) == b.getDictionary(op.getContext());
    });
    if (same != others.end()) {
      op.replaceAllUsesWith(*same);
      op.erase();
    } else {
      others.push_back(&op);
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
