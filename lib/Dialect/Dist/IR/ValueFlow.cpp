//===- ValueFlow.cpp - Values forwarded by control flow -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueFlow.h"

using namespace mlir;
using namespace tessera;

/// Calls `visit` with the uses forwarded by one branch, and their receivers.
static void visitBranch(MutableArrayRef<OpOperand> uses, ValueRange receivers,
                        llvm::function_ref<void(OpOperand &, Value)> visit) {
  for (auto [use, receiver] : llvm::zip(uses, receivers))
    visit(use, receiver);
}

static MutableArrayRef<OpOperand> usesOf(Operation *op, OperandRange operands) {
  return op->getOpOperands().slice(operands.getBeginOperandIndex(), operands.size());
}

void dist::forEachForwardedUse(RegionBranchOpInterface op,
                               llvm::function_ref<void(OpOperand &, Value)> visit) {
  SmallVector<RegionSuccessor> successors;
  op.getSuccessorRegions(RegionBranchPoint::parent(), successors);
  for (RegionSuccessor successor : successors) {
    OperandRange operands = op.getEntrySuccessorOperands(successor);
    if (!operands.empty())
      visitBranch(usesOf(op, operands), successor.getSuccessorInputs(), visit);
  }
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      auto end = block.empty() ? RegionBranchTerminatorOpInterface()
                               : dyn_cast<RegionBranchTerminatorOpInterface>(block.back());
      if (!end)
        continue;
      successors.clear();
      op.getSuccessorRegions(RegionBranchPoint(end), successors);
      for (RegionSuccessor successor : successors) {
        OperandRange operands = end.getSuccessorOperands(successor);
        if (!operands.empty())
          visitBranch(usesOf(end, operands), successor.getSuccessorInputs(), visit);
      }
    }
}

SmallVector<Value, 2> dist::receiversOf(OpOperand &use) {
  Operation *owner = use.getOwner();
  SmallVector<RegionSuccessor> successors;
  SmallVector<Value, 2> receivers;
  auto add = [&](OperandRange operands, RegionSuccessor successor) {
    unsigned index = use.getOperandNumber() - operands.getBeginOperandIndex(); // wraps below it
    if (index < operands.size())
      receivers.push_back(successor.getSuccessorInputs()[index]);
  };
  if (auto op = dyn_cast<RegionBranchOpInterface>(owner)) {
    op.getSuccessorRegions(RegionBranchPoint::parent(), successors);
    for (RegionSuccessor successor : successors)
      if (OperandRange operands = op.getEntrySuccessorOperands(successor); !operands.empty())
        add(operands, successor);
  } else if (auto end = dyn_cast<RegionBranchTerminatorOpInterface>(owner);
             end && isControlFlowEnd(owner)) {
    cast<RegionBranchOpInterface>(owner->getParentOp())
        .getSuccessorRegions(RegionBranchPoint(end), successors);
    for (RegionSuccessor successor : successors)
      if (OperandRange operands = end.getSuccessorOperands(successor); !operands.empty())
        add(operands, successor);
  }
  return receivers;
}
