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

// y = 2 x, one element per thread; args: x, y.
EXPORT void twice(void *const *args, const tessera_stub_thread *t) {
  uint32_t i = t->block[0] * t->threads[0] + t->thread[0];
  ((float *)args[1])[i] = 2 * ((const float *)args[0])[i];
}

// Each block reverses its part of x through shared memory; args: x.
EXPORT void reverse(void *const *args, const tessera_stub_thread *t) {
  float *x = (float *)args[0] + t->block[1] * t->threads[0], *shared = t->shared;
  shared[t->thread[0]] = x[t->thread[0]];
  api->barrier(t);
  x[t->thread[0]] = shared[t->threads[0] - 1 - t->thread[0]];
}

// The sum over each group of `threads[0]` lanes, in all of them; args: x.
EXPORT void sum(void *const *args, const tessera_stub_thread *t) {
  uint32_t i = t->thread[1] * t->threads[0] + t->thread[0];
  uint32_t value = ((uint32_t *)args[0])[i];
  for (uint32_t step = t->threads[0] / 2; step; step /= 2)
    value += api->shuffle(t, ~0u, value, step, 31, TESSERA_STUB_SHUFFLE_XOR);
  ((uint32_t *)args[0])[i] = value;
}

// Lane i gets the value of the lane given by the mode; args: x, mode, operand, clamp.
EXPORT void move(void *const *args, const tessera_stub_thread *t) {
  const uint32_t *how = args[1];
  uint32_t *x = args[0];
  x[t->thread[0]] = api->shuffle(t, ~0u, x[t->thread[0]], how[1], how[2], how[0]);
}

// d = a b + c of 16x16, 16x8 and 16x8 matrices by one warp; lane and word of each element are those
// of the PTX manual. args: a, b (bf16, or f16), c, d (float), how: is_bf16, fault. Faults: 1
// exchanges words 1 and 2 of a, 2 the halves of b's words, 3 the lanes of c within a pair.
EXPORT void product(void *const *args, const tessera_stub_thread *t) {
  const uint16_t *a = args[0], *b = args[1];
  const float *c = args[2];
  const uint32_t *how = args[4];
  uint32_t lane = t->thread[0], group = lane / 4, quad = lane % 4, fault = how[1];
  uint32_t aWords[4], bWords[2];
  float cs[4], ds[4];
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t row = group + (i % 2) * 8, k = quad * 2 + (i / 2) * 8;
    aWords[i] = a[row * 16 + k] | (uint32_t)a[row * 16 + k + 1] << 16;
    uint32_t from = fault == 3 ? lane ^ 1 : lane;
    cs[i] = c[(from / 4 + (i / 2) * 8) * 8 + from % 4 * 2 + i % 2];
  }
  for (uint32_t i = 0; i < 2; ++i) {
    uint32_t k = quad * 2 + i * 8;
    uint32_t low = b[k * 8 + group], high = b[(k + 1) * 8 + group];
    bWords[i] = fault == 2 ? high | low << 16 : low | high << 16;
  }
  if (fault == 1) {
    uint32_t word = aWords[1];
    aWords[1] = aWords[2];
    aWords[2] = word;
  }
  api->multiply_matrices(t, how[0], aWords, bWords, cs, ds);
  for (uint32_t i = 0; i < 4; ++i)
    ((float *)args[3])[(group + (i / 2) * 8) * 8 + quad * 2 + i % 2] = ds[i];
}

// d = a b + c of 16x8, 8x8 and 16x8 matrices of tf32 by one warp. args: a, b, c, d (float), how:
// fault. Faults: 1 exchanges words 1 and 2 of a, 2 the words of b, 3 takes column t of a for column
// t ^ 1.
EXPORT void product_tf32(void *const *args, const tessera_stub_thread *t) {
  const uint32_t *a = args[0], *b = args[1];
  const float *c = args[2];
  uint32_t lane = t->thread[0], group = lane / 4, quad = lane % 4,
           fault = *(const uint32_t *)args[4];
  uint32_t aWords[4], bWords[2];
  float cs[4], ds[4];
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t from = fault == 1 && (i == 1 || i == 2) ? 3 - i : i;
    uint32_t column = fault == 3 ? quad ^ 1 : quad;
    aWords[i] = a[(group + from % 2 * 8) * 8 + column + from / 2 * 4];
    cs[i] = c[(group + i / 2 * 8) * 8 + quad * 2 + i % 2];
  }
  for (uint32_t i = 0; i < 2; ++i)
    bWords[i] = b[(quad + (fault == 2 ? 1 - i : i) * 4) * 8 + group];
  api->multiply_matrices(t, TESSERA_STUB_MATRIX_TF32, aWords, bWords, cs, ds);
  for (uint32_t i = 0; i < 4; ++i)
    ((float *)args[3])[(group + i / 2 * 8) * 8 + quad * 2 + i % 2] = ds[i];
}

// Loads four 8x8 matrices, consecutive in shared memory, into the lanes; args: x (32x8 halves),
// words (4 per lane), how: transposed.
EXPORT void matrices(void *const *args, const tessera_stub_thread *t) {
  uint16_t *shared = t->shared;
  for (uint32_t i = 0; i < 8; ++i)
    shared[t->thread[0] * 8 + i] = ((const uint16_t *)args[0])[t->thread[0] * 8 + i];
  api->barrier(t);
  api->load_matrices(t, 4, *(const uint32_t *)args[2], shared + t->thread[0] * 8,
                     (uint32_t *)args[1] + 4 * t->thread[0]);
}

// The place of element (row, k) of a matrix of rows of 16 halves, swizzled by 32 bytes.
static uint32_t swizzled(uint32_t row, uint32_t k) {
  uint32_t byte = row * 32 + k * 2;
  return (byte ^ (byte >> 7 & 1) << 4) / 2;
}

// d = a b^T + 1 of 64x16, 16x16 and 64x16 matrices (bf16, f32) by a warpgroup. args: a, b, d, how:
// fault. Faults: 1 leaves out the fence of registers, 2 the wait, 3 the fence of the proxies; 4
// another warp overwrites b before the wait, 5 also without a barrier in between; 6 warp 2 begins b
// 16 bytes late; 7 warp 3 leaves before the product; 8 b is beyond shared memory; 9 does not ask
// for the sums; 10 the product begins before the barrier.
EXPORT void warpgroup(void *const *args, const tessera_stub_thread *t) {
  const uint16_t *a = args[0], *b = args[1];
  float *d = args[2], sums[8];
  uint32_t fault = *(const uint32_t *)args[3], self = t->thread[0], warp = self / 32;
  uint16_t *shared = t->shared, *second = shared + 64 * 16;
  for (uint32_t i = self; i < 80 * 16; i += 128) {
    uint32_t row = i / 16, k = i % 16;
    uint16_t *to = row < 64 ? shared + swizzled(row, k) : second + swizzled(row - 64, k);
    api->access(t, to, 2, 2, 1);
    *to = row < 64 ? a[i] : b[i - 64 * 16];
  }
  if (fault != 3)
    api->fence_proxy(t);
  if (fault != 10)
    api->barrier(t);
  if (fault == 7 && warp == 3)
    return;
  for (uint32_t i = 0; i < 8; ++i)
    sums[i] = 1;
  uint64_t fields = (uint64_t)1 << 16 | (uint64_t)(256 >> 4) << 32 | (uint64_t)3 << 62;
  uint64_t base = (uintptr_t)shared & 0x3ffff, from = fields | base >> 4;
  uint64_t to = from + (64 * 32 >> 4) + (fault == 6 && warp == 2) + (fault == 8 ? 4096 >> 4 : 0);
  if (fault != 1)
    api->fence_products(t);
  api->multiply_warpgroup(t, 16, TESSERA_STUB_PRODUCT_BF16 | TESSERA_STUB_PRODUCT_ACCUMULATES, 0,
                          from, to, sums);
  api->commit_products(t);
  if (fault == 4)
    api->barrier(t);
  if ((fault == 4 || fault == 5) && warp == 1) {
    uint16_t *over = second + (self - 32) * 8;
    api->access(t, over, 2, 2, 1);
    *over = 0x4000;
  }
  if (fault == 4)
    api->barrier(t);
  if (fault != 2)
    api->wait_products(t, 0, fault == 9 ? 0 : 8, sums);
  for (uint32_t i = 0; i < 8; ++i)
    d[(warp * 16 + self % 32 / 4 + i / 2 % 2 * 8) * 16 + i / 4 * 8 + self % 4 * 2 + i % 2] =
        sums[i];
}

// Lane 3 leaves before the product of its warp.
EXPORT void alone(void *const *args, const tessera_stub_thread *t) {
  uint32_t words[4] = {0};
  float sums[4] = {0};
  if (t->thread[0] != 3)
    api->multiply_matrices(t, 1, words, words, sums, sums);
}

// Each thread copies 4 words of x to shared memory in each of two steps, the second while the first
// is read; y = the words that the next thread of the block copied. args: x (2 steps of 4 words a
// thread), y (the same), how: fault. Faults: 1 and 2 leave out the wait of the first and second
// step, 3 the barrier behind it, 4 writes the second step over the first, which is being read; with
// 5 only 2 words are read.
EXPORT void copies(void *const *args, const tessera_stub_thread *t) {
  const uint32_t *x = args[0];
  uint32_t *y = args[1], fault = *(const uint32_t *)args[2], *shared = t->shared;
  uint32_t count = t->threads[0], self = t->thread[0], next = (self + 1) % count;
  for (uint32_t step = 0; step < 2; ++step) {
    uint32_t place = fault == 4 ? 0 : step;
    api->copy_async(t, shared + 4 * (place * count + self), x + 4 * (step * count + self), 16,
                    fault == 5 ? 8 : 16);
    api->commit_copies(t);
  }
  for (uint32_t step = 0; step < 2; ++step) {
    if (fault != step + 1)
      api->wait_copies(t, 1 - step);
    if (fault != 3)
      api->barrier(t);
    uint32_t place = fault == 4 ? 0 : step;
    for (uint32_t i = 0; i < 4; ++i)
      y[4 * (step * count + self) + i] = shared[4 * (place * count + next) + i];
  }
}

// y = 2^x, y = 2^x with zeros for subnormal numbers, tanh(x), each with an error; args: x, y, how:
// function.
EXPORT void approximate(void *const *args, const tessera_stub_thread *t) {
  uint32_t i = t->block[0] * t->threads[0] + t->thread[0], how = *(const uint32_t *)args[2];
  float x = ((const float *)args[0])[i];
  ((float *)args[1])[i] = how == 2 ? api->tanh_approx(x) : api->exp2_approx(x, how);
}

// x = misalignment of the stack relative to the ABI; args: x.
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

// y[i] = x[i - 1] within a block, y[0] = x[0], through shared memory; args: x, y, how: fault.
// Faults: 1 leaves out the barrier between write and read; 2 reads the value of the previous block
// from y.
EXPORT void shift(void *const *args, const tessera_stub_thread *t) {
  uint32_t self = t->thread[0], fault = *(const uint32_t *)args[2];
  uint32_t i = t->block[0] * t->threads[0] + self;
  float *shared = t->shared, *y = args[1];
  shared[self] = ((const float *)args[0])[i];
  if (fault != 1)
    api->barrier(t);
  y[i] = shared[self > 0 ? self - 1 : 0];
  if (fault == 2 && i >= t->threads[0])
    y[i] += y[i - t->threads[0]];
}

// Writes over shared memory that other warps read; args: x, y, how: fault 1 leaves out the barrier
// between the read and the write.
EXPORT void reuse(void *const *args, const tessera_stub_thread *t) {
  uint32_t self = t->thread[0], next = (self + 1) % t->threads[0];
  float *shared = t->shared, *y = args[1];
  shared[self] = ((const float *)args[0])[self];
  api->barrier(t);
  float first = shared[next];
  if (*(const uint32_t *)args[2] != 1)
    api->barrier(t);
  shared[self] = -1;
  y[self] = first;
}

// args: none; `words` at an address that is not a multiple of 16.
EXPORT void askew(void *const *args, const tessera_stub_thread *t) {
  (void)args;
  if (t->thread[0] == 2)
    api->misaligned(t, (const char *)t->shared + 20, 16, 16);
}

// A copy of 16 bytes and rows of a matrix at wrong addresses; args: x, how: fault.
EXPORT void askew_copies(void *const *args, const tessera_stub_thread *t) {
  uint32_t fault = *(const uint32_t *)args[1], words[4];
  char *shared = t->shared;
  if (fault < 2)
    api->copy_async(t, shared + 16 * t->thread[0] + 4 * (fault == 0),
                    (const char *)args[0] + 4 * (fault == 1), 16, 16);
  else
    api->load_matrices(t, 1, 0, shared + 20 * t->thread[0], words);
}

static void put(const tessera_stub_thread *t, uint32_t *at, uint32_t value) {
  api->access(t, at, sizeof(*at), sizeof(*at), 1);
  *at = value;
}

static uint32_t get(const tessera_stub_thread *t, const uint32_t *at) {
  api->access(t, at, sizeof(*at), sizeof(*at), 0);
  return *at;
}

// Reports its accesses. args: x, y (in, out: an element for each thread), one word, how: fault.
// Without a fault each block reverses its part of x through shared memory, and again.
EXPORT void races(void *const *args, const tessera_stub_thread *t) {
  uint32_t self = t->thread[0], last = t->threads[0] - 1, fault = *(const uint32_t *)args[3];
  uint32_t i = t->block[0] * t->threads[0] + self;
  uint32_t *x = args[0], *y = args[1], *word = args[2], *shared = t->shared;
  put(t, shared + self, get(t, x + i));
  if (fault == 1) // a value of each thread in a word of all threads
    put(t, word, self);
  if (fault == 2) // equal values
    put(t, word, 7);
  if (fault == 3) // a shuffle orders lanes, not their memory
    api->shuffle(t, ~0u, 0, 1, 31, TESSERA_STUB_SHUFFLE_XOR);
  if (fault != 3 && fault != 4)
    api->barrier(t);
  uint32_t value = get(t, shared + last - self);
  if (fault != 5) // a write before all threads have read
    api->barrier(t);
  put(t, shared + self, value);
  api->barrier(t);
  put(t, y + i, get(t, shared + last - self));
  api->barrier(t);
  if (fault == 6 && t->block[0] > 0) // of another block, which has ended
    put(t, y + i, get(t, y + i - t->threads[0]));
  if (fault == 7 && t->block[0] > 0 && self == 0) // over what another block has read
    put(t, x + i - 1, 0);
  if (fault == 8 && self == 0) // ordered by the barriers
    put(t, y + i, get(t, y + i + 1));
  if (fault == 9) // the operand is not stated to be written
    put(t, args[3], fault);
}

// An asynchronous copy of a word of each thread to shared memory. args: x, y, how: fault. Faults: 1
// reads the thread's own word before the wait, 2 another thread's word after the wait without a
// barrier; 3 copies over a word that another thread reads.
EXPORT void races_of_copies(void *const *args, const tessera_stub_thread *t) {
  uint32_t self = t->thread[0], next = (self + 1) % t->threads[0];
  uint32_t *x = args[0], *y = args[1], *shared = t->shared, fault = *(const uint32_t *)args[2];
  for (uint32_t round = 0; round < 2; ++round) {
    api->access(t, x + self, 4, 4, 0);
    api->copy_async(t, shared + self, x + self, 4, 4);
    api->commit_copies(t);
    if (fault == 1)
      get(t, shared + self);
    api->wait_copies(t, 0);
    if (fault != 2)
      api->barrier(t);
    put(t, y + self, get(t, shared + next));
    if (fault != 3)
      api->barrier(t);
  }
}

// Words of shared memory that lanes exchange, with barriers of their warp; y gets the ballot of odd
// words. args: x, y, how: fault. Faults: 1 reads before a barrier, 2 writes before one, 3 reads the
// word of a lane of another warp, 4 some lanes vote while others wait.
EXPORT void races_in_warps(void *const *args, const tessera_stub_thread *t) {
  uint32_t self = t->thread[0], fault = *(const uint32_t *)args[2];
  uint32_t next = fault == 3 ? (self + 32) % t->threads[0] : self / 32 * 32 + (self + 1) % 32;
  uint32_t *x = args[0], *y = args[1], *shared = t->shared, value = x[self];
  for (uint32_t round = 0; round < 3; ++round) {
    put(t, shared + self, value);
    if (fault != 1)
      api->shuffle(t, ~0u, 0, 0, 0,
                   fault == 4 && self % 32 > 20 ? TESSERA_STUB_BALLOT : TESSERA_STUB_WARP_BARRIER);
    value = get(t, shared + next);
    if (fault != 2)
      api->shuffle(t, ~0u, 0, 0, 0, TESSERA_STUB_WARP_BARRIER);
  }
  put(t, y + self, api->shuffle(t, ~0u, value % 2, 0, 0, TESSERA_STUB_BALLOT));
}
