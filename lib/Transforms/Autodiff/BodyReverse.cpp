//===- BodyReverse.cpp - The reverse of a linalg body ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BodyReverse.h"
#include "ScalarRules.h"
#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

BodyReverse::BodyReverse(Reverse &reverse, linalg::LinalgOp op, bool reuseResults)
    : nest(reverse.b, op.getLoc(), op.getStaticLoopRanges()), reverse(reverse), op(op) {
  nest.resultLoops.resize(nest.extents.size());
  for (OpOperand &init : op.getDpsInitsMutable())
    for (AffineExpr expr : op.getMatchingIndexingMap(&init).getResults())
      if (int64_t loop = loopOf(expr); loop >= 0)
        nest.resultLoops.set(loop);
  Block *body = op.getBlock();
  for (OpOperand &operand : op->getOpOperands()) {
    if (operand.getOperandNumber() >= body->getNumArguments())
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    copies.map(body->getArgument(operand.getOperandNumber()),
               op.isDpsInit(&operand) ? nest.addInput(operand.get(), map)
                                      : nest.addInputOrConstant(operand.get(), map));
  }
  OpBuilder b = nest.bodyEnd();
  for (Operation &inner : body->without_terminator())
    b.clone(inner, copies);
  if (!reuseResults)
    return;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    OpResult result = op.getTiedOpResult(&init);
    Value yielded = body->getTerminator()->getOperand(result.getResultNumber());
    Operation *source = yielded.getDefiningOp();
    if (!source || source->getBlock() != body || matchPattern(source, m_Constant()))
      continue;
    BlockArgument known = nest.addInput(result, op.getMatchingIndexingMap(&init));
    copies.lookup(yielded).replaceAllUsesWith(known);
    copies.map(yielded, known);
  }
}

void BodyReverse::seed(Value value, Value cotangent) {
  OpBuilder b = nest.bodyEnd();
  Value &sum = cotangents[value];
  sum = addScalars(b, nest.loc, sum, cotangent);
}

LogicalResult BodyReverse::run() {
  Block *body = op.getBlock();
  // Values that depend on active ones, in the body's order.
  llvm::DenseSet<Value> dependent;
  auto depends = [&](Value value) {
    return isDifferentiable(value.getType()) &&
           (dependent.contains(value) || reverse.isActive(value));
  };
  for (auto [operand, argument] : llvm::zip(op->getOperands(), body->getArguments()))
    if (reverse.isActive(operand))
      dependent.insert(argument);
  // The cotangents of accumulators show whether they are sums.
  for (BlockArgument accumulator : op.getRegionOutputArgs())
    dependent.insert(accumulator);
  for (Operation &inner : body->without_terminator())
    if (llvm::any_of(inner.getOperands(), depends))
      for (Value result : inner.getResults())
        if (isDifferentiable(result.getType()))
          dependent.insert(result);

  OpBuilder b = nest.bodyEnd();
  for (Operation &inner : llvm::reverse(body->without_terminator())) {
    SmallVector<Value> incoming;
    for (Value result : inner.getResults())
      incoming.push_back(cotangents.lookup(result));
    if (llvm::none_of(incoming, [](Value value) { return value != nullptr; }) ||
        llvm::none_of(inner.getOperands(), depends))
      continue;
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      BodyTarget target{extract.getTensor(), incoming[0], {}, extract.getLoc()};
      for (Value index : extract.getIndices())
        target.places.push_back({{}, copyOf(index)});
      extracts.push_back(std::move(target));
      continue;
    }
    ScalarReverse rule{&inner, incoming, [&](Value value) { return copyOf(value); },
                       [&](unsigned i) { return depends(inner.getOperand(i)); },
                       [&](unsigned i, Value value) { seed(inner.getOperand(i), value); }};
    if (inner.getNumRegions() || failed(reverseScalar(b, rule)))
      return noDerivative(&inner, "it has no rule; write it with other ops, or stop the "
                                  "gradient with dist.stop_gradient");
  }
  return success();
}

bool BodyReverse::readsAccumulators() {
  for (const BodyTarget &target : targets(/*withInits=*/false)) {
    llvm::SmallBitVector read = nest.inputsOf(target.scalar);
    for (BlockArgument accumulator : op.getRegionOutputArgs())
      if (read.test(cast<BlockArgument>(copies.lookup(accumulator)).getArgNumber()))
        return true;
  }
  return false;
}

SmallVector<BodyTarget> BodyReverse::targets(bool withInits) {
  SmallVector<BodyTarget> result = extracts;
  Block *body = op.getBlock();
  auto add = [&](Value outside, Value inside, AffineMap map) {
    Value scalar = cotangents.lookup(inside);
    if (!scalar || !reverse.isActive(outside))
      return;
    BodyTarget target{outside, scalar, {}, op.getLoc()};
    for (AffineExpr expr : map.getResults())
      target.places.push_back({expr, {}});
    result.push_back(std::move(target));
  };
  for (OpOperand &operand : op->getOpOperands())
    if (operand.getOperandNumber() < body->getNumArguments() &&
        (withInits || !op.isDpsInit(&operand)))
      add(operand.get(), body->getArgument(operand.getOperandNumber()),
          op.getMatchingIndexingMap(&operand));
  // Scalars from outside.
  AffineMap none = AffineMap::get(nest.extents.size(), 0, op.getContext());
  llvm::SetVector<Value> captured;
  for (Operation &inner : body->without_terminator())
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != body && !isa<ShapedType>(operand.getType()))
        captured.insert(operand);
  for (Value value : captured)
    add(value, value, none);
  return result;
}

/// The map of a target whose places are distinct loops, or 0 where the extent is 1.
static std::optional<AffineMap> plainMap(const LoopNest &nest, const BodyTarget &target) {
  SmallVector<AffineExpr> exprs;
  llvm::SmallBitVector seen(nest.extents.size());
  auto type = dyn_cast<RankedTensorType>(target.value.getType());
  for (auto [d, place] : llvm::enumerate(target.places)) {
    if (!place.expr)
      return std::nullopt;
    if (int64_t loop = loopOf(place.expr); loop >= 0) {
      if (seen.test(loop))
        return std::nullopt;
      seen.set(loop);
    } else if (!isa<AffineConstantExpr>(place.expr) || type.getDimSize(d) != 1) {
      return std::nullopt;
    }
    exprs.push_back(place.expr);
  }
  return AffineMap::get(nest.extents.size(), 0, exprs, nest.b.getContext());
}

/// The source of a padded target instead, if it is read by windows: its cotangent has the extents
/// of the source, so that both can be cut into the same parts. Not if the op is in a region that
/// captures the padded value, which sums up the cotangents of its captured values alone.
static BodyTarget withoutPadding(const LoopNest &nest, const BodyTarget &target, Block *block) {
  auto pad = target.value.getDefiningOp<tensor::PadOp>();
  if (pad && pad->getBlock() != block)
    return target;
  Value fill = pad ? pad.getConstantPaddingValue() : Value();
  auto isNatural = [](int64_t width) { return width >= 0; };
  if (!fill || !matchPattern(fill, m_Constant()) || !llvm::all_of(pad.getStaticLow(), isNatural) ||
      !llvm::all_of(pad.getStaticHigh(), isNatural))
    return target;
  BodyTarget source = target;
  source.value = pad.getSource();
  for (auto [place, low, high] :
       llvm::zip_equal(source.places, pad.getStaticLow(), pad.getStaticHigh())) {
    place.shift = low;
    place.isPadded = low > 0 || high > 0;
  }
  return skipsPadding(nest, source) ? source : target;
}

LogicalResult BodyReverse::emitTargets(bool withInits) {
  SmallVector<BodyTarget> all = targets(withInits);
  for (BodyTarget &target : all)
    target = withoutPadding(nest, target, op->getBlock());
  auto isFull = [&](const BodyTarget &target) {
    std::optional<AffineMap> map = plainMap(nest, target);
    if (!map)
      return false;
    for (unsigned loop = 0; loop < nest.extents.size(); ++loop)
      if (!map->isFunctionOfDim(loop) && nest.extents[loop] != 1)
        return false;
    return true;
  };
  // Equal cotangents of several operands are computed once, for the one with most loops, and summed
  // from there for the others: that of a bias is the sum of that of the matrix.
  llvm::stable_sort(
      all, [&](const BodyTarget &x, const BodyTarget &y) { return isFull(x) && !isFull(y); });
  llvm::DenseMap<Value, unsigned> known; // scalar -> input of `shared`; looked up only
  LoopNest shared(nest.b, nest.loc, nest.extents);
  for (const BodyTarget &target : all) {
    auto it = known.find(target.scalar);
    if (it != known.end() && plainMap(nest, target)) {
      BodyTarget again = target;
      again.scalar = shared.block->getArgument(it->second);
      FailureOr<Value> result = emitGathered(shared, again);
      if (failed(result))
        return failure();
      reverse.add(target.value, *result);
      continue;
    }
    FailureOr<Value> result = emitGathered(nest, target);
    if (failed(result))
      return failure();
    if (isFull(target) && isa<RankedTensorType>(target.value.getType()))
      known[target.scalar] = shared.addInput(*result, *plainMap(nest, target)).getArgNumber();
    reverse.add(target.value, *result);
  }
  return success();
}

/// Reverses the loops that a place of the target reads backwards: i -> n - 1 - i in every map and
/// index of the nest, so that the places are windows.
static void turnLoops(LoopNest &nest, BodyTarget &target) {
  MLIRContext *context = nest.b.getContext();
  unsigned numLoops = nest.extents.size();
  llvm::SmallBitVector turned(numLoops);
  for (const Place &place : target.places) {
    SmallVector<int64_t> coefficients;
    if (!place.expr || failed(getFlattenedAffineExpr(place.expr, numLoops, 0, &coefficients)))
      continue;
    for (unsigned loop = 0; loop < numLoops; ++loop)
      if (coefficients[loop] < 0)
        turned.set(loop);
  }
  if (turned.none())
    return;
  SmallVector<AffineExpr> loops;
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    AffineExpr dim = getAffineDimExpr(loop, context);
    loops.push_back(turned.test(loop) ? nest.extents[loop] - 1 - dim : dim);
  }
  for (LoopNest::Input &input : nest.inputs)
    input.map = simplifyAffineMap(input.map.replaceDimsAndSymbols(loops, {}, numLoops, 0));
  for (Place &place : target.places)
    if (place.expr)
      place.expr = simplifyAffineExpr(place.expr.replaceDims(loops), numLoops, 0);
  for (linalg::IndexOp index : llvm::make_early_inc_range(nest.block->getOps<linalg::IndexOp>())) {
    if (!turned.test(index.getDim()))
      continue;
    OpBuilder b(nest.b.getContext());
    b.setInsertionPointAfter(index);
    Value last = arith::ConstantIndexOp::create(b, nest.loc, nest.extents[index.getDim()] - 1);
    Value other = arith::SubIOp::create(b, nest.loc, last, index);
    index.getResult().replaceAllUsesExcept(other, other.getDefiningOp());
  }
}

FailureOr<Value> dist::emitGathered(LoopNest &nest, const BodyTarget &target) {
  Type type = target.value.getType();
  if (std::optional<AffineMap> map = plainMap(nest, target))
    return nest.emit(target.scalar, *map, type);

  if (llvm::is_contained(nest.extents, 0))
    return zeros(nest.b, nest.loc, type);
  // A copy with modifiable loops, which includes the indices of the places.
  BodyTarget copied = target;
  SmallVector<Value> needed{target.scalar};
  for (Place &place : copied.places)
    if (place.index)
      needed.push_back(place.index);
  LoopNest own = nest.restrictedTo(needed);
  Value scalar = needed[0];
  for (auto [next, place] : llvm::enumerate(llvm::make_filter_range(
           copied.places, [](const Place &place) { return place.index != nullptr; })))
    place.index = needed[next + 1];
  turnLoops(own, copied);
  if (std::optional<AffineMap> map = plainMap(own, copied))
    return own.emit(scalar, *map, type);
  FailureOr<Unwound> unwound = unwindWindows(own, scalar, copied);
  if (failed(unwound))
    return failure();

  // Each other dimension is a loop of the nest, or a new one whose index is compared.
  OpBuilder body = own.bodyEnd();
  Location loc = own.loc;
  llvm::SmallBitVector seen(own.extents.size());
  for (const Unwound::Dim &dim : unwound->dims)
    for (AffineExpr expr : dim.loops)
      seen.set(loopOf(expr));
  SmallVector<AffineExpr> exprs;
  SmallVector<int64_t> shape;
  Value meets;
  for (auto [d, place] : llvm::enumerate(copied.places)) {
    const Unwound::Dim &dim = unwound->dims[d];
    exprs.append(dim.loops.begin(), dim.loops.end());
    shape.append(dim.extents.begin(), dim.extents.end());
    if (!dim.loops.empty())
      continue;
    int64_t extent = cast<RankedTensorType>(type).getDimSize(d);
    shape.push_back(extent);
    auto readIndex = place.index ? place.index.getDefiningOp<linalg::IndexOp>() : nullptr;
    int64_t loop = place.expr  ? loopOf(place.expr)
                   : readIndex ? static_cast<int64_t>(readIndex.getDim())
                               : -1;
    if (loop >= 0 && own.extents[loop] == extent && !seen.test(loop)) {
      seen.set(loop);
      exprs.push_back(body.getAffineDimExpr(loop));
      continue;
    }
    if (extent == 1) {
      exprs.push_back(body.getAffineConstantExpr(0));
      continue;
    }
    // The read was at the clamped index.
    Value index = place.index ? clampIndex(body, loc, place.index, extent) : Value();
    if (!index)
      index = loop >= 0 ? own.index(loop)
                        : arith::ConstantIndexOp::create(
                              body, loc, cast<AffineConstantExpr>(place.expr).getValue())
                              .getResult();
    unsigned element = own.addLoop(extent);
    seen.resize(own.extents.size(), true);
    Value same =
        arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, index, own.index(element));
    meets = meets ? arith::AndIOp::create(body, loc, meets, same).getResult() : same;
    exprs.push_back(body.getAffineDimExpr(element));
  }
  if (meets)
    scalar = arith::SelectOp::create(body, loc, meets, scalar, zeros(body, loc, scalar.getType()));
  AffineMap map = AffineMap::get(own.extents.size(), 0, exprs, body.getContext());
  auto gathered = RankedTensorType::get(shape, getElementTypeOrSelf(type));
  return unwound->finish(own.emit(scalar, map, gathered));
}
