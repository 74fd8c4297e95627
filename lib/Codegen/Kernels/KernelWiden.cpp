//===- KernelWiden.cpp - Sums of 16-bit floats in f32 ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum that is rounded to bf16 after every addition stops growing at 256 times what is added, and
// depends on where it is cut. Accumulators of 16-bit floats are f32 until the end:
//
//   s = reduce x into init : bf16    is    t = reduce (extf x) into (extf init) : f32,  s = truncf
//   t
//
//===----------------------------------------------------------------------===//

#include "KernelWiden.h"

#include "KernelGroup.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// An output that accumulates by one operation.
struct Accumulator {
  unsigned output;
  Operation *combiner;
};

bool isNarrowFloat(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

/// The outputs that add up, or multiply, more than two 16-bit floats an element.
SmallVector<Accumulator> narrowAccumulators(linalg::GenericOp op) {
  SmallVector<Accumulator> found;
  if (!op.hasPureTensorSemantics() || op.hasDynamicShape() || op.getNumReductionLoops() == 0)
    return found;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [output, result] : llvm::enumerate(op.getResults())) {
    AffineMap map = op.getIndexingMapMatchingResult(cast<OpResult>(result));
    int64_t added = 1;
    for (auto [loop, extent] : llvm::enumerate(ranges))
      added *= map.isFunctionOfDim(loop) ? 1 : extent;
    SmallVector<Operation *> combiners;
    if (!isNarrowFloat(result.getType()) || added <= 2 ||
        !matchReduction(op.getRegionOutputArgs(), output, combiners) || combiners.size() != 1 ||
        !isa<arith::AddFOp, arith::MulFOp>(combiners[0]))
      continue;
    found.push_back({static_cast<unsigned>(output), combiners[0]});
  }
  return found;
}

/// Every element of `value` as `element`, f32 or back.
Value castElements(OpBuilder &b, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  auto cast = [&](OpBuilder &at, Location where, Value one) -> Value {
    if (element.isF32())
      return arith::ExtFOp::create(at, where, element, one);
    return arith::TruncFOp::create(at, where, element, one);
  };
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineMap> maps{identity};
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  // What one value fills stays a fill.
  auto producer = value.getDefiningOp<linalg::GenericOp>();
  if (Value scalar = producer ? filledScalar(producer) : Value()) {
    FloatAttr constant;
    Value wide = matchPattern(scalar, m_Constant(&constant))
                     ? arith::ConstantOp::create(
                           b, loc, b.getFloatAttr(element, constant.getValueAsDouble()))
                           .getResult()
                     : cast(b, loc, scalar);
    return linalg::GenericOp::create(b, loc, empty.getType(), ValueRange(), empty, maps, loops,
                                     [&](OpBuilder &inner, Location where, ValueRange) {
                                       linalg::YieldOp::create(inner, where, wide);
                                     })
        .getResult(0);
  }
  maps.push_back(identity);
  return linalg::GenericOp::create(b, loc, empty.getType(), value, empty, maps, loops,
                                   [&](OpBuilder &inner, Location where, ValueRange arguments) {
                                     linalg::YieldOp::create(inner, where,
                                                             cast(inner, where, arguments[0]));
                                   })
      .getResult(0);
}

/// Adds what the combiner adds to an accumulator of f32. A product that nobody else needs is not
/// rounded: it is exact in f32.
void widenCombiner(OpBuilder &b, Operation *combiner, BlockArgument accumulator) {
  b.setInsertionPoint(combiner);
  Location loc = combiner->getLoc();
  Type f32 = b.getF32Type();
  auto widen = [&](Value value) -> Value { return arith::ExtFOp::create(b, loc, f32, value); };
  bool second = combiner->getOperand(1) == accumulator;
  Value added = combiner->getOperand(second ? 0 : 1), wide;
  auto product = added.getDefiningOp<arith::MulFOp>();
  if (isa<arith::AddFOp>(combiner) && product && product->hasOneUse())
    wide = arith::MulFOp::create(b, loc, widen(product.getLhs()), widen(product.getRhs()));
  else
    wide = widen(added);
  combiner->setOperands(second ? ValueRange{wide, accumulator} : ValueRange{accumulator, wide});
  combiner->getResult(0).setType(f32);
  if (product && product->use_empty())
    product->erase();
}

} // namespace

void widenSums(func::FuncOp kernel) {
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  Type f32 = rewriter.getF32Type();
  for (linalg::GenericOp op : ops) {
    SmallVector<Accumulator> found = narrowAccumulators(op);
    if (found.empty())
      continue;
    rewriter.setInsertionPoint(op);
    SmallVector<Value> inits(op.getDpsInits());
    for (const Accumulator &each : found)
      inits[each.output] = castElements(rewriter, op.getLoc(), inits[each.output], f32);
    auto wide = linalg::GenericOp::create(rewriter, op.getLoc(), TypeRange(ValueRange(inits)),
                                          op.getDpsInputs(), inits, op.getIndexingMapsArray(),
                                          op.getIteratorTypesArray());
    wide.getRegion().takeBody(op.getRegion());
    for (const Accumulator &each : found) {
      BlockArgument accumulator = wide.getRegionOutputArgs()[each.output];
      accumulator.setType(f32);
      widenCombiner(rewriter, each.combiner, accumulator);
    }
    rewriter.setInsertionPointAfter(wide);
    for (auto [before, after] : llvm::zip_equal(op.getResults(), wide.getResults()))
      rewriter.replaceAllUsesWith(
          before,
          before.getType() == after.getType()
              ? after
              : castElements(rewriter, op.getLoc(), after, getElementTypeOrSelf(before.getType())));
    rewriter.eraseOp(op);
  }
}

} // namespace tessera::codegen
