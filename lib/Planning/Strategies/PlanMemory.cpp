//===- PlanMemory.cpp - Memory of a plan on a device ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/PlanMemory.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Planning/CollectiveJoins.h"
#include "tessera/Planning/Updates.h"
#include "tessera/Sharding/Selections.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Without axes of extent 1: shardings that differ only in these have one layout, and need no copy.
static TensorSharding withoutUnitAxes(TensorSharding sharding) {
  for (AxisList &axes : sharding.dims)
    std::erase_if(axes, [](const AxisRef &axis) { return axis.size == 1; });
  std::erase_if(sharding.partial, [](const PartialAxis &each) { return each.axis.size == 1; });
  return sharding;
}

/// The sharding in which a node reads an operand with the sharding `own`: a slice reads its
/// elements in place.
static TensorSharding neededOf(const RuleNode &node, size_t operand, const Strategy &strategy,
                               const TensorSharding &own) {
  TensorSharding need = withoutUnitAxes(shardingUnder(node, operand, strategy));
  return isa<tensor::ExtractSliceOp>(node.op) && hasSelection(own, need) ? own : need;
}

PlanLiveness::PlanLiveness(func::FuncOp function, const PropagationGraph &graph,
                           const StrategyGraph &strategies, const std::vector<int64_t> &choice)
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
      TensorSharding own = withoutUnitAxes(strategies.shardingOf(node.tensors[i], choice));
      if (neededOf(node, i, *strategy, own) != own)
        sent.insert(&node.op->getOpOperand(static_cast<unsigned>(i)));
    }
  }
  // A product that is large against its operands may not be on each device.
  for (const Update &update : updatesOf(function)) {
    auto bytes = [&](Value value) {
      int64_t tensor = graph.tensorOf(value);
      return tensor < 0 ? 0
                        : bytesOnDevice(withoutUnitAxes(strategies.shardingOf(tensor, choice)),
                                        graph.tensors[tensor].type);
    };
    Value product = update.product->getResult(0);
    double operand =
        std::min(bytes(update.product->getOperand(0)), bytes(update.product->getOperand(1)));
    for (OpOperand *read : update.reads)
      if (read->get() == product && !isWorthScaling(operand, bytes(product)))
        sent.insert(read);
  }
  Liveness values(function, [&](OpOperand &operand) { return sent.contains(&operand); });
  last = 2 * values.end();
  auto take = [&](Value value) {
    int64_t tensor = graph.tensorOf(value);
    if (tensor < 0)
      return;
    LiveRange &life = lives[tensor];
    life = values.of(value);
    life.from *= 2;
    life.to = 2 * life.to + life.isTaken; // until the value that reuses its bytes
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

/// The shardings that the users of a tensor need.
struct RequiredShardings {
  TensorSharding sharding;                ///< in which it is produced
  TensorSharding via;                     ///< its place, from which other shardings are made
  Reads own;                              ///< in that sharding
  std::map<TensorSharding, Reads> shared; ///< users with the same sharding share a copy
  std::vector<std::pair<int64_t, TensorSharding>> copies; ///< times and targets of its copies
  size_t numPlaced = 0; ///< uses that read its place, if it has one
};

} // namespace

static RequiredShardings needsOf(int64_t tensor, const StrategyGraph &strategies,
                                 const PropagationGraph &graph, const PlanLiveness &lives,
                                 const std::vector<int64_t> &choice) {
  RequiredShardings needs;
  TensorSharding own = withoutUnitAxes(strategies.shardingOf(tensor, choice));
  const PlanLiveness::LiveRange &life = lives.of(tensor);
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
  needs.via = own;
  if (own.isPartial() && needs.shared.size() > 1)
    needs.via = own.withoutPartial();
  else if (const TensorSharding *place = strategies.placeOf(tensor, choice);
           place && !own.isPartial() && needs.numPlaced > 1)
    needs.via = withoutUnitAxes(*place);
  needs.sharding = std::move(own);
  return needs;
}

std::vector<LiveBuffer> dist::buffersOf(int64_t tensor, const StrategyGraph &strategies,
                                        const PropagationGraph &graph, const PlanLiveness &lives,
                                        const std::vector<int64_t> &choice, StrategyGraph *prices,
                                        bool onlyEnds) {
  std::vector<LiveBuffer> list;
  const PlanLiveness::LiveRange &life = lives.of(tensor);
  if (life.to < life.from)
    return list;
  const TensorState &state = graph.tensors[tensor];
  RequiredShardings needs = needsOf(tensor, strategies, graph, lives, choice);
  const TensorSharding &own = needs.sharding, &via = needs.via;
  bool isSent = needs.numPlaced > 0, isArgument = life.from == 0;
  double bytes = bytesOf(state, own);
  int64_t lastOwn = isArgument ? life.to : life.from, lastSent = lives.sentAt(tensor, via);
  for (auto &[need, reads] : needs.shared)
    lastSent = std::max(lastSent, lives.sentAt(tensor, need));
  if (isSent && !isArgument)
    lastOwn = std::max(lastOwn, via == own ? lastSent : lives.sentAt(tensor, via));
  for (auto [from, to] : needs.own)
    lastOwn = std::max(lastOwn, to);
  // A value inside a kernel is materialized for a reshard.
  bool isMade = life.kind == Liveness::Kind::own || (life.kind == Liveness::Kind::inside && isSent);
  // An all-reduce writes its result over the contributions.
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
      copy.temporary = strategies.bytesOnTheWay(tensor, from, to);
    // Contributions are reduced once.
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
    int64_t sent = lives.sentAt(tensor, via), until = lastSent;
    for (auto &[need, positions] : needs.shared) {
      if (need == via) {
        llvm::append_range(reads, positions);
        until = std::max(until, endOf(positions));
      } else {
        reads.push_back({llvm::min_element(positions)->first, llvm::min_element(positions)->first});
      }
    }
    add(own, via, ownIndex, isInPlace ? life.from : sent, until, std::move(reads));
    base = static_cast<int64_t>(list.size()) - 1;
  }
  for (auto &[need, reads] : needs.shared)
    if (via == own || need != via) {
      int64_t sent = lives.sentAt(tensor, need);
      add(via, need, base, isInPlace && via == own ? life.from : sent, std::max(sent, endOf(reads)),
          reads);
    }
  if (double bytes = strategies.workingBytes(tensor, choice); bytes > 0)
    list.push_back({tensor, life.from, life.from, bytes});
  for (auto &[time, need] : needs.copies) {
    auto sharedBy = needs.shared.find(need);
    if (time < (sharedBy == needs.shared.end() ? lastOwn : endOf(sharedBy->second)))
      list.push_back({tensor, time, time, bytesOf(state, need)});
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Joined collectives
//===----------------------------------------------------------------------===//

int64_t PlanLiveness::sentAt(int64_t tensor, const TensorSharding &to) const {
  auto later = sent.find({tensor, to});
  return later == sent.end() ? lives[tensor].from + 1 : later->second;
}

/// Lets a node run later than its kernel did.
void PlanLiveness::delay(const PropagationGraph &graph, int64_t n, int64_t time) {
  const RuleNode &node = graph.nodes[n];
  auto keep = [&](Value value, bool isMade) {
    int64_t tensor = graph.tensorOf(value);
    if (tensor < 0 || lives[tensor].to < lives[tensor].from)
      return;
    if (isMade)
      lives[tensor].from = time;
    lives[tensor].to = std::max(lives[tensor].to, time);
  };
  for (Value result : node.op->getResults())
    keep(result, true);
  for (auto [operand, read] : llvm::zip(node.op->getOperands(), reads[n])) {
    keep(operand, false);
    keep(rootOf(operand), false);
    read = {std::max(read.first, time), std::max(read.second, time)};
  }
}

namespace tessera::dist {

/// The ops of a block and the collectives between them, as dist-fuse-collectives finds them.
class SendJoiner {
public:
  SendJoiner(PlanLiveness &lives, const PropagationGraph &graph, const StrategyGraph &strategies,
             const std::vector<int64_t> &choice)
      : lives(lives), graph(graph), strategies(strategies), choice(choice) {
    for (auto [n, node] : llvm::enumerate(graph.nodes))
      if (node.op)
        nodeOf[node.op] = static_cast<int64_t>(n);
  }

  void run(Block &block) {
    for (BlockArgument argument : block.getArguments())
      addSends(argument, kNone);
    for (Operation &op : block.without_terminator()) {
      addOp(&op);
      for (Value result : op.getResults())
        addSends(result, items.size() - 1);
    }
    apply(joinCollectives(items));
  }

private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  /// An item: an op, or a collective.
  struct ItemOrigin {
    Operation *op = nullptr;
    int64_t tensor = -1;
    TensorSharding to = {}; ///< the target of the reshard that a collective is part of
    int64_t time = 0;       ///< at which it runs without joins
  };

  void addOp(Operation *op) {
    JoinItem item;
    auto dependOn = [&](size_t place) {
      if (!llvm::is_contained(item.producers, place))
        item.producers.push_back(place);
    };
    op->walk([&](Operation *inner) {
      auto node = nodeOf.find(inner);
      const Strategy *strategy =
          node == nodeOf.end() ? nullptr : strategies.strategyOf(node->second, choice);
      for (OpOperand &operand : inner->getOpOperands()) {
        int64_t tensor = graph.tensorOf(operand.get());
        size_t i = operand.getOperandNumber();
        auto sent = sends.end();
        if (strategy && tensor >= 0 && i < graph.nodes[node->second].rule.operands.size())
          sent = sends.find(
              {tensor, neededOf(graph.nodes[node->second], i, *strategy,
                                withoutUnitAxes(strategies.shardingOf(tensor, choice)))});
        if (sent != sends.end())
          dependOn(sent->second);
        else if (auto place = placeOf.find(operand.get().getDefiningOp()); place != placeOf.end())
          dependOn(place->second);
      }
    });
    placeOf[op] = items.size();
    int64_t result = op->getNumResults() > 0 ? graph.tensorOf(op->getResult(0)) : -1;
    add(std::move(item), {op, -1, {}, result < 0 ? 0 : lives.of(result).from});
  }

  void addSends(Value value, size_t producer) {
    int64_t tensor = graph.tensorOf(value);
    if (tensor < 0 || lives.of(tensor).to < lives.of(tensor).from)
      return;
    RequiredShardings needs = needsOf(tensor, strategies, graph, lives, choice);
    size_t base = producer;
    if (needs.via != needs.sharding && !needs.shared.empty())
      base = addSend(tensor, needs.sharding, needs.via, producer);
    for (auto &[need, reads] : needs.shared)
      if (need != needs.via)
        addSend(tensor, needs.via, need, base);
  }

  /// Returns the index of the last collective.
  size_t addSend(int64_t tensor, const TensorSharding &from, const TensorSharding &to,
                 size_t producer) {
    for (const Move &move : strategies.planOf(tensor, from, to).moves) {
      JoinItem item;
      if (producer != kNone)
        item.producers.push_back(producer);
      item.candidate = candidateOf(tensor, move);
      producer = items.size();
      add(std::move(item), {nullptr, tensor, to, lives.of(tensor).from + 1});
    }
    if (producer != kNone)
      sends[{tensor, to}] = producer;
    return producer;
  }

  std::optional<JoinCandidate> candidateOf(int64_t tensor, const Move &move) {
    if (!isJoined(move.kind) || move.makesPartial)
      return std::nullopt;
    const TensorState &state = graph.tensors[tensor];
    auto key = std::tuple(move.kind, state.mesh,
                          meetingsOf(move.kind, move.axes, move.source, move.target),
                          move.reduction, state.type.getElementType().getAsOpaquePointer());
    auto group = groups.try_emplace(key, std::ssize(groups)).first;
    auto bytes = static_cast<int64_t>(bytesOf(state, move.source));
    return JoinCandidate{group->second, bytes, kJoinedBytes};
  }

  void add(JoinItem item, ItemOrigin what) {
    items.push_back(std::move(item));
    whats.push_back(std::move(what));
  }

  /// Sets the times of joined collectives, and of ops that depend on them.
  void apply(const std::vector<SmallVector<size_t>> &order) {
    std::vector<int64_t> times(items.size());
    for (const SmallVector<size_t> &unit : order) {
      int64_t time = 0;
      for (size_t place : unit) {
        time = std::max(time, whats[place].time);
        // Sent at odd times, read at even ones.
        for (size_t producer : items[place].producers)
          time = std::max(time, whats[place].op ? times[producer] + times[producer] % 2
                                                : times[producer] | 1);
      }
      for (size_t place : unit) {
        const ItemOrigin &what = whats[place];
        times[place] = time;
        if (time <= what.time)
          continue;
        if (!what.op)
          lives.sent[{what.tensor, what.to}] = time;
        else if (auto node = nodeOf.find(what.op); node != nodeOf.end())
          lives.delay(graph, node->second, time);
      }
    }
  }

  PlanLiveness &lives;
  const PropagationGraph &graph;
  const StrategyGraph &strategies;
  const std::vector<int64_t> &choice;
  llvm::DenseMap<Operation *, int64_t> nodeOf;                ///< looked up, never iterated
  llvm::DenseMap<Operation *, size_t> placeOf;                ///< likewise
  std::map<std::pair<int64_t, TensorSharding>, size_t> sends; ///< indices of their last collectives
  std::map<std::tuple<sharding::CollectiveKind, const Mesh *, Meetings, sharding::ReduceKind,
                      const void *>,
           int64_t>
      groups; ///< looked up, never iterated
  std::vector<JoinItem> items;
  std::vector<ItemOrigin> whats; ///< by item
};

} // namespace tessera::dist

void PlanLiveness::joinSends(func::FuncOp function, const PropagationGraph &graph,
                             const StrategyGraph &strategies, const std::vector<int64_t> &choice) {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<linalg::LinalgOp>(op))
      return WalkResult::skip();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        SendJoiner(*this, graph, strategies, choice).run(block);
    return WalkResult::advance();
  });
}

//===----------------------------------------------------------------------===//
// The peak
//===----------------------------------------------------------------------===//

static Rematerializer allBuffers(StrategyGraph *prices, const StrategyGraph &strategies,
                                 const PropagationGraph &graph, const PlanLiveness &lives,
                                 const std::vector<int64_t> &choice) {
  Rematerializer buffers(lives.end());
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    buffers.add(buffersOf(static_cast<int64_t>(t), strategies, graph, lives, choice, prices));
  return buffers;
}

static Peak peakOf(const Rematerializer &buffers) {
  return {buffers.peak(), buffers.worst(), buffers.largestOwner()};
}

Peak dist::peakOf(const StrategyGraph &strategies, const PropagationGraph &graph,
                  const PlanLiveness &lives, const std::vector<int64_t> &choice) {
  return ::peakOf(allBuffers(nullptr, strategies, graph, lives, choice));
}

Fit dist::fitInto(double budget, StrategyGraph &strategies, const PropagationGraph &graph,
                  const PlanLiveness &lives, const std::vector<int64_t> &choice) {
  Rematerializer buffers = allBuffers(&strategies, strategies, graph, lives, choice);
  Fit fit;
  if (buffers.peak() > budget) {
    buffers.delayToFirstReader();
    fit.seconds = buffers.run(budget);
  }
  fit.peak = ::peakOf(buffers);
  return fit;
}
