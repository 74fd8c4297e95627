//===- Memory.h - What a plan keeps on a device -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times are places in the text of the function. An argument is kept for ever, a value
// from the op that makes it to its last reader; what a loop reads from outside, to the
// loop's end. The code generator fuses chains of elementwise ops and computes in place
// where an operand dies, so what a chain hands on inside takes nothing.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_MEMORY_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_MEMORY_H

#include "StrategyGraph.h"

namespace tessera::dist {

/// When each tensor of a function is needed.
class Lives {
public:
  Lives(mlir::func::FuncOp function, const PropagationGraph &graph);

  struct Life {
    int64_t from = 0, to = -1; ///< inclusive; empty when it takes nothing
  };
  const Life &of(int64_t tensor) const { return lives[tensor]; }
  /// When a node of the graph runs.
  int64_t timeOf(int64_t node) const { return times[node]; }
  int64_t end() const { return last; }

private:
  std::vector<Life> lives;    ///< by tensor
  std::vector<int64_t> times; ///< by node of the graph
  int64_t last = 0;
};

/// The peak of a plan.
struct Peak {
  double bytes = 0;
  int64_t time = 0;
  int64_t largest = -1; ///< tensor that takes most then
};

/// Bytes on a device at the worst time, with every copy that a reshard makes: one for each way in
/// which its users need it, from where the tensor is made to the last of them.
Peak peakOf(const StrategyGraph &strategies, const PropagationGraph &graph, const Lives &lives,
            const std::vector<int64_t> &choice);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_MEMORY_H
