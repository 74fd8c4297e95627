//===- PropagationGraph.cpp - Tensors and the rules between them ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/PropagationGraph.h"

#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Planning/MeshAssignment.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

int64_t PropagationGraph::tensorOf(Value value) const {
  auto it = index.find(value);
  return it == index.end() ? -1 : it->second;
}

AddressKey PropagationGraph::keyOf(const RuleNode &node) const {
  AddressKey key{&node.rule};
  for (int64_t tensor : node.tensors)
    key.push_back(tensor < 0 ? nullptr : tensors[tensor].sharding);
  return key;
}

int64_t PropagationGraph::returned(size_t result) const {
  return nodes[nodesOf[results[result]].front()].tensors.front();
}

bool PropagationGraph::isOpen(int64_t tensor) const {
  const TensorState &state = tensors[tensor];
  return state.given == TensorSharding::allOpen(*state.mesh, state.type.getRank());
}

bool PropagationGraph::isOpenResult(size_t result) const {
  return results[result] >= 0 && fed[result] < 0 && isOpen(results[result]) &&
         isOpen(returned(result));
}

sharding::AxisList PropagationGraph::openAxesOfState(size_t result) const {
  sharding::AxisList open;
  if (results[result] < 0 || fed[result] < 0)
    return open;
  auto isOpenIn = [&](int64_t tensor, const sharding::AxisRef &axis) {
    return llvm::any_of(tensors[tensor].given.open,
                        [&](const sharding::AxisRef &other) { return other.contains(axis); });
  };
  for (const sharding::AxisRef &axis : tensors[fed[result]].given.open)
    if (isOpenIn(results[result], axis) && isOpenIn(returned(result), axis))
      open.push_back(axis);
  return open;
}

int64_t PropagationGraph::addTensor(RankedTensorType type, FlatSymbolRefAttr mesh,
                                    ShardingAttr annotation, Location loc, std::string name) {
  const sharding::Mesh &of = meshes.get(mesh);
  const TensorSharding *begin =
      annotation ? keep(resolveVerified(annotation, meshes, type)) : allOpen(of, type.getRank());
  tensors.push_back({&of, mesh, type, *begin, begin, false,
                     type.getNumElements() * bytesPerElement(type.getElementType()),
                     annotation ? std::max<int64_t>(0, annotation.getPriority()) : 0, loc,
                     std::move(name)});
  nodesOf.emplace_back();
  return static_cast<int64_t>(tensors.size()) - 1;
}

const TensorSharding *PropagationGraph::allOpen(const sharding::Mesh &mesh, int64_t rank) {
  const TensorSharding *&known = shared->open[{&mesh, rank}];
  if (!known)
    known = keep(TensorSharding::allOpen(mesh, rank));
  return known;
}

void PropagationGraph::addValue(Value value, FlatSymbolRefAttr mesh, ShardingAttr given) {
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    index[value] = addTensor(type, mesh, given, value.getLoc());
}

void PropagationGraph::tie(int64_t a, int64_t b) {
  if (a < 0 || b < 0 || a == b)
    return;
  tensors[b].isFixed = true;
  nodes.push_back({nullptr, shared->rules.identity(tensors[a].type), {a, b}});
}

FailureOr<std::unique_ptr<PropagationGraph>> PropagationGraph::build(func::FuncOp function,
                                                                     const MeshTable &meshes) {
  FailureOr<MeshAssignment> assignment = MeshAssignment::compute(function, meshes);
  if (failed(assignment))
    return failure();
  return std::unique_ptr<PropagationGraph>(new PropagationGraph(function, meshes, *assignment));
}

PropagationGraph::PropagationGraph(func::FuncOp function, const MeshTable &meshes)
    : PropagationGraph(function, meshes, *MeshAssignment::compute(function, meshes)) {}

PropagationGraph::PropagationGraph(func::FuncOp function, const MeshTable &meshes,
                                   const MeshAssignment &assignment)
    : meshes(meshes) {
  size_t numValues = function.getNumArguments() + function.getNumResults();
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != function)
      ops.push_back(op);
    numValues += op->getNumResults();
    return isa<linalg::LinalgOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  tensors.reserve(numValues);
  nodesOf.reserve(numValues);
  index.reserve(numValues);
  nodes.reserve(ops.size());
  for (auto [i, argument] : llvm::enumerate(function.getArguments()))
    if (isa<RankedTensorType>(argument.getType())) {
      addValue(argument, assignment.lookup(argument), getSharding(argument));
      tensors.back().name = argumentName(function, i);
    }
  // Definitions first: a loop's yield may use results of later nodes.
  for (Operation *op : ops)
    define(op, assignment);
  for (Operation *op : ops) {
    if (auto controlFlow = dyn_cast<RegionBranchOpInterface>(op))
      addControlFlow(controlFlow);
    else if (auto ret = dyn_cast<func::ReturnOp>(op))
      addReturn(function, ret);
    else if (!isa<ReshardOp>(op) && !isControlFlowEnd(op))
      addOp(op);
  }
  for (auto [n, node] : llvm::enumerate(nodes))
    for (int64_t tensor : node.tensors)
      if (tensor >= 0 &&
          (nodesOf[tensor].empty() || nodesOf[tensor].back() != static_cast<int64_t>(n)))
        nodesOf[tensor].push_back(n);
}

void PropagationGraph::define(Operation *op, const MeshAssignment &assignment) {
  if (auto constraint = dyn_cast<ShardTensorOp>(op))
    return addValue(constraint.getResult(), constraint.getSharding().getMesh(),
                    constraint.getSharding());
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return addValue(reshard.getResult(), reshard.getSharding().getMesh(), reshard.getSharding());
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType()))
      addValue(result, assignment.lookup(result), getSharding(result));
  auto controlFlow = dyn_cast<RegionBranchOpInterface>(op);
  if (!controlFlow)
    return;
  // What becomes a result and an argument of a region, as a loop's carry, is one tensor.
  llvm::DenseMap<OpOperand *, Value> results; // looked up only
  forEachForwardedUse(controlFlow, [&](OpOperand &use, Value receiver) {
    if (receiver.getDefiningOp() == op)
      results[&use] = receiver;
  });
  forEachForwardedUse(controlFlow, [&](OpOperand &use, Value receiver) {
    if (auto argument = dyn_cast<BlockArgument>(receiver); argument && tensorOf(argument) < 0) {
      if (Value result = results.lookup(&use); result && tensorOf(result) >= 0)
        index[argument] = tensorOf(result);
    }
  });
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (tensorOf(argument) < 0)
        addValue(argument, assignment.lookup(argument));
}

void PropagationGraph::addReturn(func::FuncOp function, func::ReturnOp ret) {
  for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
    int64_t tensor = tensorOf(value);
    int64_t result = -1;
    if (tensor >= 0) {
      auto given = function.getResultAttrOfType<ShardingAttr>(i, DistDialect::kSharding);
      result = addTensor(tensors[tensor].type, tensors[tensor].meshName, given, ret.getLoc(),
                         resultName(function, i));
      tie(tensor, result);
    }
    // A parameter and its value for the next step are one class.
    fed.push_back(fedArgument(function, i, result));
    tie(fed.back(), result);
    results.push_back(result);
  }
}

int64_t PropagationGraph::fedArgument(func::FuncOp function, unsigned index, int64_t result) const {
  auto feeds = function.getResultAttrOfType<IntegerAttr>(index, DistDialect::kFeeds);
  if (!feeds || result < 0)
    return -1;
  int64_t argument = tensorOf(function.getArgument(feeds.getInt()));
  return tensors[argument].meshName == tensors[result].meshName ? argument : -1;
}

void PropagationGraph::addOp(Operation *op) {
  SmallVector<int64_t, 4> own;
  for (Value operand : op->getOperands())
    own.push_back(tensorOf(operand));
  for (Value result : op->getResults())
    own.push_back(tensorOf(result));
  if (llvm::all_of(own, [](int64_t tensor) { return tensor < 0; }))
    return;
  std::string why;
  const sharding::ShardingRule *rule = shared->rules.lookup(op, &why);
  if (!rule) {
    int64_t bytes = 0;
    for (int64_t tensor : own)
      if (tensor >= 0)
        bytes += tensors[tensor].bytes;
    op->emitRemark() << why << ": operands and results are replicated, " << bytes
                     << " bytes per device";
    rule = &shared->rules.keep(replicatedRule(op));
  }
  nodes.push_back({op, *rule, std::move(own)});
}

void PropagationGraph::addControlFlow(RegionBranchOpInterface op) {
  std::set<std::pair<int64_t, int64_t>> tied;
  forEachForwardedUse(op, [&](OpOperand &use, Value receiver) {
    int64_t from = tensorOf(use.get()), to = tensorOf(receiver);
    if (tied.insert({from, to}).second)
      tie(from, to);
    if (to >= 0 && isa<LoopLikeOpInterface>(op.getOperation()))
      tensors[to].loop = op;
  });
}
