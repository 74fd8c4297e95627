//===- Matrices.cpp - Emulated matrix instructions ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matrices.h"

#include <cmath>
#include <cstring>
#include <utility>

namespace tessera::runtime {

float widenBf16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float result;
  std::memcpy(&result, &wide, sizeof(result));
  return result;
}

float widenF16(uint16_t bits) {
  int exponent = bits >> 10 & 31;
  auto fraction = static_cast<float>(bits & 1023);
  float size = exponent == 31  ? (bits & 1023 ? NAN : INFINITY)
               : exponent == 0 ? std::ldexp(fraction, -24)
                               : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

namespace {

constexpr uint32_t kLanes = 32, kRows = 16, kColumns = 8, kDepth = 16;

void load(MatrixOperands *const *lanes) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t matrix = 0; matrix < lanes[lane]->count; ++matrix) {
      uint16_t halves[2];
      for (uint32_t half = 0; half < 2; ++half) {
        uint32_t row = lane / 4, column = lane % 4 * 2 + half;
        if (lanes[lane]->transposed)
          std::swap(row, column);
        const void *from = lanes[8 * matrix + row]->row;
        std::memcpy(&halves[half], static_cast<const uint16_t *>(from) + column, sizeof(uint16_t));
      }
      std::memcpy(&lanes[lane]->loaded[matrix], halves, sizeof(halves));
    }
}

/// d = a b + c of elements that have been taken from the words of a and b.
template <uint32_t depth>
void multiply(MatrixOperands *const *lanes, const float (&a)[kRows][depth],
              const float (&b)[depth][kColumns]) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      float sum = lanes[lane]->c[i];
      for (uint32_t k = 0; k < depth; ++k)
        sum += a[row][k] * b[k][column];
      lanes[lane]->d[i] = sum;
    }
}

/// A tf32 in a word, of which the 13 lowest bits are not read.
float fromTf32(uint32_t bits) {
  bits &= ~0x1fffu;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

void multiplyTf32(MatrixOperands *const *lanes) {
  constexpr uint32_t kWordDepth = 8;
  float a[kRows][kWordDepth], b[kWordDepth][kColumns];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t group = lane / 4, quad = lane % 4;
    for (uint32_t word = 0; word < 4; ++word)
      a[group + 8 * (word % 2)][quad + 4 * (word / 2)] = fromTf32(lanes[lane]->a[word]);
    for (uint32_t word = 0; word < 2; ++word)
      b[quad + 4 * word][group] = fromTf32(lanes[lane]->b[word]);
  }
  multiply(lanes, a, b);
}

void multiply(MatrixOperands *const *lanes, float (*widen)(uint16_t)) {
  float a[kRows][kDepth], b[kDepth][kColumns];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t group = lane / 4, quad = lane % 4;
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint32_t word = 0; word < 4; ++word)
        a[group + 8 * (word % 2)][2 * quad + half + 8 * (word / 2)] =
            widen(static_cast<uint16_t>(lanes[lane]->a[word] >> (16 * half)));
      for (uint32_t word = 0; word < 2; ++word)
        b[2 * quad + half + 8 * word][group] =
            widen(static_cast<uint16_t>(lanes[lane]->b[word] >> (16 * half)));
    }
  }
  multiply(lanes, a, b);
}

} // namespace

void execute(MatrixOperands *const *lanes) {
  switch (lanes[0]->instruction) {
  case MatrixInstruction::load:
    return load(lanes);
  case MatrixInstruction::multiplyBf16:
    return multiply(lanes, widenBf16);
  case MatrixInstruction::multiplyF16:
    return multiply(lanes, widenF16);
  case MatrixInstruction::multiplyTf32:
    return multiplyTf32(lanes);
  }
}

} // namespace tessera::runtime
