//===- WriteShardings.cpp - A plan into the IR ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Propagation.h"
#include "Strategies.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Whether the shardings of an op's results and operands tell how it is cut, as the passes behind
/// this one read them: a partial result alone does not say which of several reductions.
static bool isTold(const PropagationGraph &graph, const RuleNode &node, const Strategy &strategy,
                   const std::vector<const TensorSharding *> &raw) {
  size_t numOperands = node.rule.operands.size();
  bool partial = false;
  for (auto [factor, axes] : llvm::zip(node.rule.factors, strategy.axes))
    partial = partial || (factor.kind == FactorKind::reduction && !axes.empty());
  if (!partial)
    return true;
  std::vector<TensorSharding> results, operands;
  for (size_t r = 0; r < node.rule.results.size(); ++r)
    results.push_back(resultSharding(node.rule, static_cast<int64_t>(r), strategy.axes));
  for (size_t i = 0; i < numOperands; ++i)
    operands.push_back(node.tensors[i] < 0
                           ? TensorSharding::replicated(node.rule.operands[i].size())
                           : raw[node.tensors[i]]->withoutPartial());
  return deriveFactorAxes(node.rule, results, operands) == strategy.axes;
}

/// The operand is brought to a sharding in front of its op.
static void demand(OpOperand &operand, ShardingAttr sharding) {
  Operation *op = operand.getOwner();
  if (getSharding(operand.get()) == sharding)
    return;
  OpBuilder builder(op);
  auto reshard =
      ReshardOp::create(builder, op->getLoc(), operand.get().getType(), operand.get(), sharding);
  reshard->setAttr(DistDialect::kReason,
                   builder.getStringAttr("operand " + Twine(operand.getOperandNumber()) + " of " +
                                         op->getName().getStringRef() + " is cut so"));
  setSharding(reshard.getResult(), sharding);
  operand.set(reshard.getResult());
}

void dist::writeShardings(func::FuncOp function, const PropagationGraph &graph,
                          const Decision &decision) {
  using Written = llvm::DenseMap<std::pair<Attribute, const TensorSharding *>, ShardingAttr>;
  Written asTheyLie, closedOnes; // looked up only
  auto attrOf = [&](int64_t tensor, const TensorSharding &sharding) {
    const TensorState &state = graph.tensors[tensor];
    return ShardingAttr::get(state.meshName, *state.mesh, sharding, function.getContext());
  };
  auto raw = [&](int64_t tensor) {
    const TensorSharding *sharding = decision.tensors[tensor];
    ShardingAttr &attr = asTheyLie[{graph.tensors[tensor].meshName, sharding}];
    if (!attr)
      attr = attrOf(tensor, *sharding);
    return attr;
  };
  auto closed = [&](int64_t tensor) {
    const TensorState &state = graph.tensors[tensor];
    ShardingAttr &attr = closedOnes[{state.meshName, state.sharding}];
    if (!attr)
      attr = attrOf(tensor, state.sharding->closed());
    return attr;
  };
  for (BlockArgument argument : function.getArguments())
    if (int64_t tensor = graph.tensorOf(argument); tensor >= 0)
      setSharding(argument, closed(tensor));
  for (auto [index, tensor] : llvm::enumerate(graph.results)) {
    if (tensor < 0)
      continue;
    // What feeds an argument lies as the argument does; the reshard is part of the step.
    int64_t fed = graph.fed[index];
    ShardingAttr lies = closed(fed >= 0 ? fed : tensor);
    const TensorState &state = graph.tensors[tensor];
    if (lies != closed(tensor) &&
        state.given != TensorSharding::allOpen(*state.mesh, state.type.getRank()))
      function.emitRemark() << "result '" << graph.tensors[tensor].name << "' lies as argument '"
                            << graph.tensors[fed].name << "' that it feeds, " << lies
                            << ", and not as annotated";
    function.setResultAttr(index, DistDialect::kSharding, lies);
  }
  for (Operation *op : graph.ops) {
    SmallVector<ShardingAttr> shardings;
    bool any = false;
    for (Value result : op->getResults()) {
      int64_t tensor = graph.tensorOf(result);
      shardings.push_back(tensor >= 0 ? raw(tensor) : ShardingAttr());
      any = any || tensor >= 0;
    }
    if (any)
      setResultShardings(op, shardings);
    if (auto constraint = dyn_cast<ShardTensorOp>(op))
      constraint.setShardingAttr(shardings.front());
    if (auto reshard = dyn_cast<ReshardOp>(op))
      reshard.setShardingAttr(shardings.front());
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      for (BlockArgument argument : loop.getBeforeArguments())
        if (int64_t tensor = graph.tensorOf(argument); tensor >= 0)
          setSharding(argument, closed(tensor));
  }
  for (auto [node, strategy] : llvm::zip(graph.nodes, decision.strategies))
    if (strategy && !isTold(graph, node, *strategy, decision.tensors))
      for (size_t i = 0; i < node.rule.operands.size(); ++i)
        if (int64_t tensor = node.tensors[i]; tensor >= 0 && node.rule.accumulatorOf[i] < 0)
          demand(node.op->getOpOperand(i), attrOf(tensor, shardingUnder(node, i, *strategy)));
}
