//===- Decide.h - How each op's loops are cut -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H
#define TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H

#include "Strategies.h"

#include "tessera/Sharding/Topology.h"

namespace tessera::dist {

/// After propagation: the sharding that each op gives its results, partial where it cuts
/// reductions; returned by tensor (graph.tensors). Where claims contest an axis, the strategies of
/// all ops concerned are chosen together, by the least modelled time of their work and of the
/// reshards between them. `chosen` gets the strategy of each node of the graph.
std::vector<sharding::TensorSharding> decideResults(const PropagationGraph &graph,
                                                    const sharding::Topology &topology,
                                                    std::vector<Strategy> *chosen = nullptr);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H
