//===- RandomInput.cpp - Random inputs that are the same everywhere -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Interpreter/RandomInput.h"

#include "tessera/Support/Philox.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera::interpreter;

Tensor tessera::interpreter::randomTensor(const Argument &argument, uint64_t index, uint64_t seed) {
  auto shaped = dyn_cast<RankedTensorType>(argument.type);
  Tensor result(getElementTypeOrSelf(argument.type),
                shaped ? shaped.getShape() : ArrayRef<int64_t>());
  ElementType type = result.element();
  for (int64_t i = 0; i < result.numElements(); ++i) {
    uint32_t word = randomWord(seed, i, index);
    if (type.isFloat()) {
      result.store(i, Scalar::ofFloat(roundTo(type, randomReal(word))));
      continue;
    }
    int64_t value = type.width == 1 ? word % 2 : randomInteger(word, argument.low, argument.high);
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
