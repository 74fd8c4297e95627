//===- PlanMemory.h - Memory of a plan on a device --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Live ranges of values (Liveness), with the copies that reshards make.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_PLANMEMORY_H
#define TESSERA_PLANNING_PLANMEMORY_H

#include "tessera/Planning/StrategyGraph.h"

#include "tessera/Planning/Liveness.h"
#include "tessera/Planning/Rematerialize.h"

namespace tessera::dist {

/// The live range of each tensor of a function under a plan: a reshard between two ops prevents
/// them from being one kernel. Kernels have even times; results of the previous kernel are sent at
/// odd ones.
class PlanLiveness {
public:
  PlanLiveness(mlir::func::FuncOp function, const PropagationGraph &graph,
               const StrategyGraph &strategies, const std::vector<int64_t> &choice);

  using LiveRange = Liveness::LiveRange;
  const LiveRange &of(int64_t tensor) const { return lives[tensor]; }
  /// The times of the first and the last read of an operand by a node of the graph.
  std::pair<int64_t, int64_t> readOf(int64_t node, size_t operand) const {
    return operand < reads[node].size() ? reads[node][operand] : std::pair(last, last);
  }
  int64_t end() const { return last; }
  /// The time at which a tensor is sent to a sharding: directly after its producer, or with the
  /// collectives that it is joined with.
  int64_t sentAt(int64_t tensor, const sharding::TensorSharding &to) const;
  /// Moves collectives and their readers to their positions after dist-fuse-collectives has joined
  /// them.
  void joinSends(mlir::func::FuncOp function, const PropagationGraph &graph,
                 const StrategyGraph &strategies, const std::vector<int64_t> &choice);

private:
  friend class SendJoiner;
  void delay(const PropagationGraph &graph, int64_t node, int64_t time);

  std::vector<LiveRange> lives;                                ///< by tensor
  std::vector<std::vector<std::pair<int64_t, int64_t>>> reads; ///< by node of the graph and operand
  std::map<std::pair<int64_t, sharding::TensorSharding>, int64_t> sent; ///< delayed collectives
  int64_t last = 0;
};

/// The peak of a plan.
struct Peak {
  double bytes = 0;
  int64_t time = 0;
  int64_t largest = -1; ///< the largest tensor at that time
};

/// The live buffers of a tensor under a plan: the produced value; its place; then one copy per
/// sharding that users need. `prices`: also the cost of sending. `onlyEnds`: without buffers
/// between two collectives, which need a reshard plan.
std::vector<LiveBuffer> buffersOf(int64_t tensor, const StrategyGraph &strategies,
                                  const PropagationGraph &graph, const PlanLiveness &lives,
                                  const std::vector<int64_t> &choice,
                                  StrategyGraph *prices = nullptr, bool onlyEnds = false);

/// Bytes on a device at the worst time, with every copy that a reshard makes: one per sharding that
/// users need, live from the send to the last of them.
Peak peakOf(const StrategyGraph &strategies, const PropagationGraph &graph,
            const PlanLiveness &lives, const std::vector<int64_t> &choice);

/// A plan made to fit by delaying and rematerializing copies, as dist-limit-memory does.
struct Fit {
  Peak peak;          ///< the new peak: within the budget if possible
  double seconds = 0; ///< of rematerialization
};
Fit fitInto(double budget, StrategyGraph &strategies, const PropagationGraph &graph,
            const PlanLiveness &lives, const std::vector<int64_t> &choice);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_PLANMEMORY_H
