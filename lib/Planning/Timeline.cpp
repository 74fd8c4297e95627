//===- Timeline.cpp - Times of ops and of reads ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Timeline.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

Timeline::Timeline(func::FuncOp function, IsView isView) : isView(isView) {
  std::function<void(Region &)> visit = [&](Region &region) {
    for (Block &block : region)
      for (Operation &op : block) {
        int64_t start = ++last;
        if (!isa<linalg::LinalgOp>(op))
          for (Region &inner : op.getRegions())
            visit(inner);
        times[&op] = {start, op.getNumRegions() ? ++last : start};
      }
  };
  visit(function.getBody());
  ++last;
}

Operation *Timeline::readerOf(Value value, Operation *user) {
  Operation *reader = user;
  for (Operation *parent = user->getParentOp();
       parent && !parent->isAncestor(value.getParentBlock()->getParentOp());
       parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      reader = parent;
  return reader;
}

int64_t Timeline::lastUse(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  int64_t time = lastUseUncached(value);
  known[value] = time;
  return time;
}

int64_t Timeline::lastUseOf(OpOperand &use) {
  Operation *user = use.getOwner();
  while (!knows(user)) // in the body of an op on tensors
    user = user->getParentOp();
  int64_t time = start(user);
  if (isView(user)) {
    for (Value viewed : user->getResults())
      time = std::max(time, lastUse(viewed));
  } else if (isa<func::ReturnOp>(user)) {
    time = end();
  } else if (auto started = dyn_cast<StartOp>(user->getParentOp())) {
    for (Operation *wait : started.getToken().getUsers())
      time = std::max(time, start(wait));
  } else if (auto condition = dyn_cast<scf::ConditionOp>(user);
             condition && use.getOperandNumber() > 0) {
    auto loop = cast<scf::WhileOp>(condition->getParentOp());
    time = std::max(time, lastUse(loop.getAfterArguments()[use.getOperandNumber() - 1]));
  }
  Operation *reader = readerOf(use.get(), user);
  return std::max(time, reader == user ? 0 : end(reader));
}

int64_t Timeline::lastUseUncached(Value value) {
  int64_t result = 0;
  for (OpOperand &use : value.getUses())
    result = std::max(result, lastUseOf(use));
  return result;
}

bool Timeline::diesInStart(Value value, StartOp started) {
  return llvm::count(started.getCollective()->getOperands(), value) == 1 &&
         llvm::all_of(value.getUses(), [&](OpOperand &use) {
           return use.getOwner() == started.getCollective() || lastUseOf(use) < start(started);
         });
}
