//===- RandomInput.cpp - Random inputs ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/RandomInput.h"

#include <cstring>

namespace tessera::runtime {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53) * counter[0], b = uint64_t(0xCD9E8D57) * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

uint32_t randomWord(uint64_t seed, uint64_t element, uint32_t argument) {
  return philox4x32(
      {static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32), argument, 0},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)})[0];
}

HostTensor randomInput(const Argument &argument, int64_t argumentIndex, uint64_t seed) {
  HostTensor tensor = HostTensor::zeros(argument.dtype, argument.globalShape);
  std::array<int64_t, 2> range = argument.range.value_or(std::array<int64_t, 2>{0, 2});
  uint64_t width = static_cast<uint64_t>(range[1]) - static_cast<uint64_t>(range[0]);
  std::byte *at = tensor.data.data();
  auto put = [&](auto value) { std::memcpy(at, &value, sizeof(value)); };
  for (int64_t i = 0, n = tensor.numElements(); i < n; ++i, at += sizeOf(argument.dtype)) {
    uint32_t word =
        randomWord(seed, static_cast<uint64_t>(i), static_cast<uint32_t>(argumentIndex));
    double real = static_cast<double>(word) / 0x1p31 - 1.0;
    uint64_t whole = static_cast<uint64_t>(range[0]) + word % width;
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
  return tensor;
}

} // namespace tessera::runtime
