//===- SplitLoops.cpp - Split loops of linalg ops -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitLoops.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

bool dist::isAnnotated(Operation *op) {
  return llvm::any_of(op->getDiscardableAttrs(), [](NamedAttribute attribute) {
    return attribute.getNameDialect() && isa<DistDialect>(attribute.getNameDialect());
  });
}

/// Whether every result is another loop, or 0, where the extent is 1.
static bool readsLoops(AffineMap map) {
  llvm::SmallBitVector seen(map.getNumDims());
  return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return constant.getValue() == 0;
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || seen.test(loop.getPosition()))
      return false;
    seen.set(loop.getPosition());
    return true;
  });
}

bool dist::canSplitLoop(linalg::LinalgOp op, int64_t loop) {
  if (isAnnotated(op) || !op.hasPureTensorSemantics() ||
      !llvm::all_of(op.getIndexingMapsArray(), readsLoops))
    return false;
  WalkResult reads = op.getBlock()->walk([&](linalg::IndexOp index) {
    return static_cast<int64_t>(index.getDim()) == loop ? WalkResult::interrupt()
                                                        : WalkResult::advance();
  });
  return !reads.wasInterrupted();
}

Operation *dist::splitLoops(linalg::LinalgOp op, llvm::function_ref<bool(int64_t)> isSplit,
                            ArrayRef<int64_t> extents, ValueRange inputs, ValueRange inits) {
  MLIRContext *context = op.getContext();
  auto partsOf = [&](int64_t loop) { return isSplit(loop) ? extents.size() : 1; };
  SmallVector<int64_t> first; // by loop: the first of its new loops
  SmallVector<utils::IteratorType> iterators;
  for (auto [loop, iterator] : llvm::enumerate(op.getIteratorTypesArray())) {
    first.push_back(std::ssize(iterators));
    iterators.append(partsOf(loop), iterator);
  }
  SmallVector<AffineMap> maps;
  for (AffineMap map : op.getIndexingMapsArray()) {
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : map.getResults()) {
      if (isa<AffineConstantExpr>(expr)) {
        exprs.push_back(expr);
        continue;
      }
      int64_t loop = cast<AffineDimExpr>(expr).getPosition();
      for (size_t part = 0; part < partsOf(loop); ++part)
        exprs.push_back(getAffineDimExpr(first[loop] + part, context));
    }
    maps.push_back(AffineMap::get(iterators.size(), 0, exprs, context));
  }
  OpBuilder builder(op);
  Operation *made = nullptr;
  if (isa<linalg::FillOp>(op)) {
    made = linalg::FillOp::create(builder, op.getLoc(), inputs, inits);
  } else if (isa<linalg::TransposeOp>(op)) {
    SmallVector<int64_t> permutation;
    for (AffineExpr expr : maps[1].getResults())
      permutation.push_back(llvm::find(maps[0].getResults(), expr) - maps[0].getResults().begin());
    made = linalg::TransposeOp::create(builder, op.getLoc(), inputs[0], inits[0], permutation);
  } else if (isa<linalg::ContractOp>(op) ||
             (isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op) && !op->hasAttr("cast"))) {
    made = linalg::ContractOp::create(builder, op.getLoc(), TypeRange(inits), inputs, inits,
                                      builder.getAffineMapArrayAttr(maps));
    if (Attribute cast = op->getAttr("cast"))
      made->setAttr("cast", cast);
  } else {
    auto generic = linalg::GenericOp::create(builder, op.getLoc(), TypeRange(inits), inputs, inits,
                                             maps, iterators);
    IRMapping mapping;
    op->getRegion(0).cloneInto(&generic.getRegion(), mapping);
    generic.walk([&](linalg::IndexOp index) { index.setDim(first[index.getDim()]); });
    made = generic;
  }
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return made;
}
