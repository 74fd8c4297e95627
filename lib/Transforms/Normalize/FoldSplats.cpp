//===- FoldSplats.cpp - Values of one number ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   start[i, j] = select(inside[i], 0, 0)      start = 0
//
// So starts a look-up of JAX whose indices out of range read 0.
//
//===----------------------------------------------------------------------===//

#include "FoldSplats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// The constant that a scalar of the body of an op is in every iteration; null if none is known.
static Attribute numberOf(Value scalar, linalg::GenericOp op) {
  Attribute number;
  if (matchPattern(scalar, m_Constant(&number)))
    return number;
  if (auto argument = dyn_cast<BlockArgument>(scalar);
      argument && argument.getOwner() == op.getBody()) {
    SplatElementsAttr elements;
    Value read = op->getOperand(argument.getArgNumber());
    return matchPattern(read, m_Constant(&elements)) ? elements.getSplatValue<Attribute>()
                                                     : Attribute();
  }
  if (auto choice = scalar.getDefiningOp<arith::SelectOp>())
    if (Attribute one = numberOf(choice.getTrueValue(), op);
        one && one == numberOf(choice.getFalseValue(), op))
      return one;
  return {};
}

static void foldSplat(linalg::GenericOp op) {
  // All elements of the results are written.
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() > 0 ||
      !llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
        return op.getMatchingIndexingMap(&init).isPermutation();
      }))
    return;
  SmallVector<Attribute> numbers;
  for (Value yielded : op.getBody()->getTerminator()->getOperands()) {
    numbers.push_back(numberOf(yielded, op));
    if (!numbers.back())
      return;
  }
  OpBuilder builder(op);
  for (auto [result, number] : llvm::zip_equal(op.getResults(), numbers)) {
    auto type = cast<RankedTensorType>(result.getType());
    auto elements = DenseElementsAttr::get(type, number);
    result.replaceAllUsesWith(arith::ConstantOp::create(builder, op.getLoc(), elements));
  }
  op.erase();
}

void dist::foldSplats(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops; // producers first
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops)
    foldSplat(op);
}
