//===- ReshardSpace.h - Placements and the steps between them ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graph in which ReshardTable looks for shortest paths. A state says of every group
// of mesh axes whether it is whole, partial, or at which place it cuts which dimension;
// steps are collectives. States are made as they are reached.
//
// Parts have the ceiling of their share, so parts of parts are not always parts of the
// whole: 5 over 2x2 is 2, 2, 1, 0 and over 2 it is 3, 2. Where a step's parts do not end
// at common boundaries devices of other groups have what is lacking, and the step is an
// exchange.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_RESHARDSPACE_H
#define TESSERA_LIB_SHARDING_RESHARDSPACE_H

#include "tessera/Sharding/CostModel.h"

#include <array>
#include <cstdint>
#include <map>
#include <queue>
#include <unordered_map>
#include <vector>

namespace tessera::sharding {

/// A dimension, and in how many parts it stays cut whatever is done.
struct PartDim {
  int64_t extent = 1;
  int64_t parts = 1;
  friend auto operator<=>(const PartDim &, const PartDim &) = default;
};

/// All placements of tensors of one shape over groups of axes, found as they are needed.
class ReshardSpace {
public:
  /// A placement, a byte a group: whole, partial, or the place in a dimension.
  using Code = uint64_t;
  static constexpr int8_t kMostGroups = 8;
  static constexpr uint8_t kIsWhole = 0, kIsPartial = 1;
  static uint8_t codeOf(size_t dim, size_t position) {
    return static_cast<uint8_t>(kIsCut + dim * kMostGroups + position);
  }

  /// `mesh` and `links` outlive this. A group's axes are in their order, the major first.
  ReshardSpace(const Mesh &mesh, const LinkModel &links, std::vector<PartDim> dims,
               int64_t bytesPerElement, std::vector<AxisList> groups)
      : mesh(mesh), links(links), dims(std::move(dims)), bytesPerElement(bytesPerElement),
        groups(std::move(groups)), countsCopies(links.countsCopies()) {}

  /// Seconds of the fastest chain that is found; of one that always works (what is partial is
  /// reduced, all is gathered and cut again) where that takes long, or at once where hurried.
  double seconds(Code source, Code target, bool isHurried);

private:
  static constexpr uint8_t kIsCut = 2;
  using Groups = std::vector<int8_t>;

  struct State {
    std::vector<Groups> dims; ///< groups that cut each dimension, major first
    Groups partial;
  };
  struct Step {
    int32_t target;
    double seconds;
  };
  using Entry = std::pair<double, int32_t>;
  /// A run of Dijkstra's algorithm, which goes on when the next target is asked for.
  struct Run {
    std::vector<double> distance; ///< by state
    std::vector<char> isSettled;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    size_t numSettled = 0;
  };
  /// What a device at most has to get from outside its group, along one dimension.
  struct Lack {
    int64_t elements = 0;
    int64_t messages = 0;
    explicit operator bool() const { return elements > 0; }
  };

  double shortest(Code source, Code target);
  double directSeconds(Code source) const;
  static Code encode(const State &state);
  State decode(Code code) const;
  int32_t numberOf(Code code);

  bool fits(const State &state) const; ///< every part has an index
  int64_t partsOf(const Groups &chosen) const;
  int64_t extentOf(const State &state, size_t dim) const;
  double localBytes(const State &state) const;
  Lack lackOf(const State &coarse, const State &fine, size_t dim, bool isGathered);
  /// Of a collective from one state to another; a slice sends nothing.
  double secondsOf(const Groups &chosen, CollectiveKind kind, const State &source,
                   const State &target, double wireBytes, int64_t messages = 0) const;

  const std::vector<Step> &stepsFrom(int32_t from);
  void addSteps(int32_t from);
  void step(int32_t from, const State &target, double seconds);
  void reduce(int32_t from, const State &state);
  void gather(int32_t from, const State &state, size_t dim, size_t length);
  void cut(int32_t from, const State &state, const Groups &unused);

  const Mesh &mesh;
  const LinkModel &links;
  std::vector<PartDim> dims;
  int64_t bytesPerElement;
  std::vector<AxisList> groups;
  bool countsCopies;
  std::vector<Code> codes;
  std::unordered_map<Code, int32_t> numbers;
  std::vector<std::vector<Step>> steps; ///< by state
  std::vector<char> hasSteps;
  std::unordered_map<int32_t, Run> runs; ///< by source
  std::map<std::array<int64_t, 4>, Lack> lacks;
};

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_RESHARDSPACE_H
