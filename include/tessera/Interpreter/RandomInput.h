//===- RandomInput.h - Random inputs that are the same everywhere *- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_RANDOMINPUT_H
#define TESSERA_INTERPRETER_RANDOMINPUT_H

#include "tessera/Interpreter/Interpreter.h"

#include <array>

namespace tessera::interpreter {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Element `i` of argument `k` is made of the first word w of Philox with key = seed and counter =
/// (i, k), each 64 bits, low word first: floats w / 2^31 - 1 in [-1, 1), integers
/// low + w mod (high - low), i1 w mod 2. A scalar type gives a tensor of rank 0.
Tensor randomTensor(const Argument &argument, uint64_t index, uint64_t seed);
/// One for each argument.
llvm::SmallVector<Tensor> randomInputs(llvm::ArrayRef<Argument> arguments, uint64_t seed);

} // namespace tessera::interpreter

#endif // TESSERA_INTERPRETER_RANDOMINPUT_H
