//===- Memory.cpp - What a plan keeps on a device --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Whether the code generator makes the op part of the loop that reads it.
static bool isFusable(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumParallelLoops() == linalgOp.getNumLoops();
}

Lives::Lives(func::FuncOp function, const PropagationGraph &graph)
    : lives(graph.tensors.size()), times(graph.nodes.size(), 0) {
  llvm::DenseMap<Operation *, int64_t> timeOf, endOf;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != function && !isa<linalg::LinalgOp>(op->getParentOp()))
      timeOf[op] = ++last;
  });
  function.walk<WalkOrder::PostOrder>([&](Operation *op) {
    int64_t end = timeOf.lookup(op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          end = std::max(end, endOf.lookup(&inner));
    endOf[op] = end;
  });
  for (BlockArgument argument : function.getArguments())
    if (int64_t tensor = graph.tensorOf(argument); tensor >= 0)
      lives[tensor] = {0, last};
  auto read = [&](int64_t tensor, int64_t time) {
    lives[tensor].to = std::max(lives[tensor].to, time);
  };
  function.walk([&](Operation *op) {
    if (op == function || isa<linalg::LinalgOp>(op->getParentOp()))
      return;
    for (Value value : op->getResults())
      if (int64_t tensor = graph.tensorOf(value); tensor >= 0 && !isMadeOfScalars(op)) {
        lives[tensor].from = timeOf.lookup(op);
        // A value that only the next loop of a chain reads is never written down.
        bool isInside = isFusable(op) && value.hasOneUse() && isFusable(*value.user_begin()) &&
                        value.getType() == (*value.user_begin())->getResult(0).getType();
        read(tensor, isInside ? -1 : timeOf.lookup(op));
      }
    for (Value value : op->getOperands()) {
      int64_t tensor = graph.tensorOf(value);
      if (tensor < 0 || lives[tensor].to < 0)
        continue;
      int64_t time = timeOf.lookup(op);
      for (Operation *loop = op->getParentOp(); loop && loop != function;
           loop = loop->getParentOp())
        if (isa<LoopLikeOpInterface>(loop) &&
            !loop->isAncestor(value.getParentBlock()->getParentOp()))
          time = std::max(time, endOf.lookup(loop));
      bool inPlace = isFusable(op) && op->getNumResults() == 1 &&
                     value.getType() == op->getResult(0).getType();
      read(tensor, inPlace ? time - 1 : time);
    }
  });
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    times[n] = graph.nodes[n].op ? timeOf.lookup(graph.nodes[n].op) : last;
}

static double bytesOf(const TensorState &state, const TensorSharding &sharding) {
  auto bytes = static_cast<double>(bytesPerElement(state.type.getElementType()));
  for (int64_t extent : localShape(sharding, shapeOf(state.type)))
    bytes *= static_cast<double>(extent);
  return bytes;
}

Peak dist::peakOf(const StrategyGraph &strategies, const PropagationGraph &graph,
                  const Lives &lives, const std::vector<int64_t> &choice) {
  // What begins and ends to be kept, by time.
  std::map<int64_t, double> change;
  std::vector<std::tuple<int64_t, int64_t, double, int64_t>> kept;
  auto keep = [&](int64_t from, int64_t to, double bytes, int64_t tensor) {
    if (to < from)
      return;
    change[from] += bytes;
    change[to + 1] -= bytes;
    kept.push_back({from, to, bytes, tensor});
  };
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    auto tensor = static_cast<int64_t>(t);
    const Lives::Life &life = lives.of(tensor);
    if (life.to < life.from)
      continue;
    const TensorState &state = graph.tensors[t];
    TensorSharding own = strategies.shardingOf(tensor, choice);
    // Users that need it in one way share a copy.
    std::map<TensorSharding, int64_t> needs;
    int64_t lastOwn = life.from == 0 ? life.to : life.from;
    for (int64_t n : graph.nodesOf[t]) {
      const RuleNode &node = graph.nodes[n];
      const Strategy *strategy = strategies.strategyOf(n, choice);
      for (size_t i = 0; i < node.rule.operands.size(); ++i) {
        if (node.tensors[i] != tensor)
          continue;
        TensorSharding need = strategy ? shardingUnder(node, i, *strategy) : own;
        int64_t time = std::min(life.to, std::max(life.from, lives.timeOf(n)));
        if (need == own)
          lastOwn = std::max(lastOwn, time);
        else
          needs[need] = std::max(needs[need], time);
      }
    }
    keep(life.from, lastOwn, bytesOf(state, own), tensor);
    for (auto &[need, until] : needs)
      keep(std::max<int64_t>(life.from, 1), until, bytesOf(state, need), tensor);
  }
  Peak peak;
  double now = 0;
  for (auto &[time, bytes] : change)
    if ((now += bytes) > peak.bytes) {
      peak.bytes = now;
      peak.time = time;
    }
  double most = -1;
  for (auto &[from, to, bytes, tensor] : kept)
    if (from <= peak.time && peak.time <= to && bytes > most) {
      most = bytes;
      peak.largest = tensor;
    }
  return peak;
}
