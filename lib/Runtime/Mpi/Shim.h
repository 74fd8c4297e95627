/*===- Shim.h - What the runtime calls of an MPI library --------*- C++ -*-===*\
|*
|* Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/* Open MPI and MPICH have different types behind the same names, so the runtime
 * includes neither's mpi.h. Shim.c is compiled once against each, as a shared
 * library that exports this table. */

#ifndef TESSERA_LIB_RUNTIME_MPI_SHIM_H
#define TESSERA_LIB_RUNTIME_MPI_SHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this table; the runtime refuses another. */
#define TESSERA_MPI_SHIM_VERSION 1

/* Functions return 0 or an error code, which `describe` puts into words. Communicators and requests
 * are the library's, in 8 bytes. */
typedef struct TesseraMpiShim {
  uint32_t version;
  const char *library; /* "Open MPI", "MPICH" */
  /* Initializes MPI unless somebody else has. `threads`: 0 the library knows of one thread, 1 it is
   * called from the thread that initialized it, which this is, 2 from any, one at a time. */
  int (*start)(int *rank, int *size, int *threads, int *startedHere, uint64_t *world);
  /* Between ascending ranks of the world; called by all of them. */
  int (*makeCommunicator)(const int *ranks, int count, uint64_t *communicator);
  int (*send)(uint64_t communicator, int peer, const void *data, int bytes, uint64_t *request);
  int (*receive)(uint64_t communicator, int peer, void *data, int bytes, uint64_t *request);
  /* `bytes` is what a receive got. A request that is done is no more. */
  int (*test)(uint64_t *request, int *done, int *bytes);
  /* Takes back a request that nothing has met; returns at once. */
  void (*cancel)(uint64_t *request);
  /* Collective; what nobody has finalized already. */
  int (*finalize)(void);
  /* Ends all processes of the job. */
  void (*abort)(int code);
  /* A line that ends with 0. */
  void (*describe)(int code, char *text, int size);
} TesseraMpiShim;

/* The only symbol of a shim. */
const TesseraMpiShim *tesseraMpiShim(void);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_LIB_RUNTIME_MPI_SHIM_H */
