//===- RandomInput.h - Random inputs ----------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_SESSION_RANDOMINPUT_H
#define TESSERA_RUNTIME_SESSION_RANDOMINPUT_H

#include "tessera/Runtime/Session/HostTensor.h"

namespace tessera::runtime {

/// The value of an argument that is not given, by the words w of its elements
/// (tessera/Support/Philox.h): floats w / 2^31 - 1 in [-1, 1) rounded to their dtype, integers lo +
/// w mod (hi - lo) of the argument's range (default [0, 2)), i1 w mod 2.
HostTensor randomInput(const Argument &argument, int64_t argumentIndex, uint64_t seed);
/// Elements [begin, begin + count) of it in row-major order: a rank generates only its own.
void randomElements(const Argument &argument, int64_t argumentIndex, uint64_t seed, int64_t begin,
                    int64_t count, std::byte *at);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_SESSION_RANDOMINPUT_H
