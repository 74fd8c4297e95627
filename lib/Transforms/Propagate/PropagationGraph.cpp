//===- PropagationGraph.cpp - Tensors and the rules that tie them ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PropagationGraph.h"

#include "../Normalize/MeshAssignment.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

/// The ops of a function in program order, without the bodies of linalg ops.
static void walkOps(func::FuncOp function, llvm::function_ref<void(Operation *)> visit) {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != function)
      visit(op);
    return isa<linalg::LinalgOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
}

int64_t PropagationGraph::tensorOf(Value value) const {
  auto it = index.find(value);
  return it == index.end() ? -1 : it->second;
}

int64_t PropagationGraph::addTensor(RankedTensorType type, FlatSymbolRefAttr mesh,
                                    ShardingAttr given, Location loc, std::string name) {
  TensorState state{&meshes.get(mesh), mesh, type, {}, {}, false, 0, 0, loc, std::move(name)};
  state.bytes = type.getNumElements() * bytesPerElement(type.getElementType());
  if (given) {
    state.sharding = resolveVerified(given, meshes, type);
    state.priority = std::max<int64_t>(0, given.getPriority());
  } else {
    state.sharding = TensorSharding::allOpen(*state.mesh, type.getRank());
  }
  state.given = state.sharding;
  tensors.push_back(std::move(state));
  nodesOf.emplace_back();
  return static_cast<int64_t>(tensors.size()) - 1;
}

void PropagationGraph::addValue(Value value, FlatSymbolRefAttr mesh, ShardingAttr given) {
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    index[value] = addTensor(type, mesh, given, value.getLoc());
}

void PropagationGraph::tie(Operation *at, int64_t a, int64_t b) {
  if (a < 0 || b < 0 || a == b)
    return;
  RuleNode node;
  node.rule = sharding::identityRule(shapeOf(tensors[a].type));
  node.tensors = {a, b};
  tensors[b].isFixed = true;
  nodes.push_back(std::move(node));
}

PropagationGraph::PropagationGraph(func::FuncOp function, const MeshTable &meshes)
    : meshes(meshes) {
  FailureOr<MeshAssignment> assignment = MeshAssignment::compute(function, meshes);
  assert(succeeded(assignment) && "dist-normalize has checked the meshes");
  size_t numOps = 0, numResults = function.getNumArguments() + function.getNumResults();
  walkOps(function, [&](Operation *op) {
    ++numOps;
    numResults += op->getNumResults();
  });
  tensors.reserve(numResults);
  nodesOf.reserve(numResults);
  nodes.reserve(numOps);
  for (auto [i, argument] : llvm::enumerate(function.getArguments()))
    if (isa<RankedTensorType>(argument.getType())) {
      addValue(argument, assignment->lookup(argument), getSharding(argument));
      tensors.back().name = argumentName(function, i);
    }
  // Definitions first: a loop's yield may name what comes later in the list of nodes.
  walkOps(function, [&](Operation *op) {
    if (auto constraint = dyn_cast<ShardTensorOp>(op))
      return addValue(constraint.getResult(), constraint.getSharding().getMesh(),
                      constraint.getSharding());
    if (auto reshard = dyn_cast<ReshardOp>(op))
      return addValue(reshard.getResult(), reshard.getSharding().getMesh(), reshard.getSharding());
    for (Value result : op->getResults())
      addValue(result, assignment->lookup(result),
               isa<RankedTensorType>(result.getType()) ? getSharding(result) : ShardingAttr());
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [argument, result] : llvm::zip(loop.getRegionIterArgs(), loop.getResults()))
        if (tensorOf(result) >= 0)
          index[argument] = tensorOf(result);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      for (auto [argument, result] : llvm::zip(loop.getAfterArguments(), loop.getResults()))
        if (tensorOf(result) >= 0)
          index[argument] = tensorOf(result);
      for (BlockArgument argument : loop.getBeforeArguments())
        addValue(argument, assignment->lookup(argument));
    }
  });
  walkOps(function, [&](Operation *op) {
    if (isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op))
      addControlFlow(op);
    else if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
        int64_t tensor = tensorOf(value);
        int64_t result = -1;
        if (tensor >= 0) {
          auto given = function.getResultAttrOfType<ShardingAttr>(i, DistDialect::kSharding);
          result = addTensor(tensors[tensor].type, tensors[tensor].meshName, given, op->getLoc(),
                             resultName(function, i));
          tie(op, tensor, result);
        }
        // Parameters and what replaces them in the next step are one class.
        fed.push_back(fedArgument(function, i, result));
        tie(op, fed.back(), result);
        results.push_back(result);
      }
    } else if (!isa<ReshardOp, scf::YieldOp, scf::ConditionOp>(op)) {
      addOp(op);
    }
  });
  for (auto [n, node] : llvm::enumerate(nodes))
    for (int64_t tensor : node.tensors)
      if (tensor >= 0 &&
          (nodesOf[tensor].empty() || nodesOf[tensor].back() != static_cast<int64_t>(n)))
        nodesOf[tensor].push_back(n);
}

int64_t PropagationGraph::fedArgument(func::FuncOp function, unsigned index, int64_t result) const {
  auto feeds = function.getResultAttrOfType<IntegerAttr>(index, DistDialect::kFeeds);
  if (!feeds || result < 0)
    return -1;
  int64_t argument = tensorOf(function.getArgument(feeds.getInt()));
  return tensors[argument].meshName == tensors[result].meshName ? argument : -1;
}

void PropagationGraph::addOp(Operation *op) {
  RuleNode node;
  node.op = op;
  for (Value operand : op->getOperands())
    node.tensors.push_back(tensorOf(operand));
  for (Value result : op->getResults())
    node.tensors.push_back(tensorOf(result));
  if (llvm::all_of(node.tensors, [](int64_t tensor) { return tensor < 0; }))
    return;
  std::string why;
  std::optional<sharding::ShardingRule> rule = getShardingRule(op, &why);
  if (!rule) {
    int64_t bytes = 0;
    for (int64_t tensor : node.tensors)
      if (tensor >= 0)
        bytes += tensors[tensor].bytes;
    op->emitRemark() << why << ": it is replicated, " << bytes
                     << " bytes of operands and results on every device";
    rule = replicatedRule(op);
  }
  node.rule = std::move(*rule);
  nodes.push_back(std::move(node));
}

void PropagationGraph::addControlFlow(Operation *op) {
  auto tieAll = [&](ValueRange a, ValueRange b) {
    for (auto [x, y] : llvm::zip(a, b))
      tie(op, tensorOf(x), tensorOf(y));
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    tieAll(loop.getInitArgs(), loop.getResults());
    tieAll(loop.getYieldedValues(), loop.getResults());
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    SmallVector<Value> before(loop.getBeforeArguments().begin(), loop.getBeforeArguments().end());
    tieAll(loop.getInits(), before);
    tieAll(loop.getYieldOp()->getOperands(), before);
    tieAll(loop.getConditionOp().getArgs(), loop.getResults());
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (branch.getNumResults() == 0)
      return;
    tieAll(branch.thenYield()->getOperands(), branch.getResults());
    tieAll(branch.elseYield()->getOperands(), branch.getResults());
  }
}
