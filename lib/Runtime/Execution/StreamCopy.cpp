//===- StreamCopy.cpp - Copies that bypass the cache ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamCopy.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tessera::runtime {

#ifdef __SSE2__

void streamCopy(std::byte *to, const std::byte *from, size_t bytes) {
  constexpr size_t line = 64; // whole lines only: the processor combines the stores of a line
  size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % line);
  std::memcpy(to, from, head);
  size_t done = head;
  for (; done + line <= bytes; done += line)
    for (size_t i = 0; i < line; i += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i *>(to + done + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + done + i)));
  std::memcpy(to + done, from + done, bytes - done);
}

void streamFence() {
  _mm_sfence();
}

#else

void streamCopy(std::byte *to, const std::byte *from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

void streamFence() {}

#endif

} // namespace tessera::runtime
