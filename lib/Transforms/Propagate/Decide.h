//===- Decide.h - How each op's loops are cut -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H
#define TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H

#include "PropagationGraph.h"

#include "tessera/Sharding/Topology.h"

namespace tessera::dist {

/// The axes that a rule's factors get when every tensor keeps its sharding as far as all can: the
/// heaviest tensor that names a factor says its axes, longer ones extend it. Tensors whose priority
/// is beyond `round` say nothing, and unless `broadcasts` neither do operands that an elementwise
/// op spreads over more elements: a bias should follow what it is added to.
sharding::FactorAxes mergeFactors(const PropagationGraph &graph, const RuleNode &node,
                                  int64_t round, bool broadcasts);

/// After propagation: the sharding that each op gives its results, partial where it cuts
/// reductions. Chosen among what the results ask for, what the operands ask for, and both together,
/// by the wire bytes of the reshards that follow from it; returned by tensor (graph.tensors).
std::vector<sharding::TensorSharding> decideResults(const PropagationGraph &graph,
                                                    const sharding::Topology &topology);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H
