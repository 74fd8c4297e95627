//===- TestKernels.c - Kernels of the tests, in C -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

// y = x + 1 over four floats per task; args: x, y.
EXPORT void add_one(void **args, int64_t begin, int64_t end) {
  const float *x = args[0];
  float *y = args[1];
  for (int64_t i = begin * 4; i < end * 4; ++i)
    y[i] = x[i] + 1.0f;
}

// sum += iv; args: iv (index), sum (f32).
EXPORT void add_index(void **args, int64_t begin, int64_t end) {
  *(float *)args[1] += (float)*(const int64_t *)args[0];
}

// flag = value < limit, value = value + 1; args: limit (index), value (index), flag (i1).
EXPORT void count_up(void **args, int64_t begin, int64_t end) {
  int64_t *value = args[1];
  *(uint8_t *)args[2] = *value < *(const int64_t *)args[0];
  *value += 1;
}

// out = constant * coordinate; args: constant (f32), coordinate (index), out (f32).
EXPORT void scale_coordinate(void **args, int64_t begin, int64_t end) {
  *(float *)args[2] = *(const float *)args[0] * (float)*(const int64_t *)args[1];
}
