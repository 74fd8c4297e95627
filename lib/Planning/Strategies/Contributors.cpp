//===- Contributors.cpp - Ops whose contributions meet --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contributors.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

Contributors::Contributors(const PropagationGraph &graph,
                           ArrayRef<const TensorSharding *> shardings, Forwards forwards)
    : held(graph.tensors.size()), meets(graph.nodes.size()), next(graph.nodes.size()),
      groups(graph.nodes.size()), returned(graph.nodes.size()) {
  std::iota(next.begin(), next.end(), 0); // each is a group
  for (auto [n, node] : llvm::enumerate(graph.nodes)) {
    if (!node.op)
      continue; // control flow, or a result of the function
    size_t operands = node.rule.operands.size();
    Held forwarded;
    for (size_t i = 0; i < operands; ++i)
      if (int64_t tensor = node.tensors[i];
          tensor >= 0 && held[tensor].maker >= 0 && forwards(n, i, *held[tensor].sharding))
        add(forwarded, held[tensor]);
    for (size_t i = operands; i < node.tensors.size(); ++i) {
      int64_t tensor = node.tensors[i];
      if (tensor < 0)
        continue;
      if (forwarded.maker >= 0) {
        if (graph.tensors[tensor].bytes < forwarded.bytes)
          meets[forwarded.maker] = true;
        held[tensor] = forwarded;
      }
      // An elementwise op makes none of its own.
      bool isForwarded = forwarded.maker >= 0 && node.rule.isElementwise();
      if (!isForwarded && shardings[tensor] && shardings[tensor]->isPartial())
        add(held[tensor],
            {static_cast<int64_t>(n), graph.tensors[tensor].bytes, shardings[tensor]});
    }
  }
  // What a loop yields is computed behind the node that ties it to the carry.
  for (const RuleNode &node : graph.nodes)
    if (int64_t from = node.tensors.front(); !node.op && held[from].maker >= 0)
      (graph.tensors[node.tensors.back()].loop ? meets : returned)[held[from].maker] = true;
}

void Contributors::add(Held &held, const Held &other) {
  if (held.maker < 0)
    held = other;
  else if (auto mine = static_cast<unsigned>(held.maker), its = static_cast<unsigned>(other.maker);
           groups.findLeader(mine) != groups.findLeader(its)) {
    groups.join(mine, its);
    std::swap(next[mine], next[its]); // joins two rings
  }
}

std::vector<int64_t> Contributors::reducedWith(int64_t tensor) const {
  constexpr size_t kMostTogether = 64;
  int64_t first = held[tensor].maker;
  if (first < 0)
    return {};
  std::vector<int64_t> group;
  int64_t node = first;
  do {
    if (meets[node] || group.size() == kMostTogether)
      return {};
    group.push_back(node);
    node = next[node];
  } while (node != first);
  llvm::sort(group);
  return group;
}
