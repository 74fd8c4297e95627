//===- Candidates.h - Candidate cuts and shardings --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_CANDIDATES_H
#define TESSERA_PLANNING_CANDIDATES_H

#include "tessera/Planning/AxisGroups.h"
#include "tessera/Planning/Strategies.h"

namespace tessera::dist {

/// The use of each mesh axis by a strategy. Labels of one node are compared only with each other,
/// for equality:
/// | of an op | of a tensor | label |
/// |---|---|---|
/// | the axis cuts nothing | nor here | kWhole |
/// | it cuts factor f | dimension d | f, d |
/// | contributions over it pass through | wait in the tensor | behind the last factor, dimension |
/// | - | its parts cut several dimensions | a number of its own for each such list |
using AxisLabels = std::vector<int64_t>;
inline constexpr int64_t kWhole = -1;
/// The labels of a sharding on a mesh of `numAxes` axes.
AxisLabels labelsOf(const sharding::TensorSharding &sharding, int64_t numAxes);

/// The strategies of an op: each group of mesh axes cuts one factor or none, or contributions over
/// it pass through. The whole op comes first. A factor has at least as many iterations as parts;
/// parts of windows are equal and no shorter than the window. About `most` strategies: if there are
/// more, the longest factors are kept, and all strategies with the same use of the first groups and
/// the same use of the last ones.
struct Candidates {
  std::vector<Strategy> strategies;
  std::vector<AxisLabels> labels; ///< by strategy
};
Candidates candidatesOf(const RuleNode &node, const sharding::Mesh &mesh, const AxisGroups &groups,
                        size_t most);

/// The sets of operands whose sums the op forwards, each a choice of Candidates. Empty for
/// reductions: dist-sink-partials decides whether to defer contributions past a contraction.
std::vector<llvm::SmallVector<int64_t>> forwardSetsOf(const RuleNode &node);

/// The shardings of a tensor that its annotation allows; the annotation itself comes first.
struct Placements {
  std::vector<sharding::TensorSharding> shardings; ///< canonical, closed
  std::vector<AxisLabels> labels;
};
Placements placementsOf(const TensorState &tensor, const AxisGroups &groups, size_t most);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_CANDIDATES_H
