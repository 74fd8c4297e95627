//===- Sources.cpp - Values recomputed at their uses ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sources.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

static bool isTensor(Value value) {
  return isa<RankedTensorType>(value.getType());
}

static bool isSourceWithin(Operation *op, int steps) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (isMadeOfScalars(op))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && steps > 0 && op->getNumResults() == 1 &&
         linalgOp.getNumParallelLoops() == linalgOp.getNumLoops() &&
         linalgOp.getRegionOutputArgs().front().use_empty() &&
         linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(0)).isIdentity() &&
         linalgOp.getDpsInits().front().getDefiningOp<tensor::EmptyOp>() &&
         llvm::all_of(linalgOp.getDpsInputs(), [&](Value input) {
           Operation *made = input.getDefiningOp();
           return !isTensor(input) ||
                  (made && made->getNumResults() == 1 && isSourceWithin(made, steps - 1));
         });
}

bool Sources::isSource(Operation *op) {
  constexpr int kMostSteps = 16;
  return isSourceWithin(op, kMostSteps);
}

/// The sharding that a source with `sharding` needs of an operand.
ShardingAttr Sources::operandOf(Operation *source, int64_t index, ShardingAttr sharding) {
  TensorSharding wanted = resolveVerified(sharding, meshes, source->getResult(0).getType());
  const sharding::ShardingRule &rule = shardings.of(source).rule;
  sharding::OpSharding own{sharding::project(rule, rule.results[0], wanted), {}};
  return ShardingAttr::get(sharding.getMesh(), meshes.get(sharding.getMesh()),
                           operandSharding(rule, index, own), source->getContext());
}

/// Whether a source and its operands can have a sharding.
bool Sources::canMake(Operation *source, ShardingAttr sharding) {
  TensorSharding wanted = resolveVerified(sharding, meshes, source->getResult(0).getType());
  if (!wanted.windows.empty() || wanted.isPartial() || !isSource(source))
    return false;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(source);
  return !linalgOp || llvm::all_of(linalgOp.getDpsInputOperands(), [&](OpOperand *input) {
    if (!isTensor(input->get()))
      return true;
    ShardingAttr operand = operandOf(source, input->getOperandNumber(), sharding);
    return getSharding(input->get()) == operand || canMake(input->get().getDefiningOp(), operand);
  });
}

Value Sources::make(Operation *source, ShardingAttr sharding) {
  if (!canMake(source, sharding))
    return {};
  if (Value known = made.lookup({source->getResult(0), sharding}))
    return known;
  TensorSharding wanted = resolveVerified(sharding, meshes, source->getResult(0).getType());
  OpBuilder builder(source);
  auto clone = [&](Operation *op) {
    Operation *copy = builder.clone(*op);
    const sharding::ShardingRule &rule = shardings.of(op).rule;
    setOpSharding(copy, sharding.getMesh(), meshes.get(sharding.getMesh()),
                  {sharding::project(rule, rule.results[0], wanted), {}});
    setSharding(copy->getResult(0), sharding);
    return copy;
  };
  SmallVector<std::pair<unsigned, Value>> operands;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(source)) {
    OpOperand *init = linalgOp.getDpsInitOperand(0);
    operands.push_back(
        {init->getOperandNumber(), clone(init->get().getDefiningOp())->getResult(0)});
    for (OpOperand *input : linalgOp.getDpsInputOperands())
      if (isTensor(input->get())) {
        ShardingAttr operand = operandOf(source, input->getOperandNumber(), sharding);
        if (getSharding(input->get()) != operand)
          operands.push_back(
              {input->getOperandNumber(), make(input->get().getDefiningOp(), operand)});
      }
  }
  Operation *copy = clone(source);
  for (auto &[number, value] : operands)
    copy->setOperand(number, value);
  return made[{source->getResult(0), sharding}] = copy->getResult(0);
}

void Sources::eraseReplaced() {
  llvm::SmallSetVector<Operation *, 16> dead(unused.begin(), unused.end());
  while (!dead.empty()) {
    Operation *op = dead.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *read = operand.getDefiningOp())
        dead.insert(read);
    op->erase();
  }
}
