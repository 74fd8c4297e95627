/*===- StubKernel.h - GPU kernels compiled for the CPU ----------*- C -*-===*\
|*
|* Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===--------------------------------------------------------------------===*|
|*
|* An image of architecture "stub" is a shared object with the same kernels as
|* the cubins, retargeted to the CPU: each is a function that does the work of
|* one GPU thread. A `tessera_stub_thread` and a table of functions, passed to
|* the object once, after dlopen, replace what a GPU provides to its threads:
|* indices, shared memory, barriers, shuffles, products of matrices.
|*
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_RUNTIME_GPU_STUBKERNEL_H
#define TESSERA_RUNTIME_GPU_STUBKERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this file: the object exports `uint32_t tessera_stub_version`. */
#define TESSERA_STUB_VERSION 8

/* The indices and memory of one thread. The kernel only reads them. */
typedef struct tessera_stub_thread {
  uint32_t thread[3];  /* threadIdx */
  uint32_t block[3];   /* blockIdx */
  uint32_t threads[3]; /* blockDim */
  uint32_t blocks[3];  /* gridDim */
  void *shared;        /* the block's shared memory, 1024-byte aligned */
} tessera_stub_thread;

/* How a shuffle chooses its source lane, as in `shfl.sync`; or `vote.sync.ballot` of values that
   are not 0; or `bar.warp.sync`, which orders the memory accesses of the lanes. */
typedef enum tessera_stub_shuffle_mode {
  TESSERA_STUB_SHUFFLE_XOR = 0,
  TESSERA_STUB_SHUFFLE_UP = 1,
  TESSERA_STUB_SHUFFLE_DOWN = 2,
  TESSERA_STUB_SHUFFLE_INDEX = 3,
  TESSERA_STUB_BALLOT = 4,
  TESSERA_STUB_WARP_BARRIER = 5
} tessera_stub_shuffle_mode;

/* The type of the elements that a matrix product multiplies. */
typedef enum tessera_stub_matrix_type {
  TESSERA_STUB_MATRIX_F16 = 0,
  TESSERA_STUB_MATRIX_BF16 = 1,
  TESSERA_STUB_MATRIX_TF32 = 2
} tessera_stub_matrix_type;

/* The form of a product of a warpgroup: bits. */
typedef enum tessera_stub_product_form {
  TESSERA_STUB_PRODUCT_BF16 = 1,         /* the type of A and B; else f16 */
  TESSERA_STUB_PRODUCT_ACCUMULATES = 2,  /* scale-d */
  TESSERA_STUB_PRODUCT_TRANSPOSED_A = 4, /* imm-trans-a */
  TESSERA_STUB_PRODUCT_TRANSPOSED_B = 8  /* imm-trans-b */
} tessera_stub_product_form;

/* The functions of the emulator. `thread` is the kernel's argument. */
typedef struct tessera_stub_api {
  uint32_t version;
  /* Returns after every thread of the block has called it. */
  void (*barrier)(const tessera_stub_thread *thread);
  /* shfl.sync.b32 over the lanes of `members`; `operand` and `clamp` as in PTX. A ballot and a
     barrier of the warp ignore them. */
  uint32_t (*shuffle)(const tessera_stub_thread *thread, uint32_t members, uint32_t value,
                      uint32_t operand, uint32_t clamp, uint32_t mode);
  /* ldmatrix.sync.aligned.m8n8.b16, of 1, 2 or 4 matrices (`count`), with .trans if `transposed`
     is not 0: `row` of lane l is the address of row l % 8 of matrix l / 8 in shared memory; each
     lane gets `count` words. Called by whole warps. */
  void (*load_matrices)(const tessera_stub_thread *thread, uint32_t count, uint32_t transposed,
                        const void *row, uint32_t *result);
  /* mma.sync.aligned.m16n8k16.row.col.f32.T.T.f32, where T is bf16 or f16, or m16n8k8 of tf32
     (tessera_stub_matrix_type): d = a b + c, in the fragments that the PTX manual defines: 4 words
     of a, 2 of b, 4 floats of c and d. Called by whole warps. */
  void (*multiply_matrices)(const tessera_stub_thread *thread, uint32_t type, const uint32_t *a,
                            const uint32_t *b, const float *c, float *d);
  /* ex2.approx.f32, with .ftz if `flush` is not 0, and tanh.approx.f32, with errors as large as
     those of a GPU may be. */
  float (*exp2_approx)(float x, uint32_t flush);
  float (*tanh_approx)(float x);
  /* cp.async of `bytes` bytes to shared memory, of which `source_bytes` are read and the others
     zero; the end of a group of them; returns after all groups but the last `groups` are complete.
     Until then the bytes are undefined. */
  void (*copy_async)(const tessera_stub_thread *thread, void *to, const void *from, uint32_t bytes,
                     uint32_t source_bytes);
  void (*commit_copies)(const tessera_stub_thread *thread);
  void (*wait_copies)(const tessera_stub_thread *thread, uint32_t groups);
  /* Reports an access of `bytes` bytes at `offset` from the start of argument `argument` that is
     beyond its end. Does not return. */
  void (*out_of_bounds)(const tessera_stub_thread *thread, uint32_t argument, int64_t offset,
                        int64_t bytes);
  /* Reports an access of `bytes` bytes at `address`, which is not a multiple of `alignment`. Does
     not return. */
  void (*misaligned)(const tessera_stub_thread *thread, const void *address, int64_t bytes,
                     int64_t alignment);
  /* Precedes each load and store of `bytes` bytes (`writes`: 0 or 1) in code that reports accesses,
     and the read of an asynchronous copy's source. `resolution` is the least size of an element
     that the kernel accesses. Does not return if the access races with another thread's. */
  void (*access)(const tessera_stub_thread *thread, const void *address, int64_t bytes,
                 uint32_t resolution, uint32_t writes);
  /* wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T, N = `columns`, of the form `form`. `a`: four
     words of A, or null: `left` describes A in shared memory; `right` describes B. `sums`: N / 2
     floats of D, which the product adds to if it accumulates, and which become names of its sums:
     NaN that only `multiply_warpgroup` and `wait_products` know. Called by whole warps. */
  void (*multiply_warpgroup)(const tessera_stub_thread *thread, uint32_t columns, uint32_t form,
                             const uint32_t *a, uint64_t left, uint64_t right, float *sums);
  /* wgmma.fence; the end of a group of products; returns after all groups but the last `groups` are
     complete, and replaces names among `count` floats by the sums. */
  void (*fence_products)(const tessera_stub_thread *thread);
  void (*commit_products)(const tessera_stub_thread *thread);
  void (*wait_products)(const tessera_stub_thread *thread, uint32_t groups, uint32_t count,
                        float *values);
  /* fence.proxy.async: products read what the thread has written to shared memory. */
  void (*fence_proxy)(const tessera_stub_thread *thread);
} tessera_stub_api;

/* Exported as `tessera_stub_bind`; the table must live as long as the object. */
typedef void (*tessera_stub_bind_fn)(const tessera_stub_api *api);

/* A kernel: the pointers of GpuLaunch::arguments in order. */
typedef void (*tessera_stub_kernel)(void *const *arguments, const tessera_stub_thread *thread);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_RUNTIME_GPU_STUBKERNEL_H */
