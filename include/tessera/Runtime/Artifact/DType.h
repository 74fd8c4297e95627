//===- DType.h - Element types ----------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_DTYPE_H
#define TESSERA_RUNTIME_ARTIFACT_DTYPE_H

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::runtime {

/// Element types of the step format. Integers are signless; `i1` takes one byte (0 or 1), `index`
/// is a 64-bit integer.
enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, i1, index };

/// Bytes of one element.
int64_t sizeOf(DType dtype);
/// "f64", "bf16", "index", …
std::string_view toString(DType dtype);
/// Inverse of `toString`; empty for anything else.
std::optional<DType> parseDType(std::string_view text);
/// f64, f32, f16, bf16.
bool isFloat(DType dtype);
/// f16, bf16: accumulated in f32.
inline bool isHalf(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

/// IEEE half and bfloat16 as their bits. Conversions to them round to nearest even; NaN stays NaN.
inline float halfToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f; // zero and subnormals, exactly
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t floatToHalf(float value) {
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

inline float bfloatToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t floatToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Product of the extents; 1 for rank 0. Empty when it overflows 2^62 or an extent is negative.
std::optional<int64_t> elementCount(const std::vector<int64_t> &shape);
/// "64x1024xf32", "f32" for rank 0.
std::string typeText(DType dtype, const std::vector<int64_t> &shape);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_ARTIFACT_DTYPE_H
