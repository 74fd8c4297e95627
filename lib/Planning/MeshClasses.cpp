//===- MeshClasses.cpp - Classes of values on the same mesh ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/MeshClasses.h"

#include "tessera/Dialect/Dist/IR/ValueFlow.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static bool isTensor(Value value) {
  return isa<RankedTensorType>(value.getType());
}

void dist::collectTied(Operation *op, SmallVectorImpl<Value> &tied) {
  auto add = [&](ValueRange values) {
    for (Value value : values)
      if (isTensor(value))
        tied.push_back(value);
  };
  add(op->getOperands());
  add(op->getResults());
  if (isControlFlow(op)) {
    // Values that a loop's body only captures may be on other meshes than its carries.
    for (Region &region : op->getRegions())
      for (Block &block : region)
        add(block.getArguments());
    return;
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  add(captured.getArrayRef());
}

/// Control flow ties each value separately: two carries of a loop may be on two meshes.
static LogicalResult unifyForwarded(RegionBranchOpInterface op, MeshClasses &classes) {
  LogicalResult result = success();
  forEachForwardedUse(op, [&](OpOperand &use, Value receiver) {
    if (succeeded(result) && isTensor(receiver))
      result = classes.unite(op, use.get(), receiver);
  });
  return result;
}

LogicalResult dist::classify(func::FuncOp function, MeshClasses &classes,
                             llvm::function_ref<bool(Value)> isLoose) {
  for (BlockArgument argument : function.getArguments())
    if (ShardingAttr sharding = getSharding(argument))
      if (failed(classes.pin(function, argument, sharding.getMesh())))
        return failure();
  WalkResult walk = function.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (op == function || isControlFlowEnd(op))
      return WalkResult::advance();
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      for (auto [index, value] : llvm::enumerate(ret.getOperands()))
        if (auto sharding =
                function.getResultAttrOfType<ShardingAttr>(index, DistDialect::kSharding))
          if (!isLoose(value) && failed(classes.pin(op, value, sharding.getMesh())))
            return WalkResult::interrupt();
      return WalkResult::advance();
    }
    if (auto reshard = dyn_cast<ReshardOp>(op))
      return failed(classes.pin(op, reshard.getResult(), reshard.getSharding().getMesh()))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    if (auto constraint = dyn_cast<ShardTensorOp>(op))
      if (failed(classes.pin(op, constraint.getResult(), constraint.getSharding().getMesh())))
        return WalkResult::interrupt();
    for (Value result : op->getResults())
      if (ShardingAttr sharding = isTensor(result) ? getSharding(result) : ShardingAttr())
        if (failed(classes.pin(op, result, sharding.getMesh())))
          return WalkResult::interrupt();
    if (auto controlFlow = dyn_cast<RegionBranchOpInterface>(op))
      return failed(unifyForwarded(controlFlow, classes)) ? WalkResult::interrupt()
                                                          : WalkResult::advance();
    // Scalars computed inside a linalg body belong to that op.
    if (isa<linalg::LinalgOp>(op->getParentOp()))
      return WalkResult::advance();
    SmallVector<Value> tied;
    collectTied(op, tied);
    llvm::erase_if(tied, isLoose);
    for (Value value : llvm::drop_begin(tied, tied.empty() ? 0 : 1))
      if (failed(classes.unite(op, tied.front(), value)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
