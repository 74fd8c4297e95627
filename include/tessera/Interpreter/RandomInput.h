//===- RandomInput.h - Reproducible random inputs ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_RANDOMINPUT_H
#define TESSERA_INTERPRETER_RANDOMINPUT_H

#include "tessera/Interpreter/Interpreter.h"

namespace tessera::interpreter {

/// Element `i` of argument `k` is computed from its word w (tessera/Support/Philox.h): floats w /
/// 2^31 - 1 in [-1, 1), integers low + w mod (high - low), i1 w mod 2. A scalar type gives a tensor
/// of rank 0.
Tensor randomTensor(const Argument &argument, uint64_t index, uint64_t seed);
/// One per argument.
llvm::SmallVector<Tensor> randomInputs(llvm::ArrayRef<Argument> arguments, uint64_t seed);

} // namespace tessera::interpreter

#endif // TESSERA_INTERPRETER_RANDOMINPUT_H
