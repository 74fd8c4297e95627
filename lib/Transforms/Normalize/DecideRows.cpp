//===- DecideRows.cpp - Checks that numbers of rows decide ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows that were put at the places of a sort are put where they are once the sort is
// undone:  y[s] = select(rows[s] == s, x[s], y0[s]), where rows is an iota. The derivative
// of such an update asks which of several updates of an element was the last, by the
// numbers of the updates: there it compares a tensor with itself.
//
//===----------------------------------------------------------------------===//

#include "DecideRows.h"

#include "../Recognize/MatchAttention.h"
#include "ElementRanges.h"
#include "PlainOps.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Whether two scalars of a body are equal in every iteration.
static bool areEqual(linalg::GenericOp op, ElementRanges &ranges, Value left, Value right) {
  Value sides[2] = {ranges.strip(op, left), ranges.strip(op, right)};
  if (sides[0] == sides[1])
    return true;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto operandOf = [&](Value scalar) -> OpOperand * {
    auto argument = dyn_cast<BlockArgument>(scalar);
    bool isInput = argument && argument.getOwner() == op.getBody() &&
                   argument.getArgNumber() < op.getNumDpsInputs();
    return isInput ? op.getDpsInputOperand(argument.getArgNumber()) : nullptr;
  };
  OpOperand *inputs[2] = {operandOf(sides[0]), operandOf(sides[1])};
  if (inputs[0] && inputs[1])
    return inputs[0]->get() == inputs[1]->get() &&
           maps[inputs[0]->getOperandNumber()] == maps[inputs[1]->getOperandNumber()];
  for (unsigned i : {0, 1}) {
    auto index = sides[1 - i].getDefiningOp<linalg::IndexOp>();
    if (!inputs[i] || !index)
      continue;
    AffineMap map = maps[inputs[i]->getOperandNumber()];
    return map.getNumResults() == 1 &&
           map.getResult(0) == getAffineDimExpr(index.getDim(), op.getContext()) &&
           ranges.isIota(inputs[i]->get());
  }
  return false;
}

/// Decides the comparisons of a body that always hold, and choices by them.
static void decideBody(linalg::GenericOp op, ElementRanges &ranges) {
  for (auto compare : llvm::make_early_inc_range(op.getBody()->getOps<arith::CmpIOp>())) {
    if (compare.getPredicate() != arith::CmpIPredicate::eq ||
        !areEqual(op, ranges, compare.getLhs(), compare.getRhs()))
      continue;
    for (Operation *user : llvm::to_vector(compare->getUsers()))
      if (auto choice = dyn_cast<arith::SelectOp>(user);
          choice && choice.getCondition() == compare.getResult())
        choice.replaceAllUsesWith(choice.getTrueValue());
    OpBuilder b(compare);
    Value yes = arith::ConstantOp::create(b, compare.getLoc(), b.getBoolAttr(true));
    compare.replaceAllUsesWith(yes);
  }
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(*op.getBody())))
    if (isOpTriviallyDead(&inner))
      inner.erase();
}

void dist::decideRows(func::FuncOp function) {
  ElementRanges ranges; // nothing is erased meanwhile that it may know
  function.walk([&](linalg::GenericOp op) {
    if (op->getNumResults() != 1 || !op.hasPureTensorSemantics() || op.getNumReductionLoops() > 0 ||
        !isPlain(op))
      return;
    decideBody(op, ranges);
    Value result = op->getResult(0);
    if (TypedAttr number = ranges.constantOf(result)) {
      OpBuilder b(op);
      auto type = cast<RankedTensorType>(result.getType());
      result.replaceAllUsesWith(arith::ConstantOp::create(
          b, op.getLoc(), DenseElementsAttr::get(type, Attribute(number))));
    } else if (Value source = ranges.sourceOf(result);
               source != result && source.getType() == result.getType()) {
      result.replaceAllUsesWith(source);
    }
  });
  eraseDeadTensorOps(function);
  SmallVector<ext::SortOp> sorts;
  function.walk([&](ext::SortOp sort) { sorts.push_back(sort); });
  for (ext::SortOp sort : llvm::reverse(sorts))
    if (sort->use_empty())
      sort.erase();
  eraseDeadTensorOps(function); // what made their operands
}
