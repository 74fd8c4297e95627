//===- DistinctRows.cpp - Distinct rows of tables -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DistinctRows.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace tessera::solver {

std::vector<double> transposed(const std::vector<double> &cost, size_t columns) {
  size_t rows = cost.size() / columns;
  std::vector<double> result(cost.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      result[c * rows + r] = cost[r * columns + c];
  return result;
}

namespace {

/// Hashes a row, one number at a time.
struct RowHash {
  size_t operator()(std::string_view row) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t at = 0; at < row.size(); at += sizeof(uint64_t)) {
      uint64_t bits;
      std::memcpy(&bits, row.data() + at, sizeof bits);
      hash = (hash ^ bits) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

} // namespace

std::vector<Index> keepDistinct(std::vector<double> &cost, size_t length) {
  std::unordered_map<std::string_view, Index, RowHash> numbers;
  std::vector<Index> of;
  std::vector<double> kept;
  kept.reserve(cost.size()); // views into it must stay valid
  for (auto row = cost.begin(); row != cost.end(); row += static_cast<std::ptrdiff_t>(length)) {
    const double *copy = kept.data() + kept.size();
    kept.insert(kept.end(), row, row + static_cast<std::ptrdiff_t>(length));
    auto [it, isNew] =
        numbers.try_emplace({reinterpret_cast<const char *>(copy), length * sizeof(double)},
                            static_cast<Index>(numbers.size()));
    if (!isNew)
      kept.resize(kept.size() - length);
    of.push_back(it->second);
  }
  cost = std::move(kept);
  return of;
}

} // namespace tessera::solver
