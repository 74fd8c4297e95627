//===- Messages.h - Bounds by messages along edges --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages move costs between nodes and edges: what a strategy gains at one end of an
// edge is subtracted from the edge. The sum of every choice stays the same, so the sum
// of all least entries is a lower bound for any messages. They are improved by
// sequential tree-reweighted message passing (V. Kolmogorov, "Convergent
// tree-reweighted message passing for energy minimization", PAMI 28, 2006), one class
// of equal nodes at a time, so 96 layers take the time of a few.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_MESSAGES_H
#define TESSERA_LIB_SOLVER_MESSAGES_H

#include "Folded.h"

namespace tessera::solver {

class Messages {
public:
  explicit Messages(const Folded &folded);

  /// Passes messages along the order of the classes and back, `times` times: the last time in
  /// double precision, before that in single precision, in half the time. Any messages give a valid
  /// bound.
  void sweep(int times);

  /// By class, by position: the additional cost of a strategy of one node over its best one
  /// according to the messages. An estimate to choose by; the proved excess is lower.
  const std::vector<std::vector<double>> &beliefs() const { return belief; }

  /// By class, the best position given the choices before it and the messages of the others.
  std::vector<Index> round() const;

  /// Bounds that hold for any choice.
  struct Proof {
    double bound = 0;
    /// By class, by position: a choice in which one node of the class takes the strategy costs at
    /// least this much more than the bound.
    std::vector<std::vector<double>> excess;
  };
  Proof prove();

private:
  enum class Digits { seven, all };
  void pass(bool isForward, Digits digits);
  void sendMessages(Index slot, Digits digits);
  double updateBelief(Index own);
  Index otherSlot(Index slot) const {
    const Folded::Edge &edge = folded.edges[folded.slots[slot].edge];
    return edge.row == slot ? edge.column : edge.row;
  }
  /// Whether the slot has the same edges as the slot at their other end.
  bool hasSameEdges(Index slot) const {
    return folded.slots[otherSlot(slot)].edge == folded.slots[slot].edge;
  }

  const Folded &folded;
  std::vector<Index> order, rank;            ///< by place; by class
  std::vector<std::vector<double>> belief;   ///< by class
  std::vector<std::vector<double>> incoming; ///< by slot, for each of its edges
  std::vector<std::vector<Index>> receivers; ///< by class, neighboring slots to which it sends
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MESSAGES_H
