//===- Mesh.h - Process meshes and references to their axes -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process mesh arranges devices in a grid whose axes have names. A device has
// a *process id* (its number in a backend) and a *position* (its row-major index
// in the mesh). The algebra uses positions; ids appear only at its interfaces.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_MESH_H
#define TESSERA_SHARDING_MESH_H

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::sharding {

/// The process ids of a mesh, by position. Consecutive ids, the usual case, are stored as a range
/// and others are shared between copies, so that copies and comparisons do not grow with the mesh.
class DeviceIds {
public:
  DeviceIds() = default;
  DeviceIds(std::vector<int64_t> ids); // NOLINT(google-explicit-constructor): a list of ids is one
  DeviceIds(std::initializer_list<int64_t> ids) : DeviceIds(std::vector<int64_t>(ids)) {}
  /// `count` ids: first, first + 1, ….
  static DeviceIds range(int64_t count, int64_t first = 0);

  size_t size() const { return static_cast<size_t>(count); }
  bool empty() const { return count == 0; }
  int64_t operator[](size_t position) const {
    return listed ? (*listed)[position] : first + static_cast<int64_t>(position);
  }
  int64_t front() const { return (*this)[0]; }
  /// Position of an id, or -1.
  int64_t find(int64_t id) const;
  bool isRange() const { return !listed; }
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  /// The ids in ascending order; equal for meshes over the same devices.
  DeviceIds sorted() const;

  class Iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = int64_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const int64_t *;
    using reference = int64_t;

    Iterator(const DeviceIds &ids, size_t at) : ids(&ids), at(at) {}
    int64_t operator*() const { return (*ids)[at]; }
    Iterator &operator++() {
      ++at;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at;
      return before;
    }
    bool operator==(const Iterator &other) const { return at == other.at; }

  private:
    const DeviceIds *ids;
    size_t at;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  bool operator==(const DeviceIds &other) const;

private:
  int64_t first = 0, count = 0;
  std::shared_ptr<const std::vector<int64_t>> listed; ///< null for a range
};

/// A grid of devices. Invariants (checked by `dist.process_mesh`'s verifier, not here): every
/// extent is positive, names are unique and as many as extents, ids are unique, non-negative and
/// as many as the product of the extents.
struct Mesh {
  std::string name;
  std::vector<int64_t> shape;         ///< extent of each axis, slowest first
  std::vector<std::string> axisNames; ///< one name per axis
  DeviceIds processIds;               ///< process id of each position, row-major

  int64_t numAxes() const { return static_cast<int64_t>(shape.size()); }
  int64_t numDevices() const { return static_cast<int64_t>(processIds.size()); }
  /// Row-major coordinate of a position: [2, 4], 6 -> (1, 2).
  std::vector<int64_t> coordinate(int64_t position) const;
  /// Inverse of `coordinate`.
  int64_t position(const std::vector<int64_t> &coordinate) const;
  /// Index of the axis called `axisName`, or -1.
  int64_t axisIndex(std::string_view axisName) const;
  /// Position of a process id, or -1 when the device is not in the mesh.
  int64_t positionOf(int64_t processId) const;

  bool operator==(const Mesh &) const = default;
};

/// A mesh axis or a part of one. An axis of extent A seen as [pre, size, A / (pre * size)] has the
/// sub-axis (pre)size in its middle, as in Shardy's AxisRefAttr; a full axis is (1)A.
///
///   axis of 8   | sub-axis | index of coordinate 6 = 0b110
///   "x"         | (1)8     | 6
///   "x":(1)2    | major    | 1
///   "x":(2)2    | middle   | 1
///   "x":(4)2    | minor    | 0
struct AxisRef {
  int64_t axis = 0; ///< index into the mesh
  int64_t pre = 1;  ///< product of the extents before it in its axis
  int64_t size = 1; ///< its own extent

  static AxisRef full(const Mesh &mesh, int64_t axis) { return {axis, 1, mesh.shape[axis]}; }
  bool isFull(const Mesh &mesh) const { return pre == 1 && size == mesh.shape[axis]; }
  /// Whether the two share a part of the same axis.
  bool overlaps(const AxisRef &other) const;
  /// Whether this part contains the other.
  bool contains(const AxisRef &other) const;
  /// Whether `next` continues this part within the axis, so that both are one longer part.
  bool canMerge(const AxisRef &next) const { return axis == next.axis && pre * size == next.pre; }

  bool operator==(const AxisRef &) const = default;
  auto operator<=>(const AxisRef &) const = default;
};

/// Axes that together form one index, major first.
using AxisList = std::vector<AxisRef>;

/// Product of the sizes.
int64_t sizeOf(const AxisList &axes);
/// Coordinate of a device within one axis part.
int64_t coordinateIn(const Mesh &mesh, const AxisRef &axis, const std::vector<int64_t> &coordinate);
/// Linear index of a device over several axis parts, major first; 0 for none.
int64_t linearIndex(const Mesh &mesh, const AxisList &axes, const std::vector<int64_t> &coordinate);
/// Merges neighbors that continue each other: ["x":(1)2, "x":(2)4] -> ["x"].
AxisList mergeAxes(AxisList axes);
/// Whether any part of `axis` is named in `axes`.
bool overlapsAny(const AxisList &axes, const AxisRef &axis);
/// Longest common prefix; a longer part is cut where the shorter ends:
///   ["x", "y"] and ["x", "z"] -> ["x"];  ["x"(8)] and ["x":(1)2] -> ["x":(1)2]
AxisList commonPrefix(const AxisList &a, const AxisList &b);
/// Whether `prefix` is a prefix of `axes` as defined by `commonPrefix`.
bool isPrefix(const AxisList &prefix, const AxisList &axes);
/// The part of `axes` after `prefix`; requires isPrefix(prefix, axes).
AxisList removePrefix(const AxisList &prefix, const AxisList &axes);
/// Cuts an axis list after `size` index values, splitting an axis if necessary:
///   ["x"(4)] at 2 -> ["x":(1)2] and ["x":(2)2]. Returns false when no cut is possible (4 at 3).
bool splitAt(const AxisList &axes, int64_t size, AxisList &major, AxisList &minor);
/// The positions of every group of devices that differ only in `axes`, each ordered by its linear
/// index over `axes`; groups ordered by their first position.
///   mesh 2x4, ["tp"] -> {0,1,2,3} {4,5,6,7};  ["dp"] -> {0,4} {1,5} {2,6} {3,7}
std::vector<std::vector<int64_t>> deviceGroups(const Mesh &mesh, const AxisList &axes);

/// `"tp"`, `"tp":(2)2`.
std::string toString(const Mesh &mesh, const AxisRef &axis);
/// `["dp", "tp"]`.
std::string toString(const Mesh &mesh, const AxisList &axes);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_MESH_H
