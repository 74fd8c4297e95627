//===- StrategyEdges.h - What a strategy problem's edges are ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the problems of propagation (Decide.cpp) and of the search (StrategyGraph.cpp)
// have in common: which edges a tensor has, what is priced, and how often.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PROPAGATE_STRATEGYEDGES_H
#define TESSERA_LIB_TRANSFORMS_PROPAGATE_STRATEGYEDGES_H

#include "PropagationGraph.h"

#include "tessera/Sharding/ReshardPlanner.h"
#include "tessera/Sharding/ReshardTable.h"

namespace tessera::dist {

/// Joins what makes a tensor to its users: directly where there is one, else over a place where it
/// lies for all of them, so that what several need alike is sent once.
template <typename End>
void joinUsers(const End &producer, llvm::ArrayRef<End> users, llvm::function_ref<End()> makePlace,
               llvm::function_ref<void(const End &, const End &)> addEdge) {
  if (users.empty())
    return;
  if (users.size() == 1)
    return addEdge(producer, users.front());
  End place = makePlace();
  addEdge(producer, place);
  for (const End &user : users)
    addEdge(place, user);
}

/// How often a tensor is sent in one execution of its function: as often as the op runs that makes
/// it. `producer` is null for what no op makes; what a loop carries is sent in its body.
double tripsOfTensor(const PropagationGraph &graph, int64_t tensor, mlir::Operation *producer);

/// The planner's tables of reshards for the tensors of a graph.
class TensorReshards {
public:
  /// Both must outlive this.
  TensorReshards(const PropagationGraph &graph, sharding::ReshardPlanner &planner)
      : graph(graph), planner(planner) {}
  sharding::ReshardTable &of(int64_t tensor) { return of(graph.tensors[tensor]); }
  sharding::ReshardTable &of(const TensorState &tensor);

private:
  const PropagationGraph &graph;
  sharding::ReshardPlanner &planner;
  /// By mesh and type; looked up only.
  llvm::DenseMap<std::pair<const sharding::Mesh *, mlir::Type>, sharding::ReshardTable *> tables;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_PROPAGATE_STRATEGYEDGES_H
