//===- InPlace.cpp - Results in the bytes of operands ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/InPlace.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;

/// Whether `op` computes element i of every result from element i of `value`. Its other operands do
/// not matter: they are other buffers, and complete.
static bool isIdentityElementwise(Operation *op, Value value) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.getNumLoops() == linalgOp.getNumParallelLoops() &&
           llvm::all_of(linalgOp->getOpOperands(),
                        [&](OpOperand &operand) {
                          AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
                          bool counts = operand.get() == value || linalgOp.isDpsInit(&operand);
                          return !counts || map.isIdentity() || map.getNumResults() == 0;
                        }) &&
           !linalgOp->getRegion(0)
                .front()
                .walk([](tensor::ExtractOp) { return WalkResult::interrupt(); })
                .wasInterrupted();
  return OpTrait::hasElementwiseMappableTraits(op);
}

/// The value that `last` updates to get `result`, in the bytes of the result; null if it overwrites
/// them, or updates the source itself.
static Value startOf(Operation *last, Value source, Value result) {
  auto op = dyn_cast<linalg::LinalgOp>(last);
  if (!op)
    return nullptr;
  OpOperand *init = op.getDpsInitOperand(cast<OpResult>(result).getResultNumber());
  bool isUpdated = op.payloadUsesValueFromOperand(init) && init->get() != source &&
                   !init->get().getDefiningOp<tensor::EmptyOp>();
  return isUpdated ? init->get() : nullptr;
}

bool dist::mayReplace(Value source, Value result, llvm::function_ref<bool(Operation *)> isInside) {
  Operation *last = result.getDefiningOp();
  if (!last || source.getType() != result.getType())
    return false;
  // What is updated is written over the source first, and by then the source has been read.
  if (Value start = startOf(last, source, result))
    return start.getDefiningOp() && isInside(start.getDefiningOp()) && start.hasOneUse() &&
           mayReplace(source, start, isInside);
  // Producers of the result: at each element, everything that runs before the result is complete.
  llvm::SmallPtrSet<Operation *, 16> producers;
  SmallVector<Operation *> worklist{last};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!producers.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && isInside(def))
        worklist.push_back(def);
  }
  llvm::SmallPtrSet<Operation *, 16> path;
  SmallVector<Value> values{source};
  while (!values.empty()) {
    Value value = values.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (!producers.contains(user)) {
        // Another loop may compute a value between source and result again, after the write.
        if (isInside(user))
          return false;
        continue;
      }
      if (user->getBlock() != last->getBlock() || !isIdentityElementwise(user, value))
        return false;
      if (path.insert(user).second && user != last)
        llvm::append_range(values, user->getResults());
    }
  }
  // A scalar that every element reads would change during the loop.
  return cast<RankedTensorType>(source.getType()).getRank() != 0 || path.size() <= 1;
}
