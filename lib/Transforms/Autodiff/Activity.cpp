//===- Activity.cpp - Values that take part in a derivative ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Activity.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

bool dist::isDifferentiable(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}

SmallVector<Value> dist::valuesRead(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  values.append(captured.begin(), captured.end());
  return values;
}

namespace {

/// "to depends on from" for all values of a function, as adjacency lists.
class Dependences {
public:
  explicit Dependences(func::FuncOp function) {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == function || op->hasTrait<OpTrait::IsTerminator>())
        return WalkResult::advance();
      return add(op);
    });
  }

  llvm::DenseSet<Value> reach(ValueRange from, bool backward) const {
    const auto &edges = backward ? sources : users;
    llvm::DenseSet<Value> reached;
    SmallVector<Value> work;
    auto visit = [&](Value value) {
      if (isDifferentiable(value.getType()) && reached.insert(value).second)
        work.push_back(value);
    };
    llvm::for_each(from, visit);
    while (!work.empty())
      if (auto it = edges.find(work.pop_back_val()); it != edges.end())
        llvm::for_each(it->second, visit);
    return reached;
  }

private:
  static bool isDifferentiable(Type type) { return dist::isDifferentiable(type); }

  void edge(Value from, Value to) {
    if (!isDifferentiable(from.getType()) || !isDifferentiable(to.getType()))
      return;
    users[from].push_back(to);
    sources[to].push_back(from);
  }

  WalkResult add(Operation *op) {
    if (isa<dist::StopGradientOp>(op))
      return WalkResult::advance();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [init, argument, yielded, result] :
           llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(),
                           loop.getResults())) {
        edge(init, argument);
        edge(yielded, argument);
        edge(init, result);
        edge(yielded, result);
      }
      return WalkResult::advance();
    }
    if (isa<scf::IfOp, dist::CheckpointOp>(op)) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (auto [yielded, result] :
               llvm::zip_equal(block.getTerminator()->getOperands(), op->getResults()))
            edge(yielded, result);
      return WalkResult::advance();
    }
    for (Value read : valuesRead(op))
      for (Value result : op->getResults())
        edge(read, result);
    return WalkResult::skip();
  }

  llvm::DenseMap<Value, SmallVector<Value, 2>> users, sources;
};

} // namespace

dist::Activity::Activity(func::FuncOp function, ValueRange inputs, ValueRange outputs) {
  Dependences dependences(function);
  dependent = dependences.reach(inputs, /*backward=*/false);
  useful = dependences.reach(outputs, /*backward=*/true);
}

void dist::Activity::copy(Operation *original, const IRMapping &copies) {
  auto mark = [&](Value value) {
    if (!isActive(value))
      return;
    Value copied = copies.lookupOrDefault(value);
    dependent.insert(copied);
    useful.insert(copied);
  };
  original->walk([&](Operation *op) {
    llvm::for_each(op->getResults(), mark);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), mark);
  });
}
