//===- TestStubKernels.c - Emulated GPU kernels of the tests, in C --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Gpu/StubKernel.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT uint32_t tessera_stub_version = TESSERA_STUB_VERSION;
static const tessera_stub_api *api;
EXPORT void tessera_stub_bind(const tessera_stub_api *table) {
  api = table;
}

// y = 2 x, an element a thread; args: x, y.
EXPORT void twice(void *const *args, const tessera_stub_thread *t) {
  uint32_t i = t->block[0] * t->threads[0] + t->thread[0];
  ((float *)args[1])[i] = 2 * ((const float *)args[0])[i];
}

// Each block reverses its part of x by way of shared memory; args: x.
EXPORT void reverse(void *const *args, const tessera_stub_thread *t) {
  float *x = (float *)args[0] + t->block[1] * t->threads[0], *shared = t->shared;
  shared[t->thread[0]] = x[t->thread[0]];
  api->barrier(t);
  x[t->thread[0]] = shared[t->threads[0] - 1 - t->thread[0]];
}

// The sum over each group of `threads[0]` lanes, to all of them; args: x.
EXPORT void sum(void *const *args, const tessera_stub_thread *t) {
  uint32_t i = t->thread[1] * t->threads[0] + t->thread[0];
  uint32_t value = ((uint32_t *)args[0])[i];
  for (uint32_t step = t->threads[0] / 2; step; step /= 2)
    value += api->shuffle(t, ~0u, value, step, 31, TESSERA_STUB_SHUFFLE_XOR);
  ((uint32_t *)args[0])[i] = value;
}

// Lane i gets the value of the lane that the mode says; args: x, mode, operand, clamp.
EXPORT void move(void *const *args, const tessera_stub_thread *t) {
  const uint32_t *how = args[1];
  uint32_t *x = args[0];
  x[t->thread[0]] = api->shuffle(t, ~0u, x[t->thread[0]], how[1], how[2], how[0]);
}

// x = how far the stack is from where the ABI wants it; args: x.
EXPORT void stack(void *const *args, const tessera_stub_thread *t) {
  *(uint64_t *)args[0] = (uint64_t)__builtin_frame_address(0) % 16;
}

EXPORT void diverge(void *const *args, const tessera_stub_thread *t) {
  if (t->thread[0] != 5)
    api->barrier(t);
}

EXPORT void beyond(void *const *args, const tessera_stub_thread *t) {
  if (t->block[0] == 1)
    api->out_of_bounds(t, 0, 64, 4);
}
