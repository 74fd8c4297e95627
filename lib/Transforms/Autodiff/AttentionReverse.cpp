//===- AttentionReverse.cpp - Reverse of attention ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionReverse.h"
#include "ScalarRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

ext::AttentionOp dist::addLogsumexp(ext::AttentionOp op) {
  ext::AttentionParts parts = ext::partsOf(op);
  OpBuilder b(op);
  SmallVector<int64_t> shape =
      llvm::map_to_vector(parts.rows, [&](unsigned loop) { return parts.domain.extents[loop]; });
  SmallVector<AffineExpr> rows =
      llvm::map_to_vector(parts.rows, [&](unsigned loop) { return b.getAffineDimExpr(loop); });
  SmallVector<AffineMap> maps = parts.maps;
  maps.push_back(AffineMap::get(parts.domain.extents.size(), 0, rows, op.getContext()));
  auto made = ext::AttentionOp::create(
      b, op.getLoc(),
      TypeRange{op.getOutput().getType(), RankedTensorType::get(shape, parts.scoreType())},
      op.getQuery(), op.getKey(), op.getValue(), op.getExtras(), b.getAffineMapArrayAttr(maps),
      op.getRing(), op.getBalanced());
  IRMapping mapping;
  op.getScore().cloneInto(&made.getScore(), mapping);
  op.getWeights().cloneInto(&made.getWeights(), mapping);
  op.getOutput().replaceAllUsesWith(made.getOutput());
  op.erase();
  return made;
}

/// sum_g output * gradient, one element per row.
static Value rowProducts(OpBuilder &b, ext::AttentionOp op, Value gradient, AffineMap gradientMap) {
  ext::AttentionParts parts = ext::partsOf(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLogsumexp().getType());
  auto element = cast<FloatType>(type.getElementType());
  unsigned rank = parts.output.getNumResults();
  SmallVector<AffineExpr> rows;
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::reduction);
  for (unsigned loop : parts.rows) {
    unsigned dim = *parts.output.getResultPosition(b.getAffineDimExpr(loop));
    rows.push_back(b.getAffineDimExpr(dim));
    iterators[dim] = utils::IteratorType::parallel;
  }
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  SmallVector<AffineExpr> ofGradient =
      llvm::map_to_vector(gradientMap.getResults(), [&](AffineExpr loop) {
        return b.getAffineDimExpr(*parts.output.getResultPosition(loop));
      });
  auto wide = [&](OpBuilder &b, Location loc, Value x) -> Value {
    return cast<FloatType>(x.getType()).getWidth() < element.getWidth()
               ? arith::ExtFOp::create(b, loc, element, x).getResult()
           : x.getType() == element ? x
                                    : arith::TruncFOp::create(b, loc, element, x).getResult();
  };
  return linalg::GenericOp::create(
             b, loc, type, ValueRange{op.getOutput(), gradient}, zeros(b, loc, type),
             ArrayRef<AffineMap>{identity, AffineMap::get(rank, 0, ofGradient, b.getContext()),
                                 AffineMap::get(rank, 0, rows, b.getContext())},
             iterators,
             [&](OpBuilder &b, Location loc, ValueRange in) {
               Value product =
                   arith::MulFOp::create(b, loc, wide(b, loc, in[0]), wide(b, loc, in[1]));
               Value sum = arith::AddFOp::create(b, loc, in[2], product);
               linalg::YieldOp::create(b, loc, sum);
             })
      .getResult(0);
}

/// Emits the region that maps the derivative by a score to that by the product. Returns the op
/// without a derivative, if any.
static Operation *writeDerivative(ext::AttentionOp op, Region &region) {
  Block &score = op.getScore().front();
  Block &block = region.emplaceBlock();
  IRMapping copies;
  for (BlockArgument argument : score.getArguments())
    copies.map(argument, block.addArgument(argument.getType(), argument.getLoc()));
  Value yielded = score.getTerminator()->getOperand(0);
  Value seed = block.addArgument(yielded.getType(), op.getLoc());
  OpBuilder b(op.getContext()); // the region has no parent op yet
  b.setInsertionPointToEnd(&block);
  llvm::DenseSet<Value> dependent{score.getArgument(0)};
  for (Operation &inner : score.without_terminator()) {
    b.clone(inner, copies);
    if (llvm::any_of(inner.getOperands(), [&](Value value) { return dependent.contains(value); }))
      for (Value result : inner.getResults())
        if (isDifferentiable(result.getType()))
          dependent.insert(result);
  }
  llvm::DenseMap<Value, Value> cotangents; // looked up only
  auto add = [&](Value value, Value cotangent) {
    Value &sum = cotangents[value];
    sum = sum ? arith::AddFOp::create(b, op.getLoc(), sum, cotangent).getResult() : cotangent;
  };
  add(yielded, seed);
  for (Operation &inner : llvm::reverse(score.without_terminator())) {
    SmallVector<Value> incoming;
    for (Value result : inner.getResults())
      incoming.push_back(cotangents.lookup(result));
    auto depends = [&](Value value) { return dependent.contains(value); };
    if (llvm::none_of(incoming, [](Value value) { return value != nullptr; }) ||
        llvm::none_of(inner.getOperands(), depends))
      continue;
    ScalarReverse rule{&inner, incoming, [&](Value value) { return copies.lookupOrDefault(value); },
                       [&](unsigned i) { return depends(inner.getOperand(i)); },
                       [&](unsigned i, Value value) { add(inner.getOperand(i), value); }};
    if (failed(reverseScalar(b, rule)))
      return &inner;
  }
  Value result = cotangents.lookup(score.getArgument(0));
  if (!result)
    result = zeros(b, op.getLoc(), score.getArgument(0).getType());
  ext::YieldOp::create(b, op.getLoc(), result);
  return nullptr;
}

DerivedAttention dist::deriveAttention(OpBuilder &b, ext::AttentionOp op, Value gradient,
                                       AffineMap gradientMap, TypeRange types) {
  Region derivative;
  if (Operation *without = writeDerivative(op, derivative))
    return {{}, without};
  ext::AttentionParts parts = ext::partsOf(op);
  Value delta = rowProducts(b, op, gradient, gradientMap);
  AffineMap rows = parts.maps.back();
  SmallVector<AffineMap> maps{parts.maps[0], parts.maps[1], parts.maps[2], gradientMap, rows, rows};
  for (unsigned extra = 3; extra < op->getNumOperands(); ++extra)
    maps.push_back(parts.maps[extra]);
  maps.append(parts.maps.begin(), parts.maps.begin() + 3);
  auto made = ext::AttentionBackwardOp::create(
      b, op.getLoc(), types, op.getQuery(), op.getKey(), op.getValue(), gradient, op.getLogsumexp(),
      delta, op.getExtras(), b.getAffineMapArrayAttr(maps), op.getRing(), op.getBalanced());
  IRMapping mapping;
  op.getScore().cloneInto(&made.getScore(), mapping);
  op.getWeights().cloneInto(&made.getWeights(), mapping);
  made.getDerivative().takeBody(derivative);
  return {made, nullptr};
}

LogicalResult dist::reverseAttention(Reverse &reverse, ext::AttentionOp op,
                                     ArrayRef<Value> cotangents) {
  assert(op.getLogsumexp() && !cotangents[1] && "prepareAttention has seen the op");
  DerivedAttention derived = deriveAttention(reverse.b, op, cotangents[0], ext::partsOf(op).output,
                                             op.getOperands().take_front(3).getTypes());
  if (derived.without)
    return noDerivative(derived.without, "it has no rule; write it with other ops, or stop the "
                                         "gradient with dist.stop_gradient");
  for (auto [operand, result] : llvm::zip(op.getOperands(), derived.op.getResults()))
    reverse.add(operand, result);
  return success();
}

void dist::prepareAttention(func::FuncOp function, ValueRange inputs, ArrayRef<unsigned> of,
                            int64_t leastScoreBytes) {
  recognizeAttention(function, leastScoreBytes);
  Operation *ret = function.getBody().front().getTerminator();
  SmallVector<Value> outputs =
      llvm::map_to_vector(of, [&](unsigned i) { return ret->getOperand(i); });
  Activity activity(function, inputs, outputs);
  auto isActive = [&](Value value) { return activity.isActive(value); };
  SmallVector<Operation *> written;
  SmallVector<ext::AttentionOp> kept;
  function.walk([&](Operation *op) {
    if (auto attention = dyn_cast<ext::AttentionOp>(op)) {
      Value logsumexp = attention.getLogsumexp();
      if (llvm::any_of(attention.getExtras(), isActive) || (logsumexp && isActive(logsumexp)))
        written.push_back(op);
      else if (!logsumexp && isActive(attention.getOutput()))
        kept.push_back(attention);
    } else if (isa<ext::AttentionBackwardOp>(op) && llvm::any_of(op->getOperands(), isActive)) {
      written.push_back(op);
    }
  });
  for (Operation *op : written) {
    OpBuilder b(op);
    FailureOr<SmallVector<Value>> results =
        cast<linalg::AggregatedOpInterface>(op).decomposeOperation(b);
    assert(succeeded(results) && "attention is written in terms of other ops");
    op->replaceAllUsesWith(*results);
    op->erase();
  }
  for (ext::AttentionOp op : kept)
    addLogsumexp(op);
}
