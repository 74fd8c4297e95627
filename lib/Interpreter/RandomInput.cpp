//===- RandomInput.cpp - Random inputs that are the same everywhere -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Interpreter/RandomInput.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera::interpreter;

std::array<uint32_t, 4> tessera::interpreter::philox4x32(std::array<uint32_t, 4> counter,
                                                         std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53) * counter[0];
    uint64_t b = uint64_t(0xCD9E8D57) * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9; // golden ratio
    key[1] += 0xBB67AE85; // sqrt(3) - 1
  }
  return counter;
}

static uint32_t firstWord(uint64_t element, uint64_t argument, uint64_t seed) {
  auto low = [](uint64_t word) { return static_cast<uint32_t>(word); };
  auto high = [](uint64_t word) { return static_cast<uint32_t>(word >> 32); };
  return philox4x32({low(element), high(element), low(argument), high(argument)},
                    {low(seed), high(seed)})[0];
}

Tensor tessera::interpreter::randomTensor(const Argument &argument, uint64_t index, uint64_t seed) {
  auto shaped = dyn_cast<RankedTensorType>(argument.type);
  Tensor result(getElementTypeOrSelf(argument.type),
                shaped ? shaped.getShape() : ArrayRef<int64_t>());
  ElementType type = result.element();
  for (int64_t i = 0; i < result.numElements(); ++i) {
    uint32_t word = firstWord(i, index, seed);
    if (type.isFloat()) {
      result.store(i, Scalar::ofFloat(roundTo(type, word / 2147483648.0 - 1.0)));
      continue;
    }
    int64_t value =
        type.width == 1
            ? word % 2
            : argument.low +
                  static_cast<int64_t>(word % static_cast<uint64_t>(argument.high - argument.low));
    result.store(i, Scalar::ofInt(value));
  }
  return result;
}

SmallVector<Tensor> tessera::interpreter::randomInputs(ArrayRef<Argument> arguments,
                                                       uint64_t seed) {
  SmallVector<Tensor> result;
  for (auto [index, argument] : llvm::enumerate(arguments))
    result.push_back(randomTensor(argument, index, seed));
  return result;
}
