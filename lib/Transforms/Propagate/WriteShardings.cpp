//===- WriteShardings.cpp - Write a plan into the IR ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Propagation.h"

#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Planning/OpenResults.h"
#include "tessera/Planning/Strategies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Reshards values to their places, once and after their producers. Users of the produced sharding
/// read the original; branches reshard inside, and later passes reduce contributions.
static void writePlaces(const PropagationGraph &graph, const Decision &decision,
                        llvm::function_ref<ShardingAttr(int64_t, const TensorSharding &)> attrOf) {
  llvm::MapVector<Value, SmallVector<OpOperand *>> users;
  llvm::DenseMap<Value, int64_t> tensors; // looked up only
  for (auto [node, strategy] : llvm::zip(graph.nodes, decision.strategies)) {
    if (!strategy)
      continue;
    for (size_t i = 0; i < node.rule.operands.size(); ++i) {
      int64_t tensor = node.tensors[i];
      if (tensor < 0 || !decision.places[tensor])
        continue;
      OpOperand &use = node.op->getOpOperand(i);
      const TensorSharding &own = *decision.tensors[tensor];
      bool isMade = isa_and_nonnull<arith::ConstantOp>(use.get().getDefiningOp());
      if (!isMade && !own.isPartial() && *decision.places[tensor] != own &&
          shardingUnder(node, i, *strategy) != own &&
          use.get().getParentBlock() == node.op->getBlock()) {
        users[use.get()].push_back(&use);
        tensors[use.get()] = tensor;
      }
    }
  }
  for (auto &[value, uses] : users) {
    if (uses.size() < 2)
      continue;
    int64_t tensor = tensors.lookup(value);
    ShardingAttr place = attrOf(tensor, *decision.places[tensor]);
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto reshard = ReshardOp::create(builder, value.getLoc(), value.getType(), value, place);
    reshard->setAttr(DistDialect::kReason, builder.getStringAttr("required by several uses"));
    setSharding(reshard.getResult(), place);
    for (OpOperand *use : uses)
      use->set(reshard.getResult());
  }
}

/// Annotates each op with its distribution. Ops with the same strategy and mesh share the
/// attribute.
static void writeOpShardings(const PropagationGraph &graph, const Decision &decision) {
  llvm::DenseMap<std::pair<Attribute, const Strategy *>, OpShardingAttr> written; // looked up only
  for (auto [node, strategy] : llvm::zip(graph.nodes, decision.strategies)) {
    if (!node.op)
      continue;
    node.op->removeAttr(DistDialect::kOpSharding);
    if (!strategy || strategy->isWhole())
      continue;
    int64_t tensor = *llvm::find_if(node.tensors, [](int64_t t) { return t >= 0; });
    const TensorState &state = graph.tensors[tensor];
    OpShardingAttr &attr = written[{state.meshName, strategy.get()}];
    if (!attr)
      attr = OpShardingAttr::get(state.meshName, *state.mesh, *strategy, node.op->getContext());
    node.op->setAttr(DistDialect::kOpSharding, attr);
  }
}

void dist::writeShardings(func::FuncOp function, const PropagationGraph &graph,
                          const Decision &decision) {
  using AttrCache = llvm::DenseMap<std::pair<Attribute, const TensorSharding *>, ShardingAttr>;
  AttrCache rawAttrs, closedAttrs; // looked up only
  auto attrOf = [&](int64_t tensor, const TensorSharding &sharding) {
    const TensorState &state = graph.tensors[tensor];
    return ShardingAttr::get(state.meshName, *state.mesh, sharding, function.getContext());
  };
  auto raw = [&](int64_t tensor) {
    const TensorSharding *sharding = decision.tensors[tensor];
    ShardingAttr &attr = rawAttrs[{graph.tensors[tensor].meshName, sharding}];
    if (!attr)
      attr = attrOf(tensor, *sharding);
    return attr;
  };
  auto closed = [&](int64_t tensor) {
    const TensorState &state = graph.tensors[tensor];
    ShardingAttr &attr = closedAttrs[{state.meshName, state.sharding}];
    if (!attr)
      attr = attrOf(tensor, state.sharding->closed());
    return attr;
  };
  SignatureAttrs signature(function);
  for (BlockArgument argument : function.getArguments())
    if (int64_t tensor = graph.tensorOf(argument); tensor >= 0)
      signature.ofArgument(argument.getArgNumber()).set(DistDialect::kSharding, closed(tensor));
  for (auto [index, tensor] : llvm::enumerate(graph.results)) {
    if (tensor < 0)
      continue;
    // A result that feeds an argument has its sharding; the reshard is part of the step.
    int64_t fed = graph.fed[index];
    ShardingAttr placement = closed(fed >= 0 ? fed : tensor);
    const TensorState &state = graph.tensors[tensor];
    if (placement != closed(tensor) &&
        state.given != TensorSharding::allOpen(*state.mesh, state.type.getRank()))
      function.emitRemark() << "result '" << graph.tensors[tensor].name
                            << "' has the sharding of argument '" << graph.tensors[fed].name
                            << "' that it feeds, " << placement << " instead of its annotation";
    signature.ofResult(index).set(DistDialect::kSharding, placement);
  }
  signature.write();
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
          setSharding(argument, raw(tensor));
  }
  writeOpShardings(graph, decision);
  if (!decision.places.empty())
    writePlaces(graph, decision, attrOf);
}

void dist::leaveResultsOpen(func::FuncOp function, const PropagationGraph &graph,
                            const Decision &decision) {
  // Axes before their parts, which they cover.
  auto isLarger = [](const AxisRef &a, const AxisRef &b) {
    return std::pair(-a.size, a) < std::pair(-b.size, b);
  };
  std::map<const Mesh *, std::set<AxisRef, decltype(isLarger)>> contributed; // looked up only
  for (auto [state, sharding] : llvm::zip(graph.tensors, decision.tensors))
    if (sharding)
      for (const PartialAxis &partial : sharding->partial)
        contributed.try_emplace(state.mesh, isLarger).first->second.insert(partial.axis);
  auto open = [&](const TensorState &state, TensorSharding own, const AxisList &among) {
    if (auto axes = contributed.find(state.mesh); axes != contributed.end())
      for (const AxisRef &axis : axes->second)
        if (own.isFree(axis) && !overlapsAny(own.open, axis) &&
            llvm::any_of(among, [&](const AxisRef &other) { return other.contains(axis); }) &&
            dimToScatter(own, state.type.getShape(), axis.size))
          own.open.push_back(axis);
    return ShardingAttr::get(state.meshName, *state.mesh, canonical(own), function.getContext());
  };
  SignatureAttrs signature(function);
  for (auto [index, tensor] : llvm::enumerate(graph.results)) {
    if (graph.isOpenResult(index)) {
      const TensorState &state = graph.tensors[tensor];
      const TensorSharding &made = *decision.tensors[graph.returned(index)];
      signature.ofResult(index).set(
          DistDialect::kSharding,
          open(state, made.windows.empty() ? made.withoutPartial() : state.sharding->closed(),
               state.given.open));
    } else if (AxisList axes = graph.openAxesOfState(index); !axes.empty()) {
      const TensorState &state = graph.tensors[graph.fed[index]];
      ShardingAttr opened = open(state, state.sharding->closed(), axes);
      auto argument = function.getResultAttrOfType<IntegerAttr>(index, DistDialect::kFeeds);
      signature.ofResult(index).set(DistDialect::kSharding, opened);
      signature.ofArgument(argument.getInt()).set(DistDialect::kSharding, opened);
    }
  }
  signature.write();
}
