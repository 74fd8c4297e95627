//===- Calls.cpp - NCCL's functions with checks ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every ncclX here checks its arguments and calls pncclX. Errors are written to
// standard error, and the call returns ncclInvalidUsage, so that the job ends at the
// fault. TESSERA_NCCL_LIBRARY names the library (default libnccl.so.2),
// TESSERA_NCCL_CHECK_DIR a folder visible to all ranks; without it, ranks are compared
// only within a process.
//
//===----------------------------------------------------------------------===//

#include "Library.h"

using namespace tessera::nccl_check;

EXPORT Result ncclCommUserRank(Comm comm, int *rank);
EXPORT Result ncclCommCount(Comm comm, int *count);

/// Checks a call against its communicator; empty if it is valid.
static std::string inspect(Comm comm, Call &call) {
  auto rankOf = REAL(cclCommUserRank);
  auto countOf = REAL(cclCommCount);
  Communicators &all = Communicators::all();
  std::lock_guard lock(all.mutex);
  Communicator *found = nullptr;
  if (std::string why = all.find(comm, found); !why.empty())
    return why;
  Communicator &communicator = *found;
  if (communicator.isFinalized)
    return "the communicator was finalized";
  if (communicator.ranks < 0 &&
      (!rankOf || !countOf || rankOf(comm, &communicator.rank) != kSuccess ||
       countOf(comm, &communicator.ranks) != kSuccess)) {
    communicator.ranks = -1;
    return "the communicator is not ready";
  }
  call.rank = communicator.rank;
  call.ranks = communicator.ranks;
  if (std::string why = check(call); !why.empty())
    return why;
  bool isComparable = !communicator.name.empty() && !all.hasEnded();
  if (call.operation >= kNumOperations && !communicator.operations.count(call.operation) &&
      isComparable)
    return "operation " + std::to_string(call.operation) + " was not made for this communicator";
  if (!isComparable)
    return "";
  // Messages pair with those of one peer, not of all ranks. A message to oneself needs no file.
  if (call.kind == Kind::send || call.kind == Kind::recv) {
    if (call.peer == call.rank)
      return "";
    if (!communicator.messages)
      communicator.messages = std::make_unique<Messages>(all.folder(), communicator.name,
                                                         communicator.rank, communicator.ranks);
    return communicator.messages->add(call);
  }
  if (!communicator.order)
    communicator.order = std::make_unique<Order>(all.folder(), communicator.name, communicator.rank,
                                                 communicator.ranks);
  return communicator.order->add(call);
}

static Result refuse(const Call &call, const std::string &why) {
  std::string rank = call.ranks > 1 ? " (rank " + std::to_string(call.rank) + ")" : "";
  return wrong(nameOf(call.kind), why + rank);
}

/// Checks `call` and passes the arguments to NCCL's own function, which `real` looks up.
template <typename Real, typename... Arguments>
static Result forward(Call call, Comm comm, Real real, Arguments... arguments) {
  std::string why = inspect(comm, call);
  bool isMessage = call.kind == Kind::send || call.kind == Kind::recv;
  if (why.empty() && isMessage && groupDepth() == 0 && call.peer == call.rank)
    why = call.kind == Kind::send
              ? "a send to the rank itself must be in a group with its receive"
              : "a receive from the rank itself must be in a group with its send";
  if (!why.empty())
    return refuse(call, why);
  auto next = real();
  return next ? next(arguments...) : kInvalidUsage;
}

/// NCCL's own function, looked up only for valid calls: wrong calls are found even without NCCL.
#define NEXT(NAME) [] { return REAL(NAME); }

EXPORT Result ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation,
                            Comm comm, Stream stream) {
  return forward({Kind::allReduce, send, receive, count, type, operation}, comm, NEXT(cclAllReduce),
                 send, receive, count, type, operation, comm, stream);
}

EXPORT Result ncclReduceScatter(const void *send, void *receive, size_t count, int type,
                                int operation, Comm comm, Stream stream) {
  return forward({Kind::reduceScatter, send, receive, count, type, operation}, comm,
                 NEXT(cclReduceScatter), send, receive, count, type, operation, comm, stream);
}

EXPORT Result ncclAllGather(const void *send, void *receive, size_t count, int type, Comm comm,
                            Stream stream) {
  return forward({Kind::allGather, send, receive, count, type}, comm, NEXT(cclAllGather), send,
                 receive, count, type, comm, stream);
}

EXPORT Result ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                            Comm comm, Stream stream) {
  return forward({Kind::broadcast, send, receive, count, type, 0, root}, comm, NEXT(cclBroadcast),
                 send, receive, count, type, root, comm, stream);
}

EXPORT Result ncclBcast(void *buffer, size_t count, int type, int root, Comm comm, Stream stream) {
  return forward({Kind::broadcast, buffer, buffer, count, type, 0, root}, comm, NEXT(cclBcast),
                 buffer, count, type, root, comm, stream);
}

EXPORT Result ncclReduce(const void *send, void *receive, size_t count, int type, int operation,
                         int root, Comm comm, Stream stream) {
  return forward({Kind::reduce, send, receive, count, type, operation, root}, comm, NEXT(cclReduce),
                 send, receive, count, type, operation, root, comm, stream);
}

EXPORT Result ncclAlltoAll(const void *send, void *receive, size_t count, int type, Comm comm,
                           Stream stream) {
  return forward({Kind::allToAll, send, receive, count, type}, comm, NEXT(cclAlltoAll), send,
                 receive, count, type, comm, stream);
}

EXPORT Result ncclGather(const void *send, void *receive, size_t count, int type, int root,
                         Comm comm, Stream stream) {
  return forward({Kind::gather, send, receive, count, type, 0, root}, comm, NEXT(cclGather), send,
                 receive, count, type, root, comm, stream);
}

EXPORT Result ncclScatter(const void *send, void *receive, size_t count, int type, int root,
                          Comm comm, Stream stream) {
  return forward({Kind::scatter, send, receive, count, type, 0, root}, comm, NEXT(cclScatter), send,
                 receive, count, type, root, comm, stream);
}

EXPORT Result ncclSend(const void *send, size_t count, int type, int peer, Comm comm,
                       Stream stream) {
  return forward({Kind::send, send, nullptr, count, type, 0, peer}, comm, NEXT(cclSend), send,
                 count, type, peer, comm, stream);
}

EXPORT Result ncclRecv(void *receive, size_t count, int type, int peer, Comm comm, Stream stream) {
  return forward({Kind::recv, nullptr, receive, count, type, 0, peer}, comm, NEXT(cclRecv), receive,
                 count, type, peer, comm, stream);
}
