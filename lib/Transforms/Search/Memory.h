//===- Memory.h - What a plan keeps on a device -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Liveness says of values, with the copies that reshards make.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_MEMORY_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_MEMORY_H

#include "StrategyGraph.h"

#include "tessera/Planning/Liveness.h"
#include "tessera/Planning/Rematerialize.h"

namespace tessera::dist {

/// When each tensor of a function is needed under a plan: what is sent between two ops keeps them
/// from being one kernel. Kernels have even times; what the one before made is sent at odd ones.
class Lives {
public:
  Lives(mlir::func::FuncOp function, const PropagationGraph &graph, const StrategyGraph &strategies,
        const std::vector<int64_t> &choice);

  using Life = Liveness::Life;
  const Life &of(int64_t tensor) const { return lives[tensor]; }
  /// When a node of the graph reads an operand for the first and for the last time.
  std::pair<int64_t, int64_t> readOf(int64_t node, size_t operand) const {
    return operand < reads[node].size() ? reads[node][operand] : std::pair(last, last);
  }
  int64_t end() const { return last; }
  /// When a tensor is sent to a sharding: right behind what makes it, or with those that it is
  /// joined with.
  int64_t sentAt(int64_t tensor, const sharding::TensorSharding &to) const;
  /// Lets collectives, and what reads their results, run where they do once dist-fuse-collectives
  /// has joined them.
  void joinSends(mlir::func::FuncOp function, const PropagationGraph &graph,
                 const StrategyGraph &strategies, const std::vector<int64_t> &choice);

private:
  friend class SendJoiner;
  void delay(const PropagationGraph &graph, int64_t node, int64_t time);

  std::vector<Life> lives;                                     ///< by tensor
  std::vector<std::vector<std::pair<int64_t, int64_t>>> reads; ///< by node of the graph and operand
  std::map<std::pair<int64_t, sharding::TensorSharding>, int64_t> sent; ///< what is sent later
  int64_t last = 0;
};

/// The peak of a plan.
struct Peak {
  double bytes = 0;
  int64_t time = 0;
  int64_t largest = -1; ///< tensor that takes most then
};

/// What a plan keeps of a tensor: what is made; where several users have it from; then a copy for
/// each way in which users need it. `prices`: also what sending takes. `onlyEnds`: without what
/// lies between two collectives, for which they have to be planned.
std::vector<LiveBuffer> keptOf(int64_t tensor, const StrategyGraph &strategies,
                               const PropagationGraph &graph, const Lives &lives,
                               const std::vector<int64_t> &choice, StrategyGraph *prices = nullptr,
                               bool onlyEnds = false);

/// Bytes on a device at the worst time, with every copy that a reshard makes: one for each way in
/// which its users need it, from where the tensor is sent to the last of them.
Peak peakOf(const StrategyGraph &strategies, const PropagationGraph &graph, const Lives &lives,
            const std::vector<int64_t> &choice);

/// A plan made to fit by sending copies late, and again where keeping them takes too much, as
/// dist-limit-memory does.
struct Fit {
  Peak peak;          ///< what is left: within the budget if it can be
  double seconds = 0; ///< of sending again
};
Fit fitInto(double budget, StrategyGraph &strategies, const PropagationGraph &graph,
            const Lives &lives, const std::vector<int64_t> &choice);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_MEMORY_H
