//===- StrategyEdges.cpp - What a strategy problem's edges are --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StrategyEdges.h"

#include "tessera/Transforms/OpCosts.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

double dist::tripsOfTensor(const PropagationGraph &graph, int64_t tensor, Operation *producer) {
  if (producer)
    return tripsOf(producer);
  double trips = 1;
  if (graph.tensors[tensor].isFixed)
    for (int64_t node : graph.nodesOf[tensor])
      if (Operation *op = graph.nodes[node].op)
        trips = std::max(trips, tripsOf(op));
  return trips;
}

sharding::ReshardTable &TensorReshards::of(const TensorState &tensor) {
  sharding::ReshardTable *&table = tables[{tensor.mesh, tensor.type}];
  if (!table)
    table = &planner.table(*tensor.mesh, shapeOf(tensor.type),
                           bytesPerElement(tensor.type.getElementType()));
  return *table;
}
