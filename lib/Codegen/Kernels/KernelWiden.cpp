//===- KernelWiden.cpp - Sums of 16-bit floats in f32 ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum that is rounded to bf16 after every addition stops growing at 256 times its addends, and
// depends on its cuts. Accumulators of 16-bit floats are f32 until the end:
//
//   s = reduce x into init : bf16    is    t = reduce (extf x) into (extf init) : f32,  s = truncf
//   t
//
//===----------------------------------------------------------------------===//

#include "KernelWiden.h"

#include "KernelGroup.h"
#include "tessera/Dialect/Dist/Rules/NarrowSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

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
  // A fill stays a fill.
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

/// Converts the combiner to an accumulator of f32.
void widenCombiner(OpBuilder &b, const dist::NarrowSum &sum, BlockArgument accumulator) {
  Operation *combiner = sum.combiner;
  b.setInsertionPoint(combiner);
  Location loc = combiner->getLoc();
  auto widen = [&](Value value) -> Value {
    return arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  };
  bool second = combiner->getOperand(1) == accumulator;
  Value wide;
  if (sum.product)
    wide = arith::MulFOp::create(b, loc, widen(sum.product->getOperand(0)),
                                 widen(sum.product->getOperand(1)));
  else
    wide = widen(combiner->getOperand(second ? 0 : 1));
  combiner->setOperands(second ? ValueRange{wide, accumulator} : ValueRange{accumulator, wide});
  combiner->getResult(0).setType(b.getF32Type());
  if (sum.product)
    sum.product->erase();
}

} // namespace

void widenSums(func::FuncOp kernel) {
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  Type f32 = rewriter.getF32Type();
  for (linalg::GenericOp op : ops) {
    SmallVector<dist::NarrowSum> found = dist::narrowSums(op);
    if (found.empty() || op.hasDynamicShape())
      continue;
    rewriter.setInsertionPoint(op);
    SmallVector<Value> inits(op.getDpsInits());
    for (const dist::NarrowSum &each : found)
      inits[each.output] = castElements(rewriter, op.getLoc(), inits[each.output], f32);
    auto wide = linalg::GenericOp::create(rewriter, op.getLoc(), TypeRange(ValueRange(inits)),
                                          op.getDpsInputs(), inits, op.getIndexingMapsArray(),
                                          op.getIteratorTypesArray());
    wide.getRegion().takeBody(op.getRegion());
    for (const dist::NarrowSum &each : found) {
      BlockArgument accumulator = wide.getRegionOutputArgs()[each.output];
      accumulator.setType(f32);
      widenCombiner(rewriter, each, accumulator);
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
