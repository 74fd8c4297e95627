//===- AxisGroups.h - Mesh axes that are cut together -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The number of cuts of an op is exponential in the number of axes. A mesh of
// 2x2x2x2x2x2 devices is searched as one of 4x4x4: neighboring axes that no annotation
// distinguishes are merged, those of equal links first, until three are left.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_AXISGROUPS_H
#define TESSERA_PLANNING_AXISGROUPS_H

#include "tessera/Planning/PropagationGraph.h"

#include "tessera/Sharding/CostModel.h"

namespace tessera::dist {

/// The axes of a mesh in groups of neighbors, in order.
using AxisGroups = std::vector<std::vector<int64_t>>;

/// At most three groups, or more if annotations distinguish more axes.
AxisGroups groupAxes(const PropagationGraph &graph, const sharding::Mesh &mesh,
                     const sharding::LinkModel &links);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_AXISGROUPS_H
