//===- Reduce.cpp - Combining contributions element by element ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reduce.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tessera::runtime {

using sharding::ReduceKind;

namespace {

/// The storage and accumulator types of a dtype.
template <typename T> struct Plain {
  using Storage = T;
  using Value = T;
  static Value load(Storage s) { return s; }
  static Storage store(Value v) { return v; }
};
struct Half {
  using Storage = uint16_t;
  using Value = float;
  static Value load(Storage s) { return halfToFloat(s); }
  static Storage store(Value v) { return floatToHalf(v); }
};
struct Bfloat {
  using Storage = uint16_t;
  using Value = float;
  static Value load(Storage s) { return bfloatToFloat(s); }
  static Storage store(Value v) { return floatToBfloat(v); }
};
struct Boolean {
  using Storage = uint8_t;
  using Value = bool;
  static Value load(Storage s) { return s != 0; }
  static Storage store(Value v) { return v; }
};

template <ReduceKind kind, typename T> T combine(T a, T b) {
  if constexpr (kind == ReduceKind::max || kind == ReduceKind::min) {
    bool keep = kind == ReduceKind::max ? a > b : a < b;
    if constexpr (std::is_floating_point_v<T>)
      keep = keep || a != a;
    return keep ? a : b;
  } else if constexpr (std::is_same_v<T, bool>) {
    return kind == ReduceKind::prod ? a && b : a || b;
  } else if constexpr (std::is_integral_v<T>) {
    // In 64 unsigned bits: narrow types would be promoted to int, which may overflow.
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(kind == ReduceKind::prod ? x * y : x + y);
  } else {
    return kind == ReduceKind::prod ? a * b : a + b;
  }
}

/// Elements [at, at + size) of all sources, with accumulators in registers: sources are read in
/// parallel, which suits prefetching, and no sum goes through memory.
template <typename Type, ReduceKind kind, int64_t size>
inline void reduceBlock(const std::byte *const *sources, int64_t numSources, int64_t at,
                        double scale, std::byte *out) {
  using Storage = typename Type::Storage;
  using Value = typename Type::Value;
  Value sums[size];
  const auto *first = reinterpret_cast<const Storage *>(sources[0]) + at;
  for (int64_t i = 0; i < size; ++i)
    sums[i] = Type::load(first[i]);
  for (int64_t s = 1; s < numSources; ++s) {
    const auto *source = reinterpret_cast<const Storage *>(sources[s]) + at;
    for (int64_t i = 0; i < size; ++i)
      sums[i] = combine<kind>(sums[i], Type::load(source[i]));
  }
  if constexpr (std::is_floating_point_v<Value>) {
    if (scale != 1.0)
      for (int64_t i = 0; i < size; ++i)
        sums[i] *= static_cast<Value>(scale);
  }
  auto *target = reinterpret_cast<Storage *>(out) + at;
  for (int64_t i = 0; i < size; ++i)
    target[i] = Type::store(sums[i]);
}

template <typename Type, ReduceKind kind>
void reduceChunk(const std::byte *const *sources, int64_t numSources, int64_t count, double scale,
                 std::byte *out) {
  constexpr int64_t kBlock = 32;
  int64_t at = 0;
  for (; at + kBlock <= count; at += kBlock)
    reduceBlock<Type, kind, kBlock>(sources, numSources, at, scale, out);
  for (; at < count; ++at)
    reduceBlock<Type, kind, 1>(sources, numSources, at, scale, out);
}

template <typename Type> ReduceFunction ofType(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::avg:
    return reduceChunk<Type, ReduceKind::sum>;
  case ReduceKind::max:
    return reduceChunk<Type, ReduceKind::max>;
  case ReduceKind::min:
    return reduceChunk<Type, ReduceKind::min>;
  case ReduceKind::prod:
    return reduceChunk<Type, ReduceKind::prod>;
  }
  return nullptr;
}

template <typename T> ElementBytes bytesOf(T value) {
  ElementBytes bytes{};
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

template <typename T> ElementBytes integerBytes(double value) {
  if (std::isnan(value))
    return bytesOf(T(0));
  if (value >= -static_cast<double>(std::numeric_limits<T>::min()))
    return bytesOf(std::numeric_limits<T>::max());
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return bytesOf(std::numeric_limits<T>::min());
  return bytesOf(static_cast<T>(value));
}

} // namespace

ReduceFunction reduceFunction(DType dtype, ReduceKind kind) {
  switch (dtype) {
  case DType::f64:
    return ofType<Plain<double>>(kind);
  case DType::f32:
    return ofType<Plain<float>>(kind);
  case DType::f16:
    return ofType<Half>(kind);
  case DType::bf16:
    return ofType<Bfloat>(kind);
  case DType::i64:
  case DType::index:
    return ofType<Plain<int64_t>>(kind);
  case DType::i32:
    return ofType<Plain<int32_t>>(kind);
  case DType::i16:
    return ofType<Plain<int16_t>>(kind);
  case DType::i8:
    return ofType<Plain<int8_t>>(kind);
  case DType::i1:
    return ofType<Boolean>(kind);
  }
  return nullptr;
}

ElementBytes elementOf(DType dtype, double value) {
  switch (dtype) {
  case DType::f64:
    return bytesOf(value);
  case DType::f32:
    return bytesOf(static_cast<float>(value));
  case DType::f16:
    return bytesOf(floatToHalf(static_cast<float>(value)));
  case DType::bf16:
    return bytesOf(floatToBfloat(static_cast<float>(value)));
  case DType::i64:
  case DType::index:
    return integerBytes<int64_t>(value);
  case DType::i32:
    return integerBytes<int32_t>(value);
  case DType::i16:
    return integerBytes<int16_t>(value);
  case DType::i8:
    return integerBytes<int8_t>(value);
  case DType::i1:
    return bytesOf(static_cast<uint8_t>(value > 0 || value < 0));
  }
  return {};
}

ElementBytes identityOf(DType dtype, ReduceKind kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::avg:
    return elementOf(dtype, 0);
  case ReduceKind::prod:
    return elementOf(dtype, 1);
  case ReduceKind::max: // the least value of an i1 is false
    return dtype == DType::i1 ? elementOf(dtype, 0) : elementOf(dtype, -infinity);
  case ReduceKind::min:
    return dtype == DType::i1 ? elementOf(dtype, 1) : elementOf(dtype, infinity);
  }
  return {};
}

} // namespace tessera::runtime
