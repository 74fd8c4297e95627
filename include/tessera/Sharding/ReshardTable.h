//===- ReshardTable.h - The times of all reshards of a tensor ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search asks for the time of every way to every other way in which a tensor may
// lie: tens of thousands of reshards, of which a program later makes a few. This is
// the planner's shortest path with placements as states: one run of Dijkstra's
// algorithm a source answers for all targets, as far as they are asked for. Steps are
// those of the planner but exchanges and permutations, priced by the same formulas
// (Collective.h, CostModel.h) over parts of ceiling size; so where sizes divide, a time
// is that of the best chain of collectives.
//
// The number of placements grows with the factorial of the mesh axes, so a reshard is
// made small first, and equal ones are one:
//
//   [a, b] [c] -> [a] [c, b]    what both begin with stays: the shape is that of a part
//   [a, b] []  -> [] [a, b]     axes that stay beside each other are one
//   [a] -> [] and [c] -> []     the same, where links and sizes of a and c are
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_RESHARDTABLE_H
#define TESSERA_SHARDING_RESHARDTABLE_H

#include "tessera/Sharding/ReshardPlanner.h"

#include <map>
#include <memory>

namespace tessera::sharding {

/// The times of the reshards of tensors of one shape on one mesh.
class ReshardTable {
public:
  /// `planner` answers for what this does not know: parts of axes, windows that become others.
  ReshardTable(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement,
               ReshardPlanner &planner);
  ReshardTable(const ReshardTable &) = delete; ///< its parts refer to it
  ReshardTable &operator=(const ReshardTable &) = delete;
  ~ReshardTable();

  /// Seconds from `source` to `target`, both closed and canonical.
  double seconds(const TensorSharding &source, const TensorSharding &target);
  /// From now on what is not known is priced by one chain that always works (what changes is
  /// reduced, gathered and cut again), which takes no time to find.
  void hurry() { isHurried = true; }

private:
  struct State {
    std::vector<std::vector<int8_t>> dims; ///< axes of each dimension, major first
    std::vector<int8_t> partial;           ///< ascending
  };
  /// A reshard made small: axes are numbers of `groups`.
  struct Small {
    std::vector<int64_t> shape;
    std::vector<std::vector<int8_t>> groups; ///< mesh axes, major first
    State source, target;
  };
  class Space;

  double windowSeconds(const TensorSharding &source, const TensorSharding &target);
  bool stateOf(const TensorSharding &sharding, State &state) const;
  Small makeSmall(State source, State target) const;
  double directSeconds(const Small &small) const;
  double linkSeconds(const std::vector<std::vector<int8_t>> &groups,
                     const std::vector<int8_t> &chosen, CollectiveKind kind,
                     double wireBytes) const;
  int64_t partsOf(const std::vector<std::vector<int8_t>> &groups,
                  const std::vector<int8_t> &chosen) const;

  const Mesh &mesh;
  std::vector<int64_t> shape;
  int64_t bytesPerElement;
  ReshardPlanner &planner;
  const LinkModel &links;
  std::vector<int64_t> classOf; ///< by axis: equal ones have equal sizes and links
  /// By shape and the classes of the groups.
  std::map<std::vector<int64_t>, std::unique_ptr<Space>> spaces;
  bool isHurried = false;
};

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_RESHARDTABLE_H
