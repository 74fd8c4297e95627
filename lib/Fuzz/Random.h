//===- Random.h - Platform-independent random numbers -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_FUZZ_RANDOM_H
#define TESSERA_LIB_FUZZ_RANDOM_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::fuzz {

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). The distributions of the standard library differ
/// between implementations, so they are not used.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /// From low to high, both inclusive.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool percent(int64_t chance) { return between(1, 100) <= chance; }
  template <typename T> const T &pick(const std::vector<T> &list) {
    return list[between(0, static_cast<int64_t>(list.size()) - 1)];
  }
  template <typename T> void shuffle(std::vector<T> &list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[between(0, static_cast<int64_t>(i) - 1)]);
  }

private:
  uint64_t state;
};

} // namespace tessera::fuzz

#endif // TESSERA_LIB_FUZZ_RANDOM_H
