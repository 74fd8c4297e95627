//===- Layout.h - Elements in each device's buffer --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sharding defines how a tensor is cut; a layout defines the contents of each
// device's buffer. Beside plain shards a layout can express windows (a shard with its
// halo), so that every collective is a move from one layout to another.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_LAYOUT_H
#define TESSERA_SHARDING_LAYOUT_H

#include "tessera/Sharding/TensorSharding.h"

namespace tessera::sharding {

/// A box of indices: [offset, offset + size) in every dimension. An empty box has a zero size.
struct Box {
  std::vector<int64_t> offset;
  std::vector<int64_t> size;

  int64_t numElements() const; ///< 1 for rank 0
  bool empty() const { return numElements() == 0; }
  bool contains(const Box &other) const; ///< an empty box is contained in every box
  bool operator==(const Box &) const = default;
  auto operator<=>(const Box &) const = default;
};

/// The intersection; sizes are 0 if it is empty.
Box intersect(const Box &a, const Box &b);
/// `box` less `hole` as disjoint boxes, cut dimension by dimension (at most 2 x rank of them).
std::vector<Box> subtract(const Box &box, const Box &hole);

/// One dimension of a layout. The buffer of the device with linear index c over `axes` holds the
/// global indices [c * step + offset, c * step + offset + length); indices outside [0, extent) are
/// padding with undefined content. With a divisor, the buffer holds the integers x for which x *
/// divisor is in that interval: consecutive parts of different sizes, in buffers of equal size.
///
///   extent 7 over 4 devices: step 2, offset 0, length 2 -> 0-1, 2-3, 4-5, 6(-7)
///   the same with a halo of 1: step 2, offset -1, length 4
///   every second of those 7: step 2, length 2, divisor 2 -> 0, 1, 2, 3
///   extent 5 over 4 devices, step 3, offset 0, length 3, divisor 2 -> 0-1, 2, 3-4, 5(-5)
///
/// If the layout selects elements of the dimension, indices count these: index x is element begin +
/// x * stride.
struct DimLayout {
  AxisList axes;
  int64_t step = 0;
  int64_t offset = 0;
  int64_t length = 0;
  int64_t divisor = 1;
  int64_t begin = 0;
  int64_t stride = 1;

  /// The indices [first, last) that the buffer of device c spans, padding included.
  std::pair<int64_t, int64_t> span(int64_t c) const;
  /// The number of indices for which a buffer has room.
  int64_t size() const;
  /// The same without a divisor if all parts have equal sizes.
  DimLayout simplified() const;
  bool operator==(const DimLayout &) const = default;
  auto operator<=>(const DimLayout &) const = default;
};

/// The contents of every device's buffer for one tensor, or for a selection of its elements.
struct Layout {
  std::vector<int64_t> globalShape; ///< for a selection, its own shape
  std::vector<DimLayout> dims;
  std::vector<PartialAxis> partial;

  /// Shape of the buffer, the same on every device.
  std::vector<int64_t> localShape() const;
  /// Global indices that the buffer spans, padding included (may start below 0).
  Box span(const Mesh &mesh, const std::vector<int64_t> &coordinate) const;
  /// Global indices that the buffer holds: the span within the tensor.
  Box valid(const Mesh &mesh, const std::vector<int64_t> &coordinate) const;
  /// Largest number of valid elements on any device.
  int64_t maxValidElements() const;
  bool operator==(const Layout &) const = default;
  auto operator<=>(const Layout &) const = default;
};

/// The elements selected by `like` that devices with `layout` hold, in indices of the selection.
/// `layout` is of a whole tensor, or of a run of elements that contains the selection. Parts are
/// intervals of these indices, too: with a stride s, the multiples of s among a part's indices. For
/// a dimension that every device holds whole, only the selected elements.
Layout selectLike(const Layout &layout, const Layout &like);

/// Extent of one part when `extent` is cut once over `parts`: the ceiling. 7 over 4 -> 2.
inline int64_t ceilDiv(int64_t extent, int64_t parts) {
  return extent >= 0 ? (extent + parts - 1) / parts : -(-extent / parts);
}

/// The layout that a sharding gives a tensor: one ceiling split over the product of a dimension's
/// axes (7 over 4 is 2,2,2,1; 5 over 4 is 2,2,1,0; 5 over 2x2 is 2,2,1,0).
Layout makeLayout(const TensorSharding &sharding, const std::vector<int64_t> &globalShape);
/// Shape of a device's buffer under a sharding.
std::vector<int64_t> localShape(const TensorSharding &sharding,
                                const std::vector<int64_t> &globalShape);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_LAYOUT_H
