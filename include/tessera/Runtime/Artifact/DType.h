//===- DType.h - Element types ----------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_DTYPE_H
#define TESSERA_RUNTIME_ARTIFACT_DTYPE_H

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
/// f16, bf16: what is accumulated in f32.
inline bool isHalf(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

/// IEEE half and bfloat16 as their bits. Conversions to them round to nearest even; NaN stays NaN.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
float bfloatToFloat(uint16_t bits);
uint16_t floatToBfloat(float value);

/// Product of the extents; 1 for rank 0. Empty when it overflows 2^62 or an extent is negative.
std::optional<int64_t> elementCount(const std::vector<int64_t> &shape);
/// "64x1024xf32", "f32" for rank 0.
std::string typeText(DType dtype, const std::vector<int64_t> &shape);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_ARTIFACT_DTYPE_H
