//===- RandomInput.cpp - Random inputs ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/RandomInput.h"

#include "tessera/Support/Philox.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace tessera::runtime {

/// Elements that justify a thread.
static constexpr int64_t kSmallestPart = 1 << 20;

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
  // Elements are independent of each other. 2^31 of them take 40 s on one core.
  int64_t count = tensor.numElements();
  int64_t parts = std::clamp<int64_t>(count / kSmallestPart, 1,
                                      std::max(1u, std::thread::hardware_concurrency()));
  auto fill = [&](int64_t part) {
    int64_t begin = count / parts * part, end = part + 1 == parts ? count : begin + count / parts;
    randomElements(argument, argumentIndex, seed, begin, end - begin,
                   tensor.data.data() + begin * sizeOf(argument.dtype));
  };
  std::vector<std::thread> others;
  for (int64_t part = 1; part < parts; ++part)
    others.emplace_back(fill, part);
  fill(0);
  for (std::thread &other : others)
    other.join();
  return tensor;
}

} // namespace tessera::runtime
