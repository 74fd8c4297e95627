//===- ReshardTable.h - The times of all reshards of a tensor ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search asks for the time of every way to every other way in which a tensor may
// lie: tens of thousands of reshards, of which a program later makes a few. This is
// the planner's shortest path with all placements as states at once: one run of
// Dijkstra's algorithm a source answers for all targets. Steps are those of the
// planner but exchanges and permutations, priced by the same formulas (Collective.h,
// CostModel.h) over parts of ceiling size; so where sizes divide, a time is that of
// the best chain of collectives.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_RESHARDTABLE_H
#define TESSERA_SHARDING_RESHARDTABLE_H

#include "tessera/Sharding/ReshardPlanner.h"

#include <tuple>

namespace tessera::sharding {

/// The times of the reshards of tensors of one shape on one mesh.
class ReshardTable {
public:
  /// `planner` answers for what this does not know: parts of axes, windows that become others.
  ReshardTable(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement,
               ReshardPlanner &planner);

  /// Seconds from `source` to `target`, both closed and canonical.
  double seconds(const TensorSharding &source, const TensorSharding &target);

private:
  struct State {
    std::vector<std::vector<int8_t>> dims; ///< axes of each dimension, major first
    std::vector<int8_t> partial;           ///< ascending
    bool operator<(const State &other) const {
      return std::tie(dims, partial) < std::tie(other.dims, other.partial);
    }
  };
  struct Step {
    int32_t target;
    uint32_t axes; ///< that the target uses, a bit each
    double seconds;
  };

  double windowSeconds(const TensorSharding &source, const TensorSharding &target);
  bool stateOf(const TensorSharding &sharding, State &state) const;
  int32_t numberOf(const State &state);
  void addStates();
  void addSteps(int32_t from);
  void step(int32_t from, const State &target, CollectiveKind kind,
            const std::vector<int8_t> &group, double wireBytes);
  double localBytes(const State &state) const;
  bool fits(const State &state) const; ///< every part has an index
  static uint32_t axesOf(const State &state);
  const std::vector<double> &from(int32_t source, uint32_t axes);

  const Mesh &mesh;
  std::vector<int64_t> shape;
  int64_t bytesPerElement;
  ReshardPlanner &planner;
  std::vector<State> states;
  std::map<State, int32_t> numbers;
  std::vector<std::vector<Step>> steps; ///< by state
  /// By source and the axes that a path may use: those that source or target do, as the planner has
  /// it. Empty: not asked for yet.
  std::vector<std::vector<double>> distances;
};

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_RESHARDTABLE_H
