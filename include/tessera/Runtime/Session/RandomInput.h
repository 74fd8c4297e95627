//===- RandomInput.h - Random inputs ----------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011. A counter-based generator, so that element i of an argument is the
// same whatever order, device or language produces it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_SESSION_RANDOMINPUT_H
#define TESSERA_RUNTIME_SESSION_RANDOMINPUT_H

#include "tessera/Runtime/Session/HostTensor.h"

namespace tessera::runtime {

/// One block of Philox4x32 with ten rounds.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// The word of an element: key = (low, high) of the seed, counter = (low, high of the element's
/// row-major index, argument, 0); the first word of the block.
uint32_t randomWord(uint64_t seed, uint64_t element, uint32_t argument);

/// What an argument without a given value holds: floats w / 2^31 - 1 in [-1, 1) rounded to their
/// dtype, integers lo + w mod (hi - lo) of the argument's range (default [0, 2)), i1 w mod 2.
HostTensor randomInput(const Argument &argument, int64_t argumentIndex, uint64_t seed);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_SESSION_RANDOMINPUT_H
