//===- RandomInput.cpp - Random inputs ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/RandomInput.h"

#include "tessera/Support/Philox.h"

#include <cstring>

namespace tessera::runtime {

void randomElements(const Argument &argument, int64_t argumentIndex, uint64_t seed, int64_t begin,
                    int64_t count, std::byte *at) {
  std::array<int64_t, 2> range = argument.range.value_or(std::array<int64_t, 2>{0, 2});
  auto put = [&](auto value) { std::memcpy(at, &value, sizeof(value)); };
  for (int64_t i = begin; i < begin + count; ++i, at += sizeOf(argument.dtype)) {
    uint32_t word =
        randomWord(seed, static_cast<uint64_t>(i), static_cast<uint64_t>(argumentIndex));
    double real = randomReal(word);
    auto whole = static_cast<uint64_t>(randomInteger(word, range[0], range[1]));
    switch (argument.dtype) {
    case DType::f64:
      put(real);
      break;
    case DType::f32:
      put(static_cast<float>(real));
      break;
    case DType::f16:
      put(floatToHalf(static_cast<float>(real)));
      break;
    case DType::bf16:
      put(floatToBfloat(static_cast<float>(real)));
      break;
    case DType::i64:
    case DType::index:
      put(whole);
      break;
    case DType::i32:
      put(static_cast<uint32_t>(whole));
      break;
    case DType::i16:
      put(static_cast<uint16_t>(whole));
      break;
    case DType::i8:
      put(static_cast<uint8_t>(whole));
      break;
    case DType::i1:
      put(static_cast<uint8_t>(word % 2));
      break;
    }
  }
}

HostTensor randomInput(const Argument &argument, int64_t argumentIndex, uint64_t seed) {
  HostTensor tensor = HostTensor::zeros(argument.dtype, argument.globalShape);
  randomElements(argument, argumentIndex, seed, 0, tensor.numElements(), tensor.data.data());
  return tensor;
}

} // namespace tessera::runtime
