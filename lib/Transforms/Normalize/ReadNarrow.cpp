//===- ReadNarrow.cpp - Products of narrow values -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadNarrow.h"

#include "tessera/Planning/Gemm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// The tensor that a value extends element by element; the value itself if it is not an extension.
static Value withoutExtension(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumDpsInputs() != 1 || op.getNumResults() != 1 ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return value;
  auto extension = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::ExtFOp>();
  return extension && extension.getIn() == op.getBody()->getArgument(0) ? op.getInputs()[0] : value;
}

static Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

/// Reads `source` as operand `number` and extends it in the body.
static void extendInBody(linalg::GenericOp op, unsigned number, Value source) {
  BlockArgument argument = op.getBody()->getArgument(number);
  Type wide = argument.getType();
  op->setOperand(number, source);
  argument.setType(elementOf(source));
  OpBuilder builder = OpBuilder::atBlockBegin(op.getBody());
  auto extended = arith::ExtFOp::create(builder, op.getLoc(), wide, argument);
  argument.replaceAllUsesExcept(extended, extended);
}

static void readNarrow(linalg::GenericOp op) {
  if (!reducesTwoTensors(op) || !isMultiplyAdd(*op.getBlock()) ||
      !elementOf(op->getOperand(2)).isF32())
    return;
  unsigned wide = elementOf(op->getOperand(0)).isF32() ? 0 : 1;
  Value extended = op->getOperand(wide), source = withoutExtension(extended);
  Type type = elementOf(op->getOperand(1 - wide));
  if (!elementOf(extended).isF32() || !(type.isBF16() || type.isF16()) || elementOf(source) != type)
    return;
  extendInBody(op, wide, source);
  if (Operation *unused = extended.getDefiningOp(); isOpTriviallyDead(unused))
    unused->erase();
}

void dist::readNarrow(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) {
    if (op.getNumReductionLoops() > 0)
      ops.push_back(op);
  });
  for (linalg::GenericOp op : ops)
    ::readNarrow(op);
}
