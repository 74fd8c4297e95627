//===- DType.cpp - Element types ------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Artifact/DType.h"

#include <array>

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

std::optional<int64_t> elementCount(const std::vector<int64_t> &shape) {
  // The other extents of an empty tensor must still be valid.
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
