//===- DecideBranches.cpp - Branches whose condition is known -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecideBranches.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;

/// Limit on the depth of folded ops.
static constexpr int kMostSteps = 16;

/// The constant that an op and those before it fold to, or null.
static Attribute constantOf(Value value, int steps = kMostSteps) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant;
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || op->getNumRegions() > 0 || !isPure(op))
    return {};
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(constantOf(operand, steps - 1));
    if (!operands.back())
      return {};
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.empty())
    return {};
  return dyn_cast<Attribute>(results[cast<OpResult>(value).getResultNumber()]);
}

void dist::decideBranches(func::FuncOp function) {
  SmallVector<scf::IfOp> branches; // inner ones first
  function.walk([&](scf::IfOp op) { branches.push_back(op); });
  for (scf::IfOp op : branches) {
    auto condition = dyn_cast_or_null<IntegerAttr>(constantOf(op.getCondition()));
    if (!condition)
      continue;
    Region &taken = condition.getValue().isZero() ? op.getElseRegion() : op.getThenRegion();
    if (!taken.empty()) {
      Operation *yield = taken.front().getTerminator();
      op->replaceAllUsesWith(yield->getOperands());
      yield->erase();
      op->getBlock()->getOperations().splice(op->getIterator(), taken.front().getOperations());
    }
    op.erase();
  }
}
