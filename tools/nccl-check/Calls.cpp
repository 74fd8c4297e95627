//===- Calls.cpp - NCCL's functions, checked and passed on ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every ncclX here looks at its arguments and calls pncclX. What is wrong is
// written to standard error, and the call returns ncclInvalidUsage, so that the
// job ends where the fault is. TESSERA_NCCL_LIBRARY names the library (default
// libnccl.so.2), TESSERA_NCCL_CHECK_DIR a folder that all ranks see; without it
// ranks are compared within a process only.
//
//===----------------------------------------------------------------------===//

#include "Library.h"

using namespace tessera::nccl_check;

EXPORT Result ncclCommUserRank(Comm comm, int *rank);
EXPORT Result ncclCommCount(Comm comm, int *count);

/// Checks a call against its communicator; empty when it may go on.
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
  // Messages pair with their peers', not with everybody's. One to oneself needs no file.
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

EXPORT Result ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation,
                            Comm comm, Stream stream) {
  Call call{Kind::allReduce, send, receive, count, type, operation};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclAllReduce);
  return next ? next(send, receive, count, type, operation, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclReduceScatter(const void *send, void *receive, size_t count, int type,
                                int operation, Comm comm, Stream stream) {
  Call call{Kind::reduceScatter, send, receive, count, type, operation};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclReduceScatter);
  return next ? next(send, receive, count, type, operation, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclAllGather(const void *send, void *receive, size_t count, int type, Comm comm,
                            Stream stream) {
  Call call{Kind::allGather, send, receive, count, type};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclAllGather);
  return next ? next(send, receive, count, type, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                            Comm comm, Stream stream) {
  Call call{Kind::broadcast, send, receive, count, type, 0, root};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclBroadcast);
  return next ? next(send, receive, count, type, root, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclBcast(void *buffer, size_t count, int type, int root, Comm comm, Stream stream) {
  Call call{Kind::broadcast, buffer, buffer, count, type, 0, root};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclBcast);
  return next ? next(buffer, count, type, root, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclReduce(const void *send, void *receive, size_t count, int type, int operation,
                         int root, Comm comm, Stream stream) {
  Call call{Kind::reduce, send, receive, count, type, operation, root};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclReduce);
  return next ? next(send, receive, count, type, operation, root, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclAlltoAll(const void *send, void *receive, size_t count, int type, Comm comm,
                           Stream stream) {
  Call call{Kind::allToAll, send, receive, count, type};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclAlltoAll);
  return next ? next(send, receive, count, type, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclGather(const void *send, void *receive, size_t count, int type, int root,
                         Comm comm, Stream stream) {
  Call call{Kind::gather, send, receive, count, type, 0, root};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclGather);
  return next ? next(send, receive, count, type, root, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclScatter(const void *send, void *receive, size_t count, int type, int root,
                          Comm comm, Stream stream) {
  Call call{Kind::scatter, send, receive, count, type, 0, root};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclScatter);
  return next ? next(send, receive, count, type, root, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclSend(const void *send, size_t count, int type, int peer, Comm comm,
                       Stream stream) {
  Call call{Kind::send, send, nullptr, count, type, 0, peer};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  if (groupDepth() == 0 && peer == call.rank)
    return refuse(call, "a message to oneself stands in a group with its receive");
  auto next = REAL(cclSend);
  return next ? next(send, count, type, peer, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclRecv(void *receive, size_t count, int type, int peer, Comm comm, Stream stream) {
  Call call{Kind::recv, nullptr, receive, count, type, 0, peer};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  if (groupDepth() == 0 && peer == call.rank)
    return refuse(call, "a message from oneself stands in a group with its send");
  auto next = REAL(cclRecv);
  return next ? next(receive, count, type, peer, comm, stream) : kInvalidUsage;
}
