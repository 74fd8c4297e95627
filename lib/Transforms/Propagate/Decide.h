//===- Decide.h - How each op's loops are cut -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H
#define TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H

#include "PropagationGraph.h"
#include "Strategies.h"

#include "tessera/Sharding/Topology.h"

namespace tessera::dist {

/// How everything lies.
struct Decision {
  /// By tensor, of the graph's pool; partial where a reduction is cut.
  std::vector<const sharding::TensorSharding *> tensors;
  std::vector<std::shared_ptr<const Strategy>> strategies; ///< by node; null without a result
  /// By tensor: where it is brought once for several users, of the graph's pool; null, or an empty
  /// list, where each user has what it needs from where the tensor is made.
  std::vector<const sharding::TensorSharding *> places;
};

/// After propagation: how each op is cut and leaves its results. Where claims contest an axis, the
/// strategies of all ops concerned are chosen together, by the least modelled time of their work
/// and of the reshards between them.
Decision decide(const PropagationGraph &graph, const sharding::Topology &topology);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_PROPAGATE_DECIDE_H
