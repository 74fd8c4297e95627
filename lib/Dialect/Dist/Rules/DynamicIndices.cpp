//===- DynamicIndices.cpp - Indices known when a program runs -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace tessera;

dist::OffsetBounds dist::offsetBounds(int64_t extent, int64_t size, int64_t stride) {
  int64_t span = std::max<int64_t>(size - 1, 0) * stride;
  return {std::max<int64_t>(-span, 0), extent - 1 - std::max<int64_t>(span, 0)};
}

/// Depth limit of `rangeOf`. Ops that bound an index are usually near it.
static constexpr int kMostSteps = 12;

static ConstantIntRanges between(unsigned width, int64_t least, int64_t greatest) {
  return ConstantIntRanges::fromSigned(APInt(width, static_cast<uint64_t>(least), true),
                                       APInt(width, static_cast<uint64_t>(greatest), true));
}

/// The range of a region argument that is an induction variable with constant bounds, else
/// `anything`.
static ConstantIntRanges rangeOfInduction(LoopLikeOpInterface loop, Value argument,
                                          ConstantIntRanges anything) {
  auto variables = loop.getLoopInductionVars();
  auto lower = loop.getLoopLowerBounds(), upper = loop.getLoopUpperBounds();
  auto steps = loop.getLoopSteps();
  if (!variables || !lower || !upper || !steps)
    return anything;
  for (auto [variable, least, end, step] : llvm::zip(*variables, *lower, *upper, *steps)) {
    std::optional<int64_t> from = getConstantIntValue(least), to = getConstantIntValue(end);
    if (variable == argument && from && to && getConstantIntValue(step).value_or(0) > 0 &&
        *from < *to)
      return between(anything.smin().getBitWidth(), *from, *to - 1);
  }
  return anything;
}

static ConstantIntRanges rangeWithin(Value value, int steps) {
  unsigned width = ConstantIntRanges::getStorageBitwidth(value.getType());
  ConstantIntRanges anything = ConstantIntRanges::maxRange(width);
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return ConstantIntRanges::constant(constant);
  if (steps == 0 || width == 0)
    return anything;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
    return loop ? rangeOfInduction(loop, argument, anything) : anything;
  }
  Operation *op = value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(index->getParentOp()); // null: no parent yet
    int64_t extent = linalgOp ? linalgOp.getStaticLoopRanges()[index.getDim()] : 0;
    return extent > 0 ? between(width, 0, extent - 1) : anything;
  }
  auto infers = dyn_cast<InferIntRangeInterface>(op);
  if (!infers)
    return anything;
  SmallVector<IntegerValueRange> operands;
  for (Value operand : op->getOperands()) {
    if (!operand.getType().isIntOrIndex())
      return anything;
    operands.emplace_back(rangeWithin(operand, steps - 1));
  }
  // MLIR's ranges exclude divisions and shifts that MLIR leaves undefined; here they have results.
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::CeilDivUIOp, arith::CeilDivSIOp,
          arith::FloorDivSIOp, arith::RemUIOp, arith::RemSIOp>(op) &&
      operands[1].getValue().umin().isZero())
    return anything;
  if (isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(op) &&
      operands[1].getValue().umax().uge(width))
    return anything;
  ConstantIntRanges result = anything;
  infers.inferResultRangesFromOptional(operands, [&](Value of, const IntegerValueRange &range) {
    if (of == value && !range.isUninitialized())
      result = range.getValue();
  });
  return result;
}

ConstantIntRanges dist::rangeOf(Value value) {
  return rangeWithin(value, kMostSteps);
}

Value dist::clampIndex(OpBuilder &b, Location loc, Value index, OffsetBounds bounds) {
  ConstantIntRanges range = rangeOf(index);
  if (range.smin().slt(bounds.least))
    index =
        arith::MaxSIOp::create(b, loc, index, arith::ConstantIndexOp::create(b, loc, bounds.least));
  if (range.smax().sgt(bounds.greatest))
    index = arith::MinSIOp::create(b, loc, index,
                                   arith::ConstantIndexOp::create(b, loc, bounds.greatest));
  return index;
}
