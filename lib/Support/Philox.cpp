//===- Philox.cpp - Random numbers by counter -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/Philox.h"

namespace tessera {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53) * counter[0], b = uint64_t(0xCD9E8D57) * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9; // golden ratio
    key[1] += 0xBB67AE85; // sqrt(3) - 1
  }
  return counter;
}

uint32_t randomWord(uint64_t seed, uint64_t element, uint64_t argument) {
  auto low = [](uint64_t word) { return static_cast<uint32_t>(word); };
  auto high = [](uint64_t word) { return static_cast<uint32_t>(word >> 32); };
  return philox4x32({low(element), high(element), low(argument), high(argument)},
                    {low(seed), high(seed)})[0];
}

} // namespace tessera
