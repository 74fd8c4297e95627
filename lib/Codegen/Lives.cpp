//===- Lives.cpp - How long values are needed ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lives.h"

#include "StepOps.h"
#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

Lives::Lives(func::FuncOp function) {
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

int64_t Lives::outOfLoops(Value value, Operation *user, int64_t time) const {
  for (Operation *parent = user->getParentOp();
       parent && !parent->isAncestor(value.getParentBlock()->getParentOp());
       parent = parent->getParentOp())
    if (isa<scf::ForOp, scf::WhileOp>(parent))
      time = std::max(time, end(parent));
  return time;
}

int64_t Lives::lastUse(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  int64_t time = lastUseUncached(value);
  known[value] = time;
  return time;
}

int64_t Lives::lastUseUncached(Value value) {
  int64_t result = 0;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    int64_t time = start(user);
    StepKind kind = classify(user);
    if (kind == StepKind::view || kind == StepKind::scalar) {
      for (Value viewed : user->getResults())
        time = std::max(time, lastUse(viewed));
    } else if (isa<func::ReturnOp>(user)) {
      time = end();
    } else if (auto started = dyn_cast<dist::StartOp>(user->getParentOp())) {
      for (Operation *wait : started.getToken().getUsers())
        time = std::max(time, start(wait));
    } else if (auto condition = dyn_cast<scf::ConditionOp>(user);
               condition && use.getOperandNumber() > 0) {
      auto loop = cast<scf::WhileOp>(condition->getParentOp());
      time = std::max(time, lastUse(loop.getAfterArguments()[use.getOperandNumber() - 1]));
    }
    result = std::max(result, outOfLoops(value, user, time));
  }
  return result;
}
