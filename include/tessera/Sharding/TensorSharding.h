//===- TensorSharding.h - The sharding of a tensor on a mesh ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_TENSORSHARDING_H
#define TESSERA_SHARDING_TENSORSHARDING_H

#include "tessera/Sharding/Mesh.h"

#include <optional>

namespace tessera::sharding {

/// How the contributions of a partial value combine. `avg` is a sum divided by the group size.
enum class ReduceKind { sum, avg, max, min, prod };

/// "sum", "avg", …
std::string_view toString(ReduceKind kind);
/// Inverse of `toString`; empty for anything else.
std::optional<ReduceKind> parseReduceKind(std::string_view text);

/// One axis part over which a tensor is partial.
struct PartialAxis {
  AxisRef axis;
  ReduceKind kind = ReduceKind::sum;
  bool operator==(const PartialAxis &) const = default;
  auto operator<=>(const PartialAxis &) const = default;
};

/// A dimension whose buffer is not a plain shard: the device with linear index c over the
/// dimension's axes holds the indices x with x * divisor in [c * step + offset, c * step + offset +
/// length). Halos are windows; if the dimension is reversed, the step is negative.
///
/// A window may be one of a *selection*: x then counts the elements begin, begin + stride, … of the
/// dimension, of which there are `count`, and the buffer has no others.
///
///   8 over 4 devices, a halo of 1        step 2, offset -1, length 4
///   8 over 4 devices, reversed           step -2, offset 6, length 2
///   every third of 24, from 1, over 4    step 2, length 2, begin 1, stride 3, count 8
struct Window {
  int64_t dim = 0;
  int64_t step = 0;
  int64_t offset = 0;
  int64_t length = 0;
  int64_t divisor = 1;
  int64_t begin = 0;
  int64_t stride = 1;
  int64_t count = -1; ///< of a selection; -1 for a window of all elements

  bool isSelection() const { return count >= 0; }
  bool operator==(const Window &) const = default;
  auto operator<=>(const Window &) const = default;
};

/// The sharding of one tensor on one mesh, by dimension. Axes that it does not name are replicate.
struct TensorSharding {
  std::vector<AxisList> dims;       ///< for each dimension the axes that cut it, major first
  std::vector<PartialAxis> partial; ///< axes whose devices hold contributions
  AxisList open;                    ///< axes left to the compiler (`?`)
  std::vector<Window> windows;      ///< by ascending dimension; only in the local view

  static TensorSharding replicated(int64_t rank) {
    return {std::vector<AxisList>(rank), {}, {}, {}};
  }
  static TensorSharding allOpen(const Mesh &mesh, int64_t rank);

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  bool isPartial() const { return !partial.empty(); }
  bool isReplicated() const;
  /// Every axis that cuts a dimension or is partial.
  AxisList usedAxes() const;
  /// Whether no part of `axis` cuts a dimension or is partial.
  bool isFree(const AxisRef &axis) const;
  AxisList partialAxes() const;
  /// The same with partial axes reduced away / open axes closed.
  TensorSharding withoutPartial() const;
  TensorSharding closed() const;

  bool operator==(const TensorSharding &) const = default;
  auto operator<=>(const TensorSharding &) const = default;
};

/// Orders partial and open axes and merges neighboring parts, so that equivalent shardings compare
/// equal.
TensorSharding canonical(TensorSharding sharding);

/// `[{"dp"}, {}] partial sum("tp")`-like text for messages; see the dialect for the IR's spelling.
std::string toString(const Mesh &mesh, const TensorSharding &sharding);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_TENSORSHARDING_H
