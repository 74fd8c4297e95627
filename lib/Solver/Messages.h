//===- Messages.h - Bounds by messages along edges ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Costs are moved between nodes and edges by messages: what a strategy gets at one end
// of an edge is taken from the edge. No choice costs another sum for that, so the sum of
// all least entries bounds every choice from below, whatever the messages are. They are
// made better by sequential tree-reweighted passing (V. Kolmogorov, "Convergent
// tree-reweighted message passing for energy minimization", PAMI 28, 2006), one class of
// equal nodes at a time, so 96 layers take the time of a few.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_MESSAGES_H
#define TESSERA_LIB_SOLVER_MESSAGES_H

#include "Folded.h"

namespace tessera::solver {

class Messages {
public:
  explicit Messages(const Folded &folded);

  /// Passes messages along the order of the classes and back, so often: the last time with all
  /// digits, before that with seven, in half the time. A bound holds whatever messages are.
  void sweep(int times);

  /// By class, by position: what a strategy of one node costs more than its best one as far as
  /// messages sendMessages. Good to choose by; what is proved is less.
  const std::vector<std::vector<double>> &beliefs() const { return belief; }

  /// By class, the position that is best beside what was chosen before it and what the rest tells.
  std::vector<Index> round() const;

  /// What holds for any choice.
  struct Proof {
    double bound = 0;
    /// By class, by position: a choice in which one node of the class takes the strategy costs at
    /// least so much more than the bound.
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
  /// Whether the slot has the same edges as the one at their other end.
  bool hasSameEdges(Index slot) const {
    return folded.slots[otherSlot(slot)].edge == folded.slots[slot].edge;
  }

  const Folded &folded;
  std::vector<Index> order, rank;            ///< by place; by class
  std::vector<std::vector<double>> belief;   ///< by class
  std::vector<std::vector<double>> incoming; ///< by slot, for each edge of it
  std::vector<std::vector<Index>> receivers; ///< by class, slots beside it that it tells
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MESSAGES_H
