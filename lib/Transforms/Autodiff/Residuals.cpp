//===- Residuals.cpp - Forward values that a reverse region reads ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Residuals.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;

/// Whether rematerializing the value from its operands is nearly free.
static bool isCheap(Operation *op) {
  if (isa<arith::ConstantOp, tensor::EmptyOp, tensor::SplatOp, linalg::FillOp,
          tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
          dist::ShardTensorOp>(op))
    return true;
  return isa<arith::ArithDialect>(op->getDialect()) && op->getNumResults() == 1 &&
         op->getResult(0).getType().isIntOrIndex();
}

namespace {

class Replacer {
public:
  Replacer(Block &forward, Block &reverse, IRMapping &known,
           llvm::function_ref<Value(OpBuilder &, Value)> keep)
      : forward(forward), reverse(reverse), known(known), keep(keep) {}

  void run() {
    SmallVector<OpOperand *> uses;
    reverse.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (isHidden(operand.get()))
          uses.push_back(&operand);
    });
    for (OpOperand *use : uses) {
      OpBuilder b(reverse.findAncestorOpInBlock(*use->getOwner()));
      use->set(visible(b, use->get()));
    }
  }

private:
  bool isHidden(Value value) const {
    return value.getParentBlock() == &forward || known.contains(value);
  }

  bool canRemake(Value value) {
    if (!isHidden(value) || known.contains(value))
      return true;
    auto [it, isNew] = remakes.try_emplace(value, false);
    if (!isNew)
      return it->second;
    Operation *op = value.getDefiningOp();
    bool result =
        op && isCheap(op) && llvm::all_of(op->getOperands(), [&](Value v) { return canRemake(v); });
    return remakes[value] = result;
  }

  Value visible(OpBuilder &b, Value value) {
    if (!isHidden(value))
      return value;
    if (Value found = known.lookupOrNull(value))
      return found;
    Value result;
    if (canRemake(value)) {
      Operation *op = value.getDefiningOp();
      for (Value operand : op->getOperands())
        (void)visible(b, operand);
      result = b.clone(*op, known)->getResult(cast<OpResult>(value).getResultNumber());
    } else {
      result = keep(b, value);
    }
    known.map(value, result);
    return result;
  }

  Block &forward, &reverse;
  IRMapping &known;
  llvm::function_ref<Value(OpBuilder &, Value)> keep;
  llvm::DenseMap<Value, bool> remakes; // looked up, never iterated
};

} // namespace

void dist::replaceResiduals(Block &forward, Block &reverse, IRMapping &known,
                            llvm::function_ref<Value(OpBuilder &, Value)> keep) {
  Replacer(forward, reverse, known, keep).run();
}
