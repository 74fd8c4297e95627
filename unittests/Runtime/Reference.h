//===- Reference.h - Reference results of moves -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_REFERENCE_H
#define TESSERA_UNITTESTS_RUNTIME_REFERENCE_H

#include "Fixtures.h"

#include "tessera/Runtime/Execution/Executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>

namespace tessera::runtime {

/// One element as a number, rounded by its dtype.
inline double readElement(DType dtype, const std::byte *at) {
  auto as = [&](auto zero) {
    std::memcpy(&zero, at, sizeof(zero));
    return zero;
  };
  switch (dtype) {
  case DType::f64:
    return as(double());
  case DType::f32:
    return as(float());
  case DType::f16:
    return halfToFloat(as(uint16_t()));
  case DType::bf16:
    return bfloatToFloat(as(uint16_t()));
  case DType::i64:
  case DType::index:
    return static_cast<double>(as(int64_t()));
  case DType::i32:
    return as(int32_t());
  case DType::i16:
    return as(int16_t());
  case DType::i8:
    return as(int8_t());
  case DType::i1:
    return as(uint8_t());
  }
  return 0;
}

inline void writeElement(DType dtype, double value, std::byte *at) {
  auto as = [&](auto stored) { std::memcpy(at, &stored, sizeof(stored)); };
  switch (dtype) {
  case DType::f64:
    return as(value);
  case DType::f32:
    return as(static_cast<float>(value));
  case DType::f16:
    return as(floatToHalf(static_cast<float>(value)));
  case DType::bf16:
    return as(floatToBfloat(static_cast<float>(value)));
  case DType::i64:
  case DType::index:
    // A double cannot represent INT64_MAX.
    return as(value >= 0x1p63 ? INT64_MAX : static_cast<int64_t>(value));
  case DType::i32:
    return as(static_cast<int32_t>(static_cast<int64_t>(value)));
  case DType::i16:
    return as(static_cast<int16_t>(static_cast<int64_t>(value)));
  case DType::i8:
    return as(static_cast<int8_t>(static_cast<int64_t>(value)));
  case DType::i1:
    return as(static_cast<uint8_t>(value != 0));
  }
}

inline double leastOf(DType dtype, double sign) {
  switch (dtype) {
  case DType::i64:
  case DType::index:
    return static_cast<double>(sign < 0 ? std::numeric_limits<int64_t>::min()
                                        : std::numeric_limits<int64_t>::max());
  case DType::i32:
    return sign < 0 ? INT32_MIN : INT32_MAX;
  case DType::i16:
    return sign < 0 ? INT16_MIN : INT16_MAX;
  case DType::i8:
    return sign < 0 ? INT8_MIN : INT8_MAX;
  case DType::i1:
    return sign < 0 ? 0 : 1;
  default:
    return sign * std::numeric_limits<double>::infinity();
  }
}

inline double identityValue(DType dtype, ReduceKind kind) {
  if (kind == ReduceKind::prod)
    return 1;
  if (kind == ReduceKind::max || kind == ReduceKind::min)
    return leastOf(dtype, kind == ReduceKind::max ? -1 : 1);
  return 0;
}

/// One reduction step, rounded like the accumulation of its dtype.
inline double combineValues(DType dtype, ReduceKind kind, double a, double b) {
  double result = 0;
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::avg:
    result = a + b;
    break;
  case ReduceKind::prod:
    result = a * b;
    break;
  case ReduceKind::max:
    result = std::isnan(a) || a > b ? a : b;
    break;
  case ReduceKind::min:
    result = std::isnan(a) || a < b ? a : b;
    break;
  }
  if (dtype == DType::i1)
    return kind == ReduceKind::prod || kind == ReduceKind::min ? a != 0 && b != 0
                                                               : a != 0 || b != 0;
  if (dtype == DType::f32 || isHalf(dtype))
    return static_cast<float>(result);
  return result;
}

/// Calls `visit` with every index of a box.
inline void forEachIndex(const sharding::Box &box,
                         const std::function<void(const Shape &)> &visit) {
  if (box.empty())
    return;
  Shape index = box.offset;
  while (true) {
    visit(index);
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == box.offset[d - 1] + box.size[d - 1]) {
      index[d - 1] = box.offset[d - 1];
      --d;
    }
    if (d == 0)
      return;
  }
}

inline int64_t localOffset(const Mesh &mesh, const Layout &layout, const Shape &coordinate,
                           const Shape &index) {
  sharding::Box span = layout.span(mesh, coordinate);
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d)
    offset = offset * span.size[d] + index[d] - span.offset[d];
  return offset;
}

/// The contribution of a place over partial axes to an element: small, of both signs, for floats
/// inexact under reordering.
inline double contribution(DType dtype, const Shape &index, int64_t place) {
  uint64_t hash = 88172645463325252u + static_cast<uint64_t>(place) * 0x9e3779b97f4a7c15u;
  for (int64_t i : index)
    hash = (hash ^ static_cast<uint64_t>(i + 1)) * 0xbf58476d1ce4e5b9u, hash ^= hash >> 29;
  if (dtype == DType::i1)
    return static_cast<double>(hash & 1);
  if (!isFloat(dtype))
    return static_cast<double>(static_cast<int64_t>(hash % 7) - 3);
  std::byte rounded[8];
  writeElement(dtype, static_cast<double>(hash % 20011) / 7919.0 - 1.25, rounded);
  return readElement(dtype, rounded);
}

inline AxisList partialAxesOf(const Layout &layout) {
  AxisList axes;
  for (const PartialAxis &part : layout.partial)
    axes.push_back(part.axis);
  return axes;
}

/// Writes the elements that a device of the source layout holds.
inline void fillSource(DType dtype, const Mesh &mesh, const Layout &layout, int64_t position,
                       std::byte *buffer) {
  Shape coordinate = mesh.coordinate(position);
  int64_t place = sharding::linearIndex(mesh, partialAxesOf(layout), coordinate);
  forEachIndex(layout.valid(mesh, coordinate), [&](const Shape &index) {
    writeElement(dtype, contribution(dtype, index, place),
                 buffer + localOffset(mesh, layout, coordinate, index) * sizeOf(dtype));
  });
}

/// The global value of an element of a source layout. `keep` are partial axes that are not reduced;
/// their place is that of `coordinate`. The layouts of these tests name partial axes either all in
/// both layouts or in one of them.
inline double sourceValue(DType dtype, const Mesh &mesh, const Layout &source, const Shape &index,
                          const Layout &target, const Shape &coordinate) {
  AxisList axes = partialAxesOf(source);
  if (axes.empty())
    return contribution(dtype, index, 0);
  if (!target.partial.empty() && source.partial == target.partial)
    return contribution(dtype, index, sharding::linearIndex(mesh, axes, coordinate));
  double value = contribution(dtype, index, 0), divisor = 1;
  ReduceKind kind = source.partial.front().kind;
  for (int64_t place = 1; place < sharding::sizeOf(axes); ++place)
    value = combineValues(dtype, kind, value, contribution(dtype, index, place));
  for (const PartialAxis &part : source.partial)
    if (part.kind == ReduceKind::avg)
      divisor *= static_cast<double>(part.axis.size);
  if (divisor != 1)
    value = dtype == DType::f64 ? value * (1 / divisor)
                                : static_cast<float>(value) * static_cast<float>(1 / divisor);
  return value;
}

/// The expected value of an element on a target device.
inline double expectedValue(DType dtype, const Mesh &mesh, const Layout &source,
                            const Layout &target, int64_t position, const Shape &index) {
  Shape coordinate = mesh.coordinate(position);
  double value = sourceValue(dtype, mesh, source, index, target, coordinate);
  if (!target.partial.empty() && source.partial == target.partial)
    return value;
  for (const PartialAxis &part : target.partial) {
    int64_t place = sharding::coordinateIn(mesh, part.axis, coordinate);
    bool cuts = false;
    for (size_t d = 0; d < source.dims.size(); ++d)
      if (sharding::overlapsAny(source.dims[d].axes, part.axis)) {
        cuts = true;
        // The shard of a device at this place, for any coordinate of the other axes.
        Shape owner = coordinate;
        sharding::Box valid = source.valid(mesh, owner);
        if (index[d] < valid.offset[d] || index[d] >= valid.offset[d] + valid.size[d])
          return identityValue(dtype, part.kind);
      }
    if (part.kind == ReduceKind::avg)
      value = cuts ? value * static_cast<double>(part.axis.size) : value;
    else if (!cuts && place != 0)
      return identityValue(dtype, part.kind);
  }
  return value;
}

/// Checks that every valid element of a target buffer is as expected, and that its padding holds
/// `padding` (or its initial contents: bytes 0xab).
inline void checkTarget(DType dtype, const Mesh &mesh, const Layout &source, const Layout &target,
                        int64_t position, const std::byte *buffer, std::optional<double> padding,
                        const std::string &what) {
  Shape coordinate = mesh.coordinate(position);
  sharding::Box valid = target.valid(mesh, coordinate);
  forEachIndex(target.span(mesh, coordinate), [&](const Shape &index) {
    const std::byte *at = buffer + localOffset(mesh, target, coordinate, index) * sizeOf(dtype);
    sharding::Box one{index, Shape(index.size(), 1)};
    std::byte expected[8];
    if (valid.contains(one))
      writeElement(dtype, expectedValue(dtype, mesh, source, target, position, index), expected);
    else if (padding)
      writeElement(dtype, *padding, expected);
    else
      std::memset(expected, 0xab, sizeof(expected));
    bool same = std::memcmp(at, expected, static_cast<size_t>(sizeOf(dtype))) == 0;
    ASSERT_TRUE(same) << what << " device " << position << ": " << readElement(dtype, at)
                      << " instead of " << readElement(dtype, expected);
  });
}

inline std::unique_ptr<Executor> openProgram(Program program, int64_t cores = 2,
                                             bool trace = false) {
  auto artifact = std::make_shared<Artifact>();
  artifact->program = std::move(program);
  Status status = verify(artifact->program, 0);
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok())
    return nullptr;
  auto executor = openUnderTest(artifact, {0, cores, trace});
  EXPECT_TRUE(executor) << executor.message();
  return executor ? std::move(*executor) : nullptr;
}

} // namespace tessera::runtime

#endif // TESSERA_UNITTESTS_RUNTIME_REFERENCE_H
