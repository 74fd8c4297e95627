//===- Memory.cpp - What a plan keeps on a device --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

Lives::Lives(func::FuncOp function, const PropagationGraph &graph, const StrategyGraph &strategies,
             const std::vector<int64_t> &choice)
    : lives(graph.tensors.size()), times(graph.nodes.size(), 0), starts(graph.nodes.size(), 0) {
  llvm::DenseSet<OpOperand *> sent; // looked up, never iterated
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const RuleNode &node = graph.nodes[n];
    const Strategy *strategy = strategies.strategyOf(static_cast<int64_t>(n), choice);
    if (!node.op || !strategy)
      continue;
    for (size_t i = 0; i < node.rule.operands.size(); ++i)
      if (node.tensors[i] >= 0 &&
          shardingUnder(node, i, *strategy) != strategies.shardingOf(node.tensors[i], choice))
        sent.insert(&node.op->getOpOperand(static_cast<unsigned>(i)));
  }
  ValueLives values(function, [&](OpOperand &operand) { return sent.contains(&operand); });
  last = values.end();
  auto take = [&](Value value) {
    if (int64_t tensor = graph.tensorOf(value); tensor >= 0)
      lives[tensor] = values.of(value);
  };
  llvm::for_each(function.getArguments(), take);
  function.walk([&](Operation *op) {
    if (op != function && !isa<linalg::LinalgOp>(op->getParentOp()))
      llvm::for_each(op->getResults(), take);
  });
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Operation *op = graph.nodes[n].op;
    times[n] = op ? values.readUntil(op) : last;
    starts[n] = op ? values.timeOf(op) : last;
  }
}

static double bytesOf(const TensorState &state, const TensorSharding &sharding) {
  return bytesOnDevice(sharding, state.type);
}

std::vector<Kept> dist::keptOf(int64_t tensor, const StrategyGraph &strategies,
                               const PropagationGraph &graph, const Lives &lives,
                               const std::vector<int64_t> &choice, StrategyGraph *prices) {
  std::vector<Kept> list;
  const Lives::Life &life = lives.of(tensor);
  if (life.to < life.from)
    return list;
  const TensorState &state = graph.tensors[tensor];
  TensorSharding own = strategies.shardingOf(tensor, choice);
  // Users that need it in one way share a copy.
  std::map<TensorSharding, std::vector<std::pair<int64_t, int64_t>>> needs;
  int64_t lastOwn = life.from == 0 ? life.to : life.from;
  for (int64_t n : graph.nodesOf[tensor]) {
    const RuleNode &node = graph.nodes[n];
    const Strategy *strategy = strategies.strategyOf(n, choice);
    for (size_t i = 0; i < node.rule.operands.size(); ++i) {
      if (node.tensors[i] != tensor)
        continue;
      TensorSharding need = strategy ? shardingUnder(node, i, *strategy) : own;
      int64_t until = std::min(life.to, std::max(life.from, lives.timeOf(n)));
      if (need == own)
        lastOwn = std::max(lastOwn, until);
      else
        needs[need].push_back({std::min(until, std::max(life.from, lives.startOf(n))), until});
    }
  }
  // What a kernel hands on inside is written down for a reshard.
  bool isMade = life.kind == ValueLives::Kind::own ||
                (life.kind == ValueLives::Kind::inside && !needs.empty());
  // An all-reduce leaves its result where the contributions were.
  isMade &= !(own.isPartial() && needs.size() == 1 && lastOwn == life.from &&
              bytesOf(state, needs.begin()->first) == bytesOf(state, own));
  if (isMade)
    list.push_back({tensor, life.from, lastOwn, bytesOf(state, own)});
  for (auto &[need, reads] : needs) {
    llvm::sort(reads);
    int64_t until = reads.front().second;
    for (auto [from, to] : reads)
      until = std::max(until, to);
    Kept copy{tensor, std::max<int64_t>(life.from, 1), until, bytesOf(state, need)};
    copy.onTheWay = strategies.bytesOnTheWay(tensor, own, need);
    // Contributions are added up once.
    if (!own.isPartial()) {
      if (prices)
        copy.seconds = prices->reshardSeconds(tensor, own, need);
      copy.isOfBase = isMade && life.from > 0;
      copy.reads = std::move(reads);
    }
    list.push_back(std::move(copy));
  }
  return list;
}

namespace {

class Fitter {
public:
  Fitter(StrategyGraph *prices, const StrategyGraph &strategies, const PropagationGraph &graph,
         const Lives &lives, const std::vector<int64_t> &choice)
      : bytes(lives.end() + 2, 0.0) {
    for (size_t t = 0; t < graph.tensors.size(); ++t) {
      auto first = static_cast<int64_t>(list.size());
      for (Kept &kept : keptOf(static_cast<int64_t>(t), strategies, graph, lives, choice, prices)) {
        add(kept.from, kept.to, kept.bytes);
        add(kept.from, kept.from, kept.onTheWay);
        baseOf.push_back(kept.isOfBase ? first : -1);
        list.push_back(std::move(kept));
      }
    }
  }

  double run(double budget) {
    if (bytes[worst()] <= budget)
      return 0;
    sendLate();
    double seconds = 0;
    while (bytes[worst()] > budget) {
      std::optional<Gap> gap = cheapest(worst(), bytes[worst()] - budget);
      if (!gap)
        break;
      seconds += list[gap->copy].seconds;
      split(*gap);
    }
    return seconds;
  }

  Peak peak() const {
    Peak peak{bytes[worst()], worst(), -1};
    double most = -1;
    for (const Kept &kept : list)
      if (kept.from <= peak.time && peak.time <= kept.to && kept.bytes > most) {
        most = kept.bytes;
        peak.largest = kept.tensor;
      }
    return peak;
  }

private:
  /// Between two of its reads a copy is idle.
  struct Gap {
    size_t copy, read; ///< the first read behind the gap
    int64_t from, to;  ///< the gap, without the reads
    double freed;
  };

  void add(int64_t from, int64_t to, double amount) {
    for (int64_t time = from; time <= to; ++time)
      bytes[time] += amount;
  }
  int64_t worst() const { return std::max_element(bytes.begin(), bytes.end()) - bytes.begin(); }

  void sendLate() {
    for (size_t c = 0; c < list.size(); ++c) {
      Kept &copy = list[c];
      double own = baseOf[c] >= 0 ? list[baseOf[c]].bytes : 0;
      if (copy.reads.empty() || copy.reads.front().first <= copy.from || own > copy.bytes)
        continue;
      int64_t first = copy.reads.front().first;
      add(copy.from, first - 1, -copy.bytes);
      add(copy.from, copy.from, -copy.onTheWay);
      add(first, first, copy.onTheWay);
      copy.from = first;
      if (baseOf[c] >= 0)
        keepUntil(list[baseOf[c]], first);
    }
  }

  void keepUntil(Kept &kept, int64_t time) {
    if (time > kept.to) {
      add(kept.to + 1, time, kept.bytes);
      kept.to = time;
    }
  }

  std::optional<Gap> gapOf(size_t c, int64_t time) const {
    const Kept &copy = list[c];
    if (copy.reads.size() < 2 || time < copy.from || time > copy.to)
      return std::nullopt;
    int64_t from = copy.from;
    for (size_t read = 0; read < copy.reads.size(); ++read) {
      if (copy.reads[read].first > time) {
        if (from >= time || read == 0)
          return std::nullopt;
        Gap gap{c, read, from + 1, copy.reads[read].first - 1, copy.bytes};
        if (baseOf[c] >= 0 && list[baseOf[c]].to < gap.to)
          gap.freed -= list[baseOf[c]].bytes;
        return gap;
      }
      from = std::max(from, copy.reads[read].second);
    }
    return std::nullopt;
  }

  /// What frees most for a second of sending; freed bytes beyond `excess` count for nothing.
  std::optional<Gap> cheapest(int64_t time, double excess) const {
    std::optional<Gap> best;
    auto priceOf = [&](const Gap &gap) {
      return list[gap.copy].seconds / std::min(gap.freed, excess);
    };
    for (size_t c = 0; c < list.size(); ++c)
      if (std::optional<Gap> gap = gapOf(c, time); gap && gap->freed > 0)
        if (!best || priceOf(*gap) < priceOf(*best))
          best = gap;
    return best;
  }

  void split(const Gap &gap) {
    Kept rest = list[gap.copy];
    rest.reads.erase(rest.reads.begin(),
                     rest.reads.begin() + static_cast<std::ptrdiff_t>(gap.read));
    rest.from = gap.to + 1;
    Kept &copy = list[gap.copy];
    copy.reads.resize(gap.read);
    copy.to = gap.from - 1;
    add(gap.from, gap.to, -copy.bytes);
    add(rest.from, rest.from, rest.onTheWay);
    if (baseOf[gap.copy] >= 0)
      keepUntil(list[baseOf[gap.copy]], rest.from);
    baseOf.push_back(baseOf[gap.copy]);
    list.push_back(std::move(rest));
  }

  std::vector<Kept> list;
  std::vector<int64_t> baseOf; ///< by entry, what it is sent from; -1: that is there anyway
  std::vector<double> bytes;   ///< by time
};

} // namespace

Peak dist::peakOf(const StrategyGraph &strategies, const PropagationGraph &graph,
                  const Lives &lives, const std::vector<int64_t> &choice) {
  return Fitter(nullptr, strategies, graph, lives, choice).peak();
}

Fit dist::fitInto(double budget, StrategyGraph &strategies, const PropagationGraph &graph,
                  const Lives &lives, const std::vector<int64_t> &choice) {
  Fitter fitter(&strategies, strategies, graph, lives, choice);
  Fit fit;
  fit.seconds = fitter.run(budget);
  fit.peak = fitter.peak();
  return fit;
}
