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

#include "Messages.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unistd.h>

using namespace tessera::nccl_check;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Result = int;
using Comm = void *;
using Stream = void *;
struct UniqueId {
  char bytes[128];
};
constexpr Result kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7;

struct Communicator {
  std::string name;
  int rank = -1, ranks = -1; ///< asked for when a split one is first used
  int splits = 0;
  std::set<int> operations; ///< made by callers
  std::unique_ptr<Order> order;
  std::unique_ptr<Messages> messages;
};

struct State {
  std::mutex mutex;
  std::map<Comm, Communicator> communicators; ///< iterated at the end alone
  void *library = nullptr;
  std::string folder;
};

State &state() {
  static auto *made = new State; // never destroyed: threads may still call at exit
  return *made;
}

thread_local int groupDepth = 0;

Result wrong(const char *function, const std::string &why, Result result = kInvalidUsage) {
  std::fprintf(stderr, "nccl-check: %s: %s\n", function, why.c_str());
  return result;
}

/// pncclX of the library, opened at the first call; null (with a message) when there is none.
template <typename Function> Function real(const char *name) {
  State &s = state();
  std::lock_guard lock(s.mutex);
  if (!s.library) {
    const char *path = std::getenv("TESSERA_NCCL_LIBRARY");
    s.library = ::dlopen(path ? path : "libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (!s.library)
      std::fprintf(stderr, "nccl-check: NCCL cannot be opened: %s\n", ::dlerror());
  }
  void *found = s.library ? ::dlsym(s.library, name) : nullptr;
  if (s.library && !found)
    std::fprintf(stderr, "nccl-check: the library has no %s\n", name);
  return reinterpret_cast<Function>(found);
}

#define REAL(function) real<decltype(&n##function)>("pn" #function)

std::string folderOfOrders() {
  State &s = state();
  if (!s.folder.empty())
    return s.folder;
  if (const char *given = std::getenv("TESSERA_NCCL_CHECK_DIR"))
    return s.folder = given;
  char made[] = "/tmp/tessera-nccl-check-XXXXXX";
  return s.folder = ::mkdtemp(made) ? made : "/tmp";
}

/// Letters that stand for an id; FNV-1a 64.
std::string nameOfId(const void *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ static_cast<const unsigned char *>(data)[i]) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

} // namespace

EXPORT Result ncclCommUserRank(Comm comm, int *rank);
EXPORT Result ncclCommCount(Comm comm, int *count);

/// Checks a call against its communicator; empty when it may go on.
static std::string inspect(Comm comm, Call &call) {
  State &s = state();
  using Query = Result (*)(Comm, int *);
  auto rankOf = real<Query>("pncclCommUserRank"), countOf = real<Query>("pncclCommCount");
  std::lock_guard lock(s.mutex);
  auto it = s.communicators.find(comm);
  if (it == s.communicators.end())
    return comm ? "the communicator is none, or was destroyed" : "the communicator is null";
  Communicator &communicator = it->second;
  if (communicator.ranks < 0 &&
      (!rankOf || !countOf || rankOf(comm, &communicator.rank) != kSuccess ||
       countOf(comm, &communicator.ranks) != kSuccess))
    return "the communicator is not ready";
  call.rank = communicator.rank;
  call.ranks = communicator.ranks;
  if (std::string why = check(call); !why.empty())
    return why;
  if (call.operation >= kNumOperations && !communicator.operations.count(call.operation))
    return "operation " + std::to_string(call.operation) + " was not made for this communicator";
  // Messages pair with their peers', not with everybody's. One to oneself needs no file.
  if (call.kind == Kind::send || call.kind == Kind::recv) {
    if (call.peer == call.rank)
      return "";
    if (!communicator.messages)
      communicator.messages = std::make_unique<Messages>(folderOfOrders(), communicator.name,
                                                         communicator.rank, communicator.ranks);
    return communicator.messages->add(call);
  }
  if (!communicator.order)
    communicator.order = std::make_unique<Order>(folderOfOrders(), communicator.name,
                                                 communicator.rank, communicator.ranks);
  return communicator.order->add(call);
}

static Result refuse(const Call &call, const std::string &why) {
  std::string rank = call.ranks > 1 ? " (rank " + std::to_string(call.rank) + ")" : "";
  return wrong(nameOf(call.kind), why + rank);
}

static void remember(Comm comm, const std::string &name, int rank, int ranks) {
  std::lock_guard lock(state().mutex);
  Communicator made;
  made.name = name;
  made.rank = rank;
  made.ranks = ranks;
  state().communicators[comm] = std::move(made);
}

EXPORT int tessera_nccl_check() {
  return 1;
}

EXPORT Result ncclCommInitRankConfig(Comm *comm, int ranks, UniqueId id, int rank, void *config) {
  if (!comm || ranks < 1 || rank < 0 || rank >= ranks)
    return wrong("ncclCommInitRankConfig",
                 "rank " + std::to_string(rank) + " of " + std::to_string(ranks), kInvalidArgument);
  auto next = REAL(cclCommInitRankConfig);
  Result result = next ? next(comm, ranks, id, rank, config) : kInvalidUsage;
  if (result == kSuccess || result == kInProgress)
    remember(*comm, nameOfId(&id, sizeof(id)), rank, ranks);
  return result;
}

EXPORT Result ncclCommInitRank(Comm *comm, int ranks, UniqueId id, int rank) {
  if (!comm || ranks < 1 || rank < 0 || rank >= ranks)
    return wrong("ncclCommInitRank",
                 "rank " + std::to_string(rank) + " of " + std::to_string(ranks), kInvalidArgument);
  auto next = REAL(cclCommInitRank);
  Result result = next ? next(comm, ranks, id, rank) : kInvalidUsage;
  if (result == kSuccess || result == kInProgress)
    remember(*comm, nameOfId(&id, sizeof(id)), rank, ranks);
  return result;
}

EXPORT Result ncclCommSplit(Comm comm, int color, int key, Comm *made, void *config) {
  std::string name;
  {
    std::lock_guard lock(state().mutex);
    auto it = state().communicators.find(comm);
    if (it == state().communicators.end() || !made)
      return wrong("ncclCommSplit", "the communicator is none, or was destroyed");
    name =
        it->second.name + "-" + std::to_string(it->second.splits++) + "-" + std::to_string(color);
  }
  auto next = REAL(cclCommSplit);
  Result result = next ? next(comm, color, key, made, config) : kInvalidUsage;
  if ((result == kSuccess || result == kInProgress) && *made)
    remember(*made, name, -1, -1);
  return result;
}

/// What is left of a communicator's messages when its rank makes no more calls.
static std::string endMessages(Communicator &communicator) {
  if (communicator.rank < 0)
    return ""; // never used
  if (!communicator.messages)
    communicator.messages = std::make_unique<Messages>(folderOfOrders(), communicator.name,
                                                       communicator.rank, communicator.ranks);
  std::string left = communicator.messages->close();
  return left.empty() ? "" : left + " (rank " + std::to_string(communicator.rank) + ")";
}

static Result release(Comm comm, const char *function, Result (*next)(Comm), bool aborts) {
  if (groupDepth > 0)
    return wrong(function, "within a group; end the group first");
  std::string left;
  {
    std::lock_guard lock(state().mutex);
    auto it = state().communicators.find(comm);
    if (it == state().communicators.end())
      return wrong(function, "the communicator is none, or was destroyed");
    left = endMessages(it->second);
    state().communicators.erase(it);
  }
  if (!left.empty() && !aborts)
    return wrong(function, left); // it would wait for ever
  if (!left.empty())
    (void)wrong(function, left);
  return next ? next(comm) : kInvalidUsage;
}
EXPORT Result ncclCommDestroy(Comm comm) {
  return release(comm, "ncclCommDestroy", REAL(cclCommDestroy), /*aborts=*/false);
}
EXPORT Result ncclCommAbort(Comm comm) {
  return release(comm, "ncclCommAbort", REAL(cclCommAbort), /*aborts=*/true);
}

/// Processes may end with communicators that live.
__attribute__((destructor)) static void endAll() {
  std::lock_guard lock(state().mutex);
  for (auto &[comm, communicator] : state().communicators)
    if (std::string left = endMessages(communicator); !left.empty())
      (void)wrong("at the end", left);
}

EXPORT Result ncclRedOpCreatePreMulSum(int *operation, void *scalar, int type, int where,
                                       Comm comm) {
  auto next = REAL(cclRedOpCreatePreMulSum);
  Result result = next ? next(operation, scalar, type, where, comm) : kInvalidUsage;
  std::lock_guard lock(state().mutex);
  if (auto it = state().communicators.find(comm);
      result == kSuccess && it != state().communicators.end())
    it->second.operations.insert(*operation);
  return result;
}

EXPORT Result ncclGroupStart() {
  auto next = REAL(cclGroupStart);
  ++groupDepth;
  return next ? next() : kInvalidUsage;
}
EXPORT Result ncclGroupEnd() {
  if (groupDepth == 0)
    return wrong("ncclGroupEnd", "no group was started on this thread");
  --groupDepth;
  auto next = REAL(cclGroupEnd);
  return next ? next() : kInvalidUsage;
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

EXPORT Result ncclReduce(const void *send, void *receive, size_t count, int type, int operation,
                         int root, Comm comm, Stream stream) {
  Call call{Kind::reduce, send, receive, count, type, operation, root};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  auto next = REAL(cclReduce);
  return next ? next(send, receive, count, type, operation, root, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclSend(const void *send, size_t count, int type, int peer, Comm comm,
                       Stream stream) {
  Call call{Kind::send, send, nullptr, count, type, 0, peer};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  if (groupDepth == 0 && peer == call.rank)
    return refuse(call, "a message to oneself stands in a group with its receive");
  auto next = REAL(cclSend);
  return next ? next(send, count, type, peer, comm, stream) : kInvalidUsage;
}

EXPORT Result ncclRecv(void *receive, size_t count, int type, int peer, Comm comm, Stream stream) {
  Call call{Kind::recv, nullptr, receive, count, type, 0, peer};
  if (std::string why = inspect(comm, call); !why.empty())
    return refuse(call, why);
  if (groupDepth == 0 && peer == call.rank)
    return refuse(call, "a message from oneself stands in a group with its send");
  auto next = REAL(cclRecv);
  return next ? next(receive, count, type, peer, comm, stream) : kInvalidUsage;
}
