//===- Philox.h - Random numbers by counter ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
// A counter-based generator: element i of an argument is the same for any order, device
// or language.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_PHILOX_H
#define TESSERA_SUPPORT_PHILOX_H

#include <array>
#include <cstdint>

namespace tessera {

/// One block of Philox4x32 with ten rounds.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// The word of an element: key = (low, high) of the seed, counter = (low, high of the element's
/// row-major index, low, high of the argument's); the first word of the block.
uint32_t randomWord(uint64_t seed, uint64_t element, uint64_t argument);

/// A word as a number in [-1, 1): w / 2^31 - 1, exact.
inline double randomReal(uint32_t word) {
  return static_cast<double>(word) / 0x1p31 - 1.0;
}
/// A word as an integer in [low, high): low + w mod (high - low). `low` is less than `high`.
inline int64_t randomInteger(uint32_t word, int64_t low, int64_t high) {
  uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + word % width);
}

} // namespace tessera

#endif // TESSERA_SUPPORT_PHILOX_H
