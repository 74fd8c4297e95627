//===- Mesh.cpp - Process meshes and references to their axes -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Mesh.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tessera::sharding {

DeviceIds::DeviceIds(std::vector<int64_t> ids) : count(static_cast<int64_t>(ids.size())) {
  bool isRange = true;
  for (size_t i = 1; i < ids.size(); ++i)
    isRange = isRange && ids[i] == ids[i - 1] + 1;
  if (isRange)
    first = ids.empty() ? 0 : ids.front();
  else
    listed = std::make_shared<const std::vector<int64_t>>(std::move(ids));
}

DeviceIds DeviceIds::range(int64_t count, int64_t first) {
  DeviceIds ids;
  ids.count = count;
  ids.first = count == 0 ? 0 : first;
  return ids;
}

int64_t DeviceIds::find(int64_t id) const {
  if (!listed)
    return id >= first && id - first < count ? id - first : -1;
  auto it = std::find(listed->begin(), listed->end(), id);
  return it == listed->end() ? -1 : it - listed->begin();
}

DeviceIds DeviceIds::sorted() const {
  if (!listed)
    return *this;
  std::vector<int64_t> ids = *listed;
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool DeviceIds::operator==(const DeviceIds &other) const {
  if (count != other.count || first != other.first || !listed != !other.listed)
    return false;
  return listed == other.listed || *listed == *other.listed;
}

std::vector<int64_t> Mesh::coordinate(int64_t position) const {
  std::vector<int64_t> result(shape.size());
  for (int64_t axis = numAxes() - 1; axis >= 0; --axis) {
    result[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return result;
}

int64_t Mesh::position(const std::vector<int64_t> &coordinate) const {
  int64_t result = 0;
  for (int64_t axis = 0; axis < numAxes(); ++axis)
    result = result * shape[axis] + coordinate[axis];
  return result;
}

int64_t Mesh::axisIndex(std::string_view axisName) const {
  auto it = std::find(axisNames.begin(), axisNames.end(), axisName);
  return it == axisNames.end() ? -1 : it - axisNames.begin();
}

int64_t Mesh::positionOf(int64_t processId) const {
  return processIds.find(processId);
}

bool AxisRef::overlaps(const AxisRef &other) const {
  if (axis != other.axis)
    return false;
  // Two parts are independent only if one ends at a boundary where the other starts: (1)2 and (3)2
  // of an axis of 6, c / 3 and c % 2, have no common part and yet are not independent.
  auto before = [](const AxisRef &a, const AxisRef &b) { return b.pre % (a.pre * a.size) == 0; };
  return !before(*this, other) && !before(other, *this);
}

bool AxisRef::contains(const AxisRef &other) const {
  return axis == other.axis && other.pre % pre == 0 && (pre * size) % (other.pre * other.size) == 0;
}

int64_t sizeOf(const AxisList &axes) {
  return std::accumulate(axes.begin(), axes.end(), int64_t(1),
                         [](int64_t n, const AxisRef &axis) { return n * axis.size; });
}

int64_t coordinateIn(const Mesh &mesh, const AxisRef &axis,
                     const std::vector<int64_t> &coordinate) {
  int64_t post = mesh.shape[axis.axis] / (axis.pre * axis.size);
  return coordinate[axis.axis] / post % axis.size;
}

int64_t linearIndex(const Mesh &mesh, const AxisList &axes,
                    const std::vector<int64_t> &coordinate) {
  int64_t result = 0;
  for (const AxisRef &axis : axes)
    result = result * axis.size + coordinateIn(mesh, axis, coordinate);
  return result;
}

AxisList mergeAxes(AxisList axes) {
  if (axes.size() < 2)
    return axes;
  AxisList result;
  for (const AxisRef &axis : axes) {
    if (axis.size == 1)
      result.push_back(axis); // keep an axis of extent 1: the user wrote it
    else if (!result.empty() && result.back().size > 1 && result.back().canMerge(axis))
      result.back().size *= axis.size;
    else
      result.push_back(axis);
  }
  return result;
}

bool overlapsAny(const AxisList &axes, const AxisRef &axis) {
  return std::any_of(axes.begin(), axes.end(), [&](const AxisRef &other) {
    return other.overlaps(axis) || (other.axis == axis.axis && other.size == 1 && axis.size == 1);
  });
}

/// The common head of two lists: the whole head, or the shorter part of the same axis. Size 0 if
/// there is none.
static AxisRef sharedHead(const AxisRef &a, const AxisRef &b) {
  if (a.axis != b.axis || a.pre != b.pre)
    return {a.axis, a.pre, 0};
  int64_t common = std::gcd(a.size, b.size);
  if (common != std::min(a.size, b.size) || (common == 1 && a.size != b.size))
    return {a.axis, a.pre, 0};
  return {a.axis, a.pre, common};
}

AxisList commonPrefix(const AxisList &a, const AxisList &b) {
  AxisList result;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    AxisRef shared = sharedHead(a[i], b[i]);
    if (shared.size == 0)
      break;
    result.push_back(shared);
    if (a[i] != b[i])
      break;
  }
  return result;
}

bool isPrefix(const AxisList &prefix, const AxisList &axes) {
  if (prefix.size() > axes.size())
    return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    if (prefix[i] == axes[i])
      continue;
    // A shorter part of an axis ends the prefix.
    return i + 1 == prefix.size() && sharedHead(prefix[i], axes[i]) == prefix[i];
  }
  return true;
}

AxisList removePrefix(const AxisList &prefix, const AxisList &axes) {
  AxisList result;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i >= prefix.size()) {
      result.push_back(axes[i]);
    } else if (prefix[i].size < axes[i].size) {
      result.push_back({axes[i].axis, axes[i].pre * prefix[i].size, axes[i].size / prefix[i].size});
    }
  }
  return result;
}

bool splitAt(const AxisList &axes, int64_t size, AxisList &major, AxisList &minor) {
  major.clear();
  minor.clear();
  for (const AxisRef &axis : axes) {
    if (size == 1) {
      minor.push_back(axis);
    } else if (size % axis.size == 0) {
      major.push_back(axis);
      size /= axis.size;
    } else if (axis.size % size == 0) {
      major.push_back({axis.axis, axis.pre, size});
      minor.push_back({axis.axis, axis.pre * size, axis.size / size});
      size = 1;
    } else {
      return false;
    }
  }
  return size == 1;
}

std::vector<std::vector<int64_t>> deviceGroups(const Mesh &mesh, const AxisList &axes) {
  // Devices of one group agree in all coordinates after their parts in `axes` are set to zero.
  std::map<std::vector<int64_t>, std::vector<int64_t>> groups;
  int64_t groupSize = sizeOf(axes);
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    std::vector<int64_t> coordinate = mesh.coordinate(position);
    int64_t index = linearIndex(mesh, axes, coordinate);
    std::vector<int64_t> key = coordinate;
    for (const AxisRef &axis : axes) {
      int64_t post = mesh.shape[axis.axis] / (axis.pre * axis.size);
      key[axis.axis] -= coordinateIn(mesh, axis, coordinate) * post;
    }
    auto &members = groups[key];
    members.resize(groupSize, -1);
    members[index] = position;
  }
  std::vector<std::vector<int64_t>> result;
  for (auto &[key, members] : groups)
    result.push_back(std::move(members));
  return result;
}

std::string toString(const Mesh &mesh, const AxisRef &axis) {
  std::string result = "\"" + mesh.axisNames[axis.axis] + "\"";
  if (!axis.isFull(mesh))
    result += ":(" + std::to_string(axis.pre) + ")" + std::to_string(axis.size);
  return result;
}

std::string toString(const Mesh &mesh, const AxisList &axes) {
  std::string result = "[";
  for (const AxisRef &axis : axes)
    result += (result.size() > 1 ? ", " : "") + toString(mesh, axis);
  return result + "]";
}

} // namespace tessera::sharding
