/*===- Shim.c - An MPI library behind a table of functions ----------------===*\
|*
|* Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "Shim.h"

#include <mpi.h>
#include <string.h>
#include <time.h>

#define MUST(call)                                                                                 \
  do {                                                                                             \
    int codeOfCall = (call);                                                                       \
    if (codeOfCall != MPI_SUCCESS)                                                                 \
      return codeOfCall;                                                                           \
  } while (0)

/* Messages of one pair on one communicator keep their order, so one tag serves them all. */
enum { kTag = 7 };

_Static_assert(sizeof(MPI_Comm) <= 8 && sizeof(MPI_Request) <= 8, "handles fit into 8 bytes");

/* A copy of MPI_COMM_WORLD: messages of others cannot meet ours. */
static MPI_Comm ourWorld = MPI_COMM_NULL;

static uint64_t fromComm(MPI_Comm comm) {
  uint64_t bits = 0;
  memcpy(&bits, &comm, sizeof(comm));
  return bits;
}
static MPI_Comm toComm(uint64_t bits) {
  MPI_Comm comm;
  memcpy(&comm, &bits, sizeof(comm));
  return comm;
}
static uint64_t fromRequest(MPI_Request request) {
  uint64_t bits = 0;
  memcpy(&bits, &request, sizeof(request));
  return bits;
}
static MPI_Request toRequest(uint64_t bits) {
  MPI_Request request;
  memcpy(&request, &bits, sizeof(request));
  return request;
}

static int start(int *rank, int *size, int *threads, int *startedHere, uint64_t *world) {
  int initialized = 0, finalized = 0, provided = MPI_THREAD_SINGLE, main = 0;
  MUST(MPI_Finalized(&finalized));
  if (finalized)
    return MPI_ERR_OTHER;
  MUST(MPI_Initialized(&initialized));
  *startedHere = !initialized;
  if (!initialized) {
    MUST(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    /* MPICH asks the handler of the world about errors of requests. */
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  }
  MUST(MPI_Query_thread(&provided));
  MUST(MPI_Is_thread_main(&main));
  *threads = provided >= MPI_THREAD_SERIALIZED ? 2 : main;
  if (ourWorld == MPI_COMM_NULL) {
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &ourWorld));
    MUST(MPI_Comm_set_errhandler(ourWorld, MPI_ERRORS_RETURN));
  }
  MUST(MPI_Comm_rank(ourWorld, rank));
  MUST(MPI_Comm_size(ourWorld, size));
  *world = fromComm(ourWorld);
  return 0;
}

static int makeCommunicator(const int *ranks, int count, uint64_t *communicator) {
  MPI_Group all, some;
  MPI_Comm made = MPI_COMM_NULL;
  MUST(MPI_Comm_group(ourWorld, &all));
  MUST(MPI_Group_incl(all, count, ranks, &some));
  int code = MPI_Comm_create_group(ourWorld, some, kTag, &made);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  MUST(code);
  MUST(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
  *communicator = fromComm(made);
  return 0;
}

static int sendBytes(uint64_t communicator, int peer, const void *data, int bytes,
                     uint64_t *request) {
  MPI_Request made;
  MUST(MPI_Isend(data, bytes, MPI_BYTE, peer, kTag, toComm(communicator), &made));
  *request = fromRequest(made);
  return 0;
}

static int receiveBytes(uint64_t communicator, int peer, void *data, int bytes, uint64_t *request) {
  MPI_Request made;
  MUST(MPI_Irecv(data, bytes, MPI_BYTE, peer, kTag, toComm(communicator), &made));
  *request = fromRequest(made);
  return 0;
}

static int test(uint64_t *request, int *done, int *bytes) {
  MPI_Request at = toRequest(*request);
  MPI_Status status;
  MUST(MPI_Test(&at, done, &status));
  *request = fromRequest(at);
  if (*done)
    MUST(MPI_Get_count(&status, MPI_BYTE, bytes));
  return 0;
}

static void cancel(uint64_t *request) {
  MPI_Request at = toRequest(*request);
  if (at == MPI_REQUEST_NULL)
    return;
  MPI_Cancel(&at);
  MPI_Request_free(&at);
}

static int finalize(void) {
  int finalized = 0;
  MUST(MPI_Finalized(&finalized));
  if (finalized)
    return 0;
  /* MPI_Finalize enters a fence of the launcher's server. Open MPI 4's mpirun deadlocks when it has
   * to end a job with a rank in that fence, so a rank enters only when all others are about to. */
  MPI_Request barrier;
  int done = 0;
  MUST(MPI_Ibarrier(ourWorld, &barrier));
  MUST(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE));
  for (long pause = 20000; !done; pause = pause < 1000000 ? 2 * pause : pause) {
    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
    MUST(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE));
  }
  return MPI_Finalize();
}

static void abortJob(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
}

static void describe(int code, char *text, int size) {
  char line[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, line, &length);
  for (int i = 0; i < length; ++i)
    if (line[i] == '\n')
      line[i] = ' ';
  strncpy(text, line, (size_t)size - 1);
  text[size - 1] = 0;
}

static const TesseraMpiShim kTable = {
    TESSERA_MPI_SHIM_VERSION,
#ifdef OPEN_MPI
    "Open MPI",
#else
    "MPICH",
#endif
    start,        makeCommunicator, sendBytes, receiveBytes, test, cancel, finalize,
    abortJob,     describe,
};

const TesseraMpiShim *tesseraMpiShim(void) {
  return &kTable;
}
