//===- GpuArgMax.cpp - Argmax as two reductions ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op that keeps the greatest element and its index has no associative combiner of its own:
//
//   m[i], p[i] = x[i, j] > m[i] ? (x[i, j], j) : (m[i], p[i])
//
// The greatest element is a reduction, and so is the first index with this element. Both read the
// same row, which a launch reads once.
//
//===----------------------------------------------------------------------===//

#include "../../Kernels/KernelGroup.h"
#include "../GpuStages.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tessera::codegen {

namespace {
struct ArgMax {
  Value element;   ///< the compared value of the body
  Operation *test; ///< whether it replaces the current one
  bool greatest = true, isUnsigned = false;
  unsigned loop = 0; ///< the reduced loop
};
} // namespace

/// Matches a body that keeps the first of the best elements and its index along the reduced loop.
static std::optional<ArgMax> match(linalg::GenericOp op) {
  if (op.getNumResults() != 2 || op.getNumReductionLoops() != 1 || op.hasDynamicShape() ||
      op.getIndexingMapsArray().back() != op.getMatchingIndexingMap(op.getDpsInitOperand(0)))
    return std::nullopt;
  Block &body = *op.getBody();
  Value kept = body.getArgument(op.getNumDpsInputs());
  Value place = body.getArgument(op.getNumDpsInputs() + 1);
  auto value = body.getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
  auto where = body.getTerminator()->getOperand(1).getDefiningOp<arith::SelectOp>();
  if (!value || !where || value.getCondition() != where.getCondition() ||
      value.getFalseValue() != kept || where.getFalseValue() != place || !kept.hasNUses(2) ||
      !place.hasOneUse())
    return std::nullopt;
  ArgMax found;
  found.element = value.getTrueValue();
  found.test = value.getCondition().getDefiningOp();
  if (!found.test || found.test->getNumOperands() != 2 ||
      found.test->getOperand(0) != found.element || found.test->getOperand(1) != kept)
    return std::nullopt;
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  if (auto compare = dyn_cast<arith::CmpFOp>(found.test)) {
    if (compare.getPredicate() != F::OGT && compare.getPredicate() != F::OLT)
      return std::nullopt;
    found.greatest = compare.getPredicate() == F::OGT;
  } else if (auto compare = dyn_cast<arith::CmpIOp>(found.test)) {
    I is = compare.getPredicate();
    if (is != I::sgt && is != I::slt && is != I::ugt && is != I::ult)
      return std::nullopt;
    found.greatest = is == I::sgt || is == I::ugt;
    found.isUnsigned = is == I::ugt || is == I::ult;
  } else {
    return std::nullopt;
  }
  auto cast = where.getTrueValue().getDefiningOp<arith::IndexCastOp>();
  auto index = cast ? cast.getIn().getDefiningOp<linalg::IndexOp>() : linalg::IndexOp();
  if (!index || cast.getType().getIntOrFloatBitWidth() < 32)
    return std::nullopt;
  found.loop = index.getDim();
  // Only contiguous rows: otherwise each thread has a column, and reads it once anyway.
  bool contiguous = llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    AffineMap map = op.getMatchingIndexingMap(input);
    return map.isPermutation() && map.getNumResults() > 0 &&
           map.getResults().back() == getAffineDimExpr(found.loop, op.getContext());
  });
  if (!contiguous || op.getIteratorTypesArray()[found.loop] != utils::IteratorType::reduction)
    return std::nullopt;
  return found;
}

/// The initial value of a result, if it is one number. NaN does not count, since no element
/// replaces it.
static Value beginOf(linalg::GenericOp op, unsigned output) {
  auto fill = op.getDpsInitOperand(output)->get().getDefiningOp<linalg::GenericOp>();
  Value scalar = fill ? filledScalar(fill) : Value();
  APFloat number(0.0);
  if (scalar && isa<FloatType>(scalar.getType()) &&
      (!matchPattern(scalar, m_ConstantFloat(&number)) || number.isNaN()))
    return Value();
  return scalar;
}

/// Copies the op with another end of its body: `finish` gets the element that the body computes.
static Value
reduce(IRRewriter &rewriter, linalg::GenericOp op, const ArgMax &found, ArrayRef<Value> beside,
       Value init,
       function_ref<Value(OpBuilder &, Value element, ValueRange beside, Value old)> finish) {
  SmallVector<Value> inputs(op.getDpsInputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap rows = maps.back();
  maps.resize(inputs.size());
  for (Value value : beside) {
    inputs.push_back(value);
    maps.push_back(rows);
  }
  maps.push_back(rows);
  auto body = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    IRMapping mapping;
    for (unsigned i = 0; i < op.getNumDpsInputs(); ++i)
      mapping.map(op.getBody()->getArgument(i), arguments[i]);
    // Copies everything before the comparison.
    for (Operation &inner : op.getBody()->without_terminator()) {
      if (&inner == found.test)
        break;
      b.clone(inner, mapping);
    }
    linalg::YieldOp::create(b, loc,
                            finish(b, mapping.lookupOrDefault(found.element),
                                   arguments.drop_back().take_back(beside.size()),
                                   arguments.back()));
  };
  return linalg::GenericOp::create(rewriter, op.getLoc(), init.getType(), inputs, init, maps,
                                   op.getIteratorTypesArray(), body)
      .getResult(0);
}

void splitArgMax(func::FuncOp kernel) {
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  for (linalg::GenericOp op : ops) {
    std::optional<ArgMax> found = match(op);
    Value low = found ? beginOf(op, 0) : Value(), none = found ? beginOf(op, 1) : Value();
    if (!low || !none)
      continue;
    Location loc = op.getLoc();
    rewriter.setInsertionPoint(op);
    Value best = reduce(rewriter, op, *found, {}, op.getDpsInitOperand(0)->get(),
                        [&](OpBuilder &b, Value element, ValueRange, Value old) -> Value {
                          if (isa<FloatType>(element.getType()))
                            return found->greatest
                                       ? arith::MaxNumFOp::create(b, loc, old, element).getResult()
                                       : arith::MinNumFOp::create(b, loc, old, element).getResult();
                          if (found->isUnsigned)
                            return found->greatest
                                       ? arith::MaxUIOp::create(b, loc, old, element).getResult()
                                       : arith::MinUIOp::create(b, loc, old, element).getResult();
                          return found->greatest
                                     ? arith::MaxSIOp::create(b, loc, old, element).getResult()
                                     : arith::MinSIOp::create(b, loc, old, element).getResult();
                        });
    auto placeType = cast<RankedTensorType>(op.getResult(1).getType());
    Type integer = placeType.getElementType();
    int64_t beyond = op.getStaticLoopRanges()[found->loop];
    Value end = arith::ConstantOp::create(rewriter, loc, rewriter.getIntegerAttr(integer, beyond));
    Value empty = tensor::EmptyOp::create(rewriter, loc, placeType.getShape(), integer);
    AffineMap rows = AffineMap::getMultiDimIdentityMap(placeType.getRank(), op.getContext());
    SmallVector<utils::IteratorType> parallel(placeType.getRank(), utils::IteratorType::parallel);
    Value ends =
        linalg::GenericOp::create(
            rewriter, loc, placeType, ValueRange(), empty, rows, parallel,
            [&](OpBuilder &b, Location, ValueRange) { linalg::YieldOp::create(b, loc, end); })
            .getResult(0);
    Value first = reduce(
        rewriter, op, *found, {best}, ends,
        [&](OpBuilder &b, Value element, ValueRange beside, Value old) -> Value {
          IRMapping better;
          better.map(found->test->getOperand(0), element);
          better.map(found->test->getOperand(1), low);
          Value above = b.clone(*found->test, better)->getResult(0);
          Value same =
              isa<FloatType>(element.getType())
                  ? arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, element, beside[0])
                        .getResult()
                  : arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, element, beside[0])
                        .getResult();
          Value here = arith::IndexCastOp::create(b, loc, integer,
                                                  linalg::IndexOp::create(b, loc, found->loop));
          Value place = arith::SelectOp::create(b, loc, arith::AndIOp::create(b, loc, above, same),
                                                here, end);
          return arith::MinSIOp::create(b, loc, old, place);
        });
    auto chosen = linalg::GenericOp::create(
        rewriter, loc, placeType, first, op.getDpsInitOperand(1)->get(),
        ArrayRef<AffineMap>{rows, rows}, parallel,
        [&](OpBuilder &b, Location, ValueRange arguments) {
          Value nowhere =
              arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, arguments[0], end);
          linalg::YieldOp::create(
              b, loc, arith::SelectOp::create(b, loc, nowhere, none, arguments[0]).getResult());
        });
    rewriter.replaceOp(op, {best, chosen.getResult(0)});
  }
}

} // namespace tessera::codegen
