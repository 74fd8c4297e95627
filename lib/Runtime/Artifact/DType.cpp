//===- DType.cpp - Element types ------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Artifact/DType.h"

#include <array>
#include <bit>

namespace tessera::runtime {

namespace {
struct Entry {
  std::string_view name;
  int64_t size;
  bool floating;
};
constexpr std::array<Entry, 10> kEntries = {{{"f64", 8, true},
                                             {"f32", 4, true},
                                             {"f16", 2, true},
                                             {"bf16", 2, true},
                                             {"i64", 8, false},
                                             {"i32", 4, false},
                                             {"i16", 2, false},
                                             {"i8", 1, false},
                                             {"i1", 1, false},
                                             {"index", 8, false}}};
const Entry &entry(DType dtype) {
  return kEntries[static_cast<size_t>(dtype)];
}
} // namespace

int64_t sizeOf(DType dtype) {
  return entry(dtype).size;
}
std::string_view toString(DType dtype) {
  return entry(dtype).name;
}
bool isFloat(DType dtype) {
  return entry(dtype).floating;
}

std::optional<DType> parseDType(std::string_view text) {
  for (size_t i = 0; i < kEntries.size(); ++i)
    if (kEntries[i].name == text)
      return static_cast<DType>(i);
  return std::nullopt;
}

float halfToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f; // zero and subnormals, exactly
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x47800000) // 2^16 and more
    return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Below the least normal half: adding 0.5 leaves the rounded multiple of 2^-24 in the mantissa.
    float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded) - 0x3f000000);
  }
  uint32_t odd = (magnitude >> 13) & 1;
  return sign | static_cast<uint16_t>((magnitude - 0x38000000 + 0xfff + odd) >> 13);
}

float bfloatToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t floatToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

std::optional<int64_t> elementCount(const std::vector<int64_t> &shape) {
  // An empty tensor is empty however large its other extents, but those must still be sane.
  int64_t count = 1;
  bool zero = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      return std::nullopt;
    if (extent == 0) {
      zero = true;
      continue;
    }
    if (count > (int64_t(1) << 62) / extent)
      return std::nullopt;
    count *= extent;
  }
  return zero ? 0 : count;
}

std::string typeText(DType dtype, const std::vector<int64_t> &shape) {
  std::string result;
  for (int64_t extent : shape)
    result += std::to_string(extent) + "x";
  return result + std::string(toString(dtype));
}

} // namespace tessera::runtime
