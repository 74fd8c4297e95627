//===- Contributors.h - Ops whose contributions meet ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_PLANNING_STRATEGIES_CONTRIBUTORS_H
#define TESSERA_LIB_PLANNING_STRATEGIES_CONTRIBUTORS_H

#include "tessera/Planning/PropagationGraph.h"

#include "llvm/ADT/IntEqClasses.h"

namespace tessera::dist {

/// Which ops make contributions that are reduced by themselves: users may forward them, but never
/// into a sum with those of another op, which one reduction would serve, nor into a smaller
/// tensor, nor around a loop, after which one reduction would serve all iterations.
class Contributors {
public:
  /// Whether the op of a node forwards contributions of an operand.
  using Forwards = llvm::function_ref<bool(size_t node, size_t operand,
                                           const sharding::TensorSharding &contributions)>;

  /// @param shardings  by tensor, as ops make them; null where unknown
  Contributors(const PropagationGraph &graph,
               llvm::ArrayRef<const sharding::TensorSharding *> shardings, Forwards forwards);

  bool isReducedAlone(int64_t node) const { return !meets[node] && next[node] == node; }
  /// The ops whose contributions one reduction of a tensor serves, which holds those of all of
  /// them; empty if it holds none, if that reduction may be elsewhere, or if they are many.
  std::vector<int64_t> reducedWith(int64_t tensor) const;
  /// Whether the contributions become a result of the function, as gradients do, or of a branch.
  bool isReturned(int64_t node) const { return returned[node]; }

private:
  /// Contributions that a tensor holds if all that may forward them do.
  struct Held {
    int64_t maker = -1; ///< the node that makes them, -1: none
    int64_t bytes = 0;  ///< of the tensor that it makes
    const sharding::TensorSharding *sharding = nullptr;
  };

  void add(Held &held, const Held &other);

  std::vector<Held> held;     ///< by tensor
  std::vector<bool> meets;    ///< by node: whether a smaller tensor or a loop may hold them
  std::vector<int64_t> next;  ///< by node: another one of its group, whose contributions are added
  llvm::IntEqClasses groups;  ///< of nodes
  std::vector<bool> returned; ///< by node
};

} // namespace tessera::dist

#endif // TESSERA_LIB_PLANNING_STRATEGIES_CONTRIBUTORS_H
