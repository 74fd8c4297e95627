//===- Memory.cpp - What a plan keeps on a device --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Sharding/Selections.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Without axes of extent 1: shardings that differ by them alone are one layout, and moving from
/// one to the other makes no copy.
static TensorSharding bare(TensorSharding sharding) {
  for (AxisList &axes : sharding.dims)
    std::erase_if(axes, [](const AxisRef &axis) { return axis.size == 1; });
  std::erase_if(sharding.partial, [](const PartialAxis &each) { return each.axis.size == 1; });
  return sharding;
}

/// The sharding in which a node reads an operand that has the sharding `own`: a slice reads its
/// elements where they are.
static TensorSharding neededOf(const RuleNode &node, size_t operand, const Strategy &strategy,
                               const TensorSharding &own) {
  TensorSharding need = bare(shardingUnder(node, operand, strategy));
  return isa<tensor::ExtractSliceOp>(node.op) && hasSelection(own, need) ? own : need;
}

Lives::Lives(func::FuncOp function, const PropagationGraph &graph, const StrategyGraph &strategies,
             const std::vector<int64_t> &choice)
    : lives(graph.tensors.size()), reads(graph.nodes.size()) {
  llvm::DenseSet<OpOperand *> sent; // looked up, never iterated
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const RuleNode &node = graph.nodes[n];
    const Strategy *strategy = strategies.strategyOf(static_cast<int64_t>(n), choice);
    if (!node.op || !strategy)
      continue;
    for (size_t i = 0; i < node.rule.operands.size(); ++i) {
      if (node.tensors[i] < 0)
        continue;
      TensorSharding own = bare(strategies.shardingOf(node.tensors[i], choice));
      if (neededOf(node, i, *strategy, own) != own)
        sent.insert(&node.op->getOpOperand(static_cast<unsigned>(i)));
    }
  }
  Liveness values(function, [&](OpOperand &operand) { return sent.contains(&operand); });
  last = 2 * values.end();
  auto take = [&](Value value) {
    int64_t tensor = graph.tensorOf(value);
    if (tensor < 0)
      return;
    Life &life = lives[tensor];
    life = values.of(value);
    life.from *= 2;
    life.to = 2 * life.to + life.isTaken; // until the one that takes its bytes
  };
  llvm::for_each(function.getArguments(), take);
  function.walk([&](Operation *op) {
    if (op != function && !isa<linalg::LinalgOp>(op->getParentOp()))
      llvm::for_each(op->getResults(), take);
  });
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (Operation *op = graph.nodes[n].op)
      for (OpOperand &operand : op->getOpOperands()) {
        auto [from, until] = values.readOf(operand);
        reads[n].push_back({2 * from, 2 * until});
      }
}

static double bytesOf(const TensorState &state, const TensorSharding &sharding) {
  return bytesOnDevice(sharding, state.type);
}

namespace {

/// Reads of one copy of a tensor.
using Reads = std::vector<std::pair<int64_t, int64_t>>;

/// How the users of a tensor need it.
struct Needs {
  Reads own;                              ///< as it lies
  std::map<TensorSharding, Reads> shared; ///< users that need it in one way share a copy
  std::vector<std::pair<int64_t, TensorSharding>> copies; ///< times at which it is copied, and how
  size_t numPlaced = 0; ///< uses that have it from its place, if it has one
};

} // namespace

static Needs needsOf(int64_t tensor, const TensorSharding &own, const StrategyGraph &strategies,
                     const PropagationGraph &graph, const Lives &lives,
                     const std::vector<int64_t> &choice) {
  Needs needs;
  const Lives::Life &life = lives.of(tensor);
  for (int64_t n : graph.nodesOf[tensor]) {
    const RuleNode &node = graph.nodes[n];
    const Strategy *strategy = strategies.strategyOf(n, choice);
    for (size_t i = 0; i < node.rule.operands.size(); ++i) {
      if (node.tensors[i] != tensor)
        continue;
      TensorSharding need = strategy ? neededOf(node, i, *strategy, own) : own;
      auto [begin, end] = lives.readOf(n, i);
      int64_t until = std::min(life.to, std::max(life.from, end));
      std::pair<int64_t, int64_t> read{std::min(until, std::max(life.from + 1, begin - 1)), until};
      if (strategies.isCopied(n, i))
        needs.copies.push_back({begin, need});
      if (need == own) {
        needs.own.push_back({until, until});
        continue;
      }
      ++needs.numPlaced;
      needs.shared[need].push_back(read);
    }
  }
  return needs;
}

std::vector<LiveBuffer> dist::keptOf(int64_t tensor, const StrategyGraph &strategies,
                                     const PropagationGraph &graph, const Lives &lives,
                                     const std::vector<int64_t> &choice, StrategyGraph *prices,
                                     bool onlyEnds) {
  std::vector<LiveBuffer> list;
  const Lives::Life &life = lives.of(tensor);
  if (life.to < life.from)
    return list;
  const TensorState &state = graph.tensors[tensor];
  TensorSharding own = bare(strategies.shardingOf(tensor, choice));
  Needs needs = needsOf(tensor, own, strategies, graph, lives, choice);
  bool isSent = needs.numPlaced > 0, isArgument = life.from == 0;
  // Behind what makes it.
  int64_t sent = life.from + 1;
  // From where users have it that do not read it as it lies.
  TensorSharding via = own;
  if (own.isPartial() && needs.shared.size() > 1)
    via = own.withoutPartial();
  else if (std::optional<TensorSharding> place = strategies.placeOf(tensor, choice);
           place && !own.isPartial() && needs.numPlaced > 1)
    via = bare(*place);
  double bytes = bytesOf(state, own);
  int64_t lastOwn = isArgument ? life.to : std::max(life.from, isSent ? sent : 0);
  for (auto [from, to] : needs.own)
    lastOwn = std::max(lastOwn, to);
  // What a kernel hands on inside is written down for a reshard.
  bool isMade = life.kind == Liveness::Kind::own || (life.kind == Liveness::Kind::inside && isSent);
  // An all-reduce leaves its result where the contributions were.
  bool isInPlace = own.isPartial() && isSent && needs.own.empty() &&
                   (via != own || needs.shared.size() == 1) &&
                   bytesOf(state, via != own ? via : needs.shared.begin()->first) == bytes;
  if (isMade && !isInPlace)
    list.push_back({tensor, life.from, lastOwn, bytes});
  int64_t ownIndex = isMade && !isInPlace && !isArgument ? 0 : -1;

  auto add = [&](const TensorSharding &from, const TensorSharding &to, int64_t base, int64_t time,
                 int64_t until, Reads reads) {
    llvm::sort(reads);
    LiveBuffer copy{tensor, time, until, bytesOf(state, to)};
    if (!onlyEnds)
      copy.onTheWay = strategies.bytesOnTheWay(tensor, from, to);
    // Contributions are added up once.
    if (!from.isPartial()) {
      if (prices)
        copy.seconds = prices->reshardSeconds(tensor, from, to);
      copy.base = base;
      copy.reads = std::move(reads);
    }
    list.push_back(std::move(copy));
  };
  auto endOf = [](const Reads &reads) {
    int64_t end = 0;
    for (auto [from, to] : reads)
      end = std::max(end, to);
    return end;
  };
  int64_t base = ownIndex;
  if (via != own) {
    Reads reads;
    int64_t until = sent;
    for (auto &[need, its] : needs.shared) {
      if (need == via)
        llvm::append_range(reads, its);
      else
        reads.push_back({llvm::min_element(its)->first, llvm::min_element(its)->first});
      until = std::max(until, need == via ? endOf(its) : sent);
    }
    add(own, via, ownIndex, isInPlace ? life.from : sent, until, std::move(reads));
    base = static_cast<int64_t>(list.size()) - 1;
  }
  for (auto &[need, reads] : needs.shared)
    if (via == own || need != via)
      add(via, need, base, isInPlace && via == own ? life.from : sent, std::max(sent, endOf(reads)),
          reads);
  if (double bytes = strategies.workingBytes(tensor, choice); bytes > 0)
    list.push_back({tensor, life.from, life.from, bytes});
  for (auto &[time, need] : needs.copies) {
    auto sharedBy = needs.shared.find(need);
    if (time < (sharedBy == needs.shared.end() ? lastOwn : endOf(sharedBy->second)))
      list.push_back({tensor, time, time, bytesOf(state, need)});
  }
  return list;
}

static Rematerializer buffersOf(StrategyGraph *prices, const StrategyGraph &strategies,
                                const PropagationGraph &graph, const Lives &lives,
                                const std::vector<int64_t> &choice) {
  Rematerializer buffers(lives.end());
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    buffers.add(keptOf(static_cast<int64_t>(t), strategies, graph, lives, choice, prices));
  return buffers;
}

static Peak peakOf(const Rematerializer &buffers) {
  return {buffers.peak(), buffers.worst(), buffers.largestOwner()};
}

Peak dist::peakOf(const StrategyGraph &strategies, const PropagationGraph &graph,
                  const Lives &lives, const std::vector<int64_t> &choice) {
  return ::peakOf(buffersOf(nullptr, strategies, graph, lives, choice));
}

Fit dist::fitInto(double budget, StrategyGraph &strategies, const PropagationGraph &graph,
                  const Lives &lives, const std::vector<int64_t> &choice) {
  Rematerializer buffers = buffersOf(&strategies, strategies, graph, lives, choice);
  Fit fit;
  if (buffers.peak() > budget) {
    buffers.makeLate();
    fit.seconds = buffers.run(budget);
  }
  fit.peak = ::peakOf(buffers);
  return fit;
}
