//===- LinalgPartition.cpp - Linalg ops on local shapes -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/GroupedProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::FactorKind;

/// A device's buffer begins with its first window, so the offset of the map is dropped.
static void dropWindowShifts(linalg::GenericOp op, const PartitionContext &context) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto [map, dims] : llvm::zip(maps, context.getRule().operands)) {
    SmallVector<AffineExpr> exprs(map.getResults());
    for (auto [expr, dim] : llvm::zip(exprs, dims))
      if (dim.isWindow && !context.getFactorAxes()[dim.factors[0]].empty())
        expr = expr - dim.shift;
    map = AffineMap::get(map.getNumDims(), 0, exprs, op.getContext());
  }
  op.setIndexingMapsAttr(Builder(op.getContext()).getAffineMapArrayAttr(maps));
}

/// The op as a generic, whose body can be masked; null if that is impossible.
static linalg::LinalgOp generalize(linalg::LinalgOp op, OpBuilder &builder) {
  if (isa<linalg::GenericOp>(op))
    return op;
  IRRewriter rewriter(builder);
  rewriter.setInsertionPoint(op);
  SmallVector<NamedAttribute> attributes(op->getDiscardableAttrs());
  FailureOr<linalg::GenericOp> generic = linalg::generalizeNamedOp(rewriter, op);
  if (failed(generic))
    return {};
  for (NamedAttribute attribute : attributes)
    (*generic)->setAttr(attribute.getName(), attribute.getValue());
  builder.setInsertionPointAfter(*generic);
  return cast<linalg::LinalgOp>(generic->getOperation());
}

/// Keeps the accumulators unchanged in iterations of `reductions` beyond the tensor.
static void maskReductions(linalg::LinalgOp op, ArrayRef<unsigned> reductions,
                           PartitionContext &context) {
  Location loc = op.getLoc();
  Operation *yield = op.getBlock()->getTerminator();
  OpBuilder builder(yield);
  Value valid;
  for (unsigned loop : reductions) {
    Value index =
        context.getGlobalIteration(builder, loc, loop, linalg::IndexOp::create(builder, loc, loop));
    Value inside = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::slt, index,
        arith::ConstantIndexOp::create(builder, loc, context.getRule().factors[loop].size));
    valid = valid ? arith::AndIOp::create(builder, loc, valid, inside).getResult() : inside;
  }
  for (auto [index, accumulator] : llvm::enumerate(op.getRegionOutputArgs()))
    yield->setOperand(
        index, arith::SelectOp::create(builder, loc, valid, yield->getOperand(index), accumulator));
}

FailureOr<SmallVector<Value>> dist::partitionLinalg(linalg::LinalgOp op,
                                                    PartitionContext &context) {
  SmallVector<unsigned> cut, unevenReductions;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    if (context.getFactorAxes()[loop].empty())
      continue;
    cut.push_back(loop);
    if (context.isUneven(loop) && context.getRule().factors[loop].kind == FactorKind::reduction)
      unevenReductions.push_back(loop);
  }

  // A contraction stays one: both operands are zero in the padding (0 * NaN would be NaN).
  bool isMasked = !unevenReductions.empty() && linalg::isaContractionOpInterface(op);
  SmallVector<Value> inputs;
  if (isMasked)
    for (int64_t index = 0; index < op.getNumDpsInputs(); ++index)
      inputs.push_back(context.getMaskedOperand(index));

  auto local = cast<linalg::LinalgOp>(context.clone());
  for (auto [index, input] : llvm::enumerate(inputs))
    local->setOperand(index, input);
  if (auto generic = dyn_cast<linalg::GenericOp>(local.getOperation()))
    dropWindowShifts(generic, context);

  // Of its groups a device has some, with as many rows as data gives them (OpCosts).
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
    if (std::optional<GroupedProduct> product = matchGroupedProduct(generic);
        product && llvm::is_contained(cut, product->group))
      local->setAttr(DistDialect::kGroups,
                     context.builder.getI64IntegerAttr(op.getStaticLoopRanges()[product->group]));

  bool masksBody = !unevenReductions.empty() && !isMasked;
  if (masksBody)
    local = generalize(local, context.builder);
  if (!local)
    return op.emitError() << "'" << op->getName()
                          << "' has an uneven edge that cannot be masked; cut a dimension that the "
                             "devices divide evenly";

  // Indices in a body are global. A window of a loop that is not cut begins later, too.
  SmallVector<linalg::IndexOp> reads;
  for (auto index : local.getBlock()->getOps<linalg::IndexOp>())
    if (llvm::is_contained(cut, index.getDim()) || context.isUneven(index.getDim()))
      reads.push_back(index);
  for (linalg::IndexOp index : reads) {
    OpBuilder builder(index);
    Value own = linalg::IndexOp::create(builder, op.getLoc(), index.getDim());
    index.replaceAllUsesWith(context.getGlobalIteration(builder, op.getLoc(), index.getDim(), own));
    index.erase();
  }
  if (masksBody)
    maskReductions(local, unevenReductions, context);
  return SmallVector<Value>(local->getResults());
}
