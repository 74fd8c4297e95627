//===- FakeNccl.c - The functions of NCCL without effect ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// FAKE_NCCL_VERSION is the reported version (22809 for 2.28.9). FAKE_NCCL_TRACE prints
// the given memory and closed communicators; FAKE_NCCL_WINDOWS=0: no support for windows. As with
// NCCL, a communicator created without blocking is in progress until it is queried, and a split one
// is null until then, or, within a group, until the group's end.
//
//===----------------------------------------------------------------------===//

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
typedef struct {
  char bytes[128];
} Id;
typedef struct Comm {
  int rank, ranks, busy;         ///< busy: number of queries that still report progress
  int isSplit;                   ///< made of another communicator
  struct Comm *child, **childAt; ///< the child being created, and its address
} Comm;
typedef struct {
  size_t size;
  unsigned magic, version;
  int blocking;
} Config;
enum { kSuccess = 0, kInvalidArgument = 4, kInProgress = 7 };

static __thread int groups = 0;
static __thread Comm *inGroup = NULL; ///< the parent of a creation in this thread's group

// Number of passed-on calls, for tests.
EXPORT int fake_nccl_calls = 0;

// Each function under both of its names.
#define BOTH(name, parameters, arguments, body)                                                    \
  EXPORT int p##name parameters body EXPORT int name parameters {                                  \
    return p##name arguments;                                                                      \
  }

static int note(void) {
  ++fake_nccl_calls;
  return 0;
}

static int isBlocking(const Config *config) {
  return !config || config->blocking != 0;
}

static int make(Comm **comm, int rank, int ranks, const Config *config) {
  *comm = calloc(1, sizeof(Comm));
  (*comm)->rank = rank;
  (*comm)->ranks = ranks;
  (*comm)->busy = isBlocking(config) ? 0 : 2;
  return isBlocking(config) ? kSuccess : kInProgress;
}

static void trace(const char *what, const Comm *comm) {
  if (getenv("FAKE_NCCL_TRACE"))
    fprintf(stderr, "nccl: %s %s\n", what, comm->isSplit ? "a group" : "all ranks");
}

static void settle(Comm *parent) {
  if (parent->childAt)
    *parent->childAt = parent->child;
  parent->childAt = NULL;
}

static int makeOf(Comm *parent, int rank, int ranks, Comm **made, const Config *config) {
  *made = NULL;
  make(&parent->child, rank, ranks, NULL);
  parent->child->isSplit = 1;
  parent->childAt = made;
  if (!isBlocking(config)) {
    parent->busy = 2;
    return kInProgress;
  }
  if (groups > 0)
    inGroup = parent;
  else
    settle(parent);
  return kSuccess;
}

BOTH(ncclGetVersion, (int *version), (version), {
  const char *text = getenv("FAKE_NCCL_VERSION");
  *version = text ? atoi(text) : 22809;
  return 0;
})
BOTH(ncclGetUniqueId, (Id * id), (id), {
  memset(id, 7, sizeof(*id));
  return 0;
})
BOTH(ncclCommInitRank, (Comm * *comm, int ranks, Id id, int rank), (comm, ranks, id, rank),
     { return make(comm, rank, ranks, NULL); })
BOTH(ncclCommInitRankConfig, (Comm * *comm, int ranks, Id id, int rank, void *config),
     (comm, ranks, id, rank, config), { return make(comm, rank, ranks, config); })
BOTH(ncclCommInitRankScalable,
     (Comm * *comm, int ranks, int rank, int numIds, Id *ids, void *config),
     (comm, ranks, rank, numIds, ids, config), { return make(comm, rank, ranks, config); })
BOTH(ncclCommInitAll, (Comm * *comms, int ranks, const int *devices), (comms, ranks, devices), {
  for (int rank = 0; rank < ranks; ++rank)
    make(comms + rank, rank, ranks, NULL);
  return 0;
})
// Assumes that all ranks have the same color, and their rank as the key.
BOTH(ncclCommSplit, (Comm * comm, int color, int key, Comm **made, void *config),
     (comm, color, key, made, config), { return makeOf(comm, key, comm->ranks, made, config); })
// Assumes that the excluded ranks are the last ones.
BOTH(ncclCommShrink,
     (Comm * comm, int *excluded, int numExcluded, Comm **made, void *config, int flags),
     (comm, excluded, numExcluded, made, config, flags),
     { return makeOf(comm, comm->rank, comm->ranks - numExcluded, made, config); })
BOTH(ncclMemAlloc, (void **data, size_t size), (data, size), {
  *data = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return 0;
})
BOTH(ncclMemFree, (void *data), (data), {
  free(data);
  return 0;
})
BOTH(ncclCommRegister, (Comm * comm, void *data, size_t size, void **handle),
     (comm, data, size, handle), {
       (void)comm;
       if (getenv("FAKE_NCCL_TRACE"))
         fprintf(stderr, "nccl: a buffer of %zu bytes\n", size);
       *handle = data;
       return 0;
     })
BOTH(ncclCommWindowRegister, (Comm * comm, void *data, size_t size, void **window, int flags),
     (comm, data, size, window, flags), {
       const char *text = getenv("FAKE_NCCL_WINDOWS");
       (void)comm;
       *window = text && atoi(text) == 0 ? NULL : data;
       if (getenv("FAKE_NCCL_TRACE") && *window)
         fprintf(stderr, "nccl: a window of %zu bytes, flags %d\n", size, flags);
       return 0;
     })
BOTH(ncclCommUserRank, (Comm * comm, int *rank), (comm, rank), {
  if (comm->busy)
    return kInvalidArgument;
  *rank = comm->rank;
  return 0;
})
BOTH(ncclCommCount, (Comm * comm, int *ranks), (comm, ranks), {
  if (comm->busy)
    return kInvalidArgument;
  *ranks = comm->ranks;
  return 0;
})
BOTH(ncclCommGetAsyncError, (Comm * comm, int *error), (comm, error), {
  if (comm->busy > 0)
    --comm->busy;
  if (!comm->busy)
    settle(comm);
  *error = comm->busy ? kInProgress : kSuccess;
  return 0;
})
BOTH(ncclCommFinalize, (Comm * comm), (comm), {
  trace("finalize", comm);
  return 0;
})
BOTH(ncclCommDestroy, (Comm * comm), (comm), {
  trace("destroy", comm);
  free(comm);
  return 0;
})
BOTH(ncclCommAbort, (Comm * comm), (comm), {
  trace("abort", comm);
  free(comm);
  return 0;
})
BOTH(ncclGroupStart, (void), (), {
  ++groups;
  return 0;
})
BOTH(ncclGroupEnd, (void), (), {
  if (--groups == 0 && inGroup)
    settle(inGroup);
  if (groups == 0)
    inGroup = NULL;
  return 0;
})
BOTH(ncclRedOpCreatePreMulSum, (int *op, void *scalar, int type, int where, Comm *comm),
     (op, scalar, type, where, comm), {
       static int made = 5;
       *op = made++;
       return 0;
     })
BOTH(ncclRedOpDestroy, (int op, Comm *comm), (op, comm), { return 0; })
BOTH(ncclAllReduce,
     (const void *send, void *receive, size_t count, int type, int op, Comm *comm, void *stream),
     (send, receive, count, type, op, comm, stream), { return note(); })
BOTH(ncclReduceScatter,
     (const void *send, void *receive, size_t count, int type, int op, Comm *comm, void *stream),
     (send, receive, count, type, op, comm, stream), { return note(); })
BOTH(ncclAllGather,
     (const void *send, void *receive, size_t count, int type, Comm *comm, void *stream),
     (send, receive, count, type, comm, stream), { return note(); })
BOTH(ncclBroadcast,
     (const void *send, void *receive, size_t count, int type, int root, Comm *comm, void *stream),
     (send, receive, count, type, root, comm, stream), { return note(); })
BOTH(ncclBcast, (void *buffer, size_t count, int type, int root, Comm *comm, void *stream),
     (buffer, count, type, root, comm, stream), { return note(); })
BOTH(ncclAlltoAll,
     (const void *send, void *receive, size_t count, int type, Comm *comm, void *stream),
     (send, receive, count, type, comm, stream), { return note(); })
BOTH(ncclGather,
     (const void *send, void *receive, size_t count, int type, int root, Comm *comm, void *stream),
     (send, receive, count, type, root, comm, stream), { return note(); })
BOTH(ncclScatter,
     (const void *send, void *receive, size_t count, int type, int root, Comm *comm, void *stream),
     (send, receive, count, type, root, comm, stream), { return note(); })
BOTH(ncclReduce,
     (const void *send, void *receive, size_t count, int type, int op, int root, Comm *comm,
      void *stream),
     (send, receive, count, type, op, root, comm, stream), { return note(); })
BOTH(ncclSend, (const void *send, size_t count, int type, int peer, Comm *comm, void *stream),
     (send, count, type, peer, comm, stream), { return note(); })
BOTH(ncclRecv, (void *receive, size_t count, int type, int peer, Comm *comm, void *stream),
     (receive, count, type, peer, comm, stream), { return note(); })
