//===- Communicators.cpp - Creation and end of communicators --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Library.h"

#include <cstdio>
#include <random>

using namespace tessera::nccl_check;

namespace {
struct UniqueId {
  char bytes[128];
};
} // namespace

/// Printable hash of bytes; FNV-1a 64.
static std::string hashOf(const void *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ static_cast<const unsigned char *>(data)[i]) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// Registers that `made`, created from `parent` (may be null), is or will be set, unless `result`
/// is an error.
static Result expect(Result result, Comm *made, Comm parent, const std::string &name, int rank = -1,
                     int ranks = -1) {
  if (result != kSuccess && result != kInProgress)
    return result;
  Communicator communicator;
  communicator.name = name;
  communicator.rank = rank;
  communicator.ranks = ranks;
  std::lock_guard lock(Communicators::all().mutex);
  Communicators::all().expect(made, parent, std::move(communicator));
  return result;
}

static bool isRank(const Comm *comm, int rank, int ranks) {
  return comm && ranks >= 1 && rank >= 0 && rank < ranks;
}
static Result noRank(const char *function, int rank, int ranks) {
  return wrong(function, "rank " + std::to_string(rank) + " of " + std::to_string(ranks),
               kInvalidArgument);
}

/// The name of the n-th communicator created from `comm` by `how`, equal on every member. Empty
/// with a reason in `why`.
static std::string nameOfChild(Comm comm, const std::string &how, std::string &why) {
  Communicators &all = Communicators::all();
  std::lock_guard lock(all.mutex);
  Communicator *parent = nullptr;
  if (why = all.find(comm, parent); !why.empty() || parent->name.empty())
    return "";
  return parent->name + "-" + how + std::to_string(parent->children[how]++);
}

EXPORT int tessera_nccl_check() {
  return 1;
}

EXPORT Result ncclCommInitRankConfig(Comm *comm, int ranks, UniqueId id, int rank, void *config) {
  if (!isRank(comm, rank, ranks))
    return noRank("ncclCommInitRankConfig", rank, ranks);
  auto next = REAL(cclCommInitRankConfig);
  return expect(next ? next(comm, ranks, id, rank, config) : kInvalidUsage, comm, nullptr,
                hashOf(&id, sizeof(id)), rank, ranks);
}

EXPORT Result ncclCommInitRank(Comm *comm, int ranks, UniqueId id, int rank) {
  if (!isRank(comm, rank, ranks))
    return noRank("ncclCommInitRank", rank, ranks);
  auto next = REAL(cclCommInitRank);
  return expect(next ? next(comm, ranks, id, rank) : kInvalidUsage, comm, nullptr,
                hashOf(&id, sizeof(id)), rank, ranks);
}

/// All ranks pass the same list of ids.
EXPORT Result ncclCommInitRankScalable(Comm *comm, int ranks, int rank, int numIds, UniqueId *ids,
                                       void *config) {
  if (!isRank(comm, rank, ranks))
    return noRank("ncclCommInitRankScalable", rank, ranks);
  if (numIds < 1 || !ids)
    return wrong("ncclCommInitRankScalable", "there are no ids", kInvalidArgument);
  auto next = REAL(cclCommInitRankScalable);
  return expect(next ? next(comm, ranks, rank, numIds, ids, config) : kInvalidUsage, comm, nullptr,
                hashOf(ids, static_cast<size_t>(numIds) * sizeof(UniqueId)), rank, ranks);
}

/// All ranks are in this process.
EXPORT Result ncclCommInitAll(Comm *comms, int ranks, const int *devices) {
  if (!isRank(comms, 0, ranks))
    return noRank("ncclCommInitAll", 0, ranks);
  auto next = REAL(cclCommInitAll);
  Result result = next ? next(comms, ranks, devices) : kInvalidUsage;
  std::random_device random; // other processes may use the same folder
  unsigned own[2] = {random(), random()};
  for (int rank = 0; rank < ranks; ++rank)
    (void)expect(result, comms + rank, nullptr, hashOf(own, sizeof(own)), rank, ranks);
  return result;
}

EXPORT Result ncclCommSplit(Comm comm, int color, int key, Comm *made, void *config) {
  std::string why, name = nameOfChild(comm, "split", why);
  if (!why.empty() || !made)
    return wrong("ncclCommSplit", made ? why : "the result's address is null");
  if (!name.empty())
    name += "-" + std::to_string(color);
  auto next = REAL(cclCommSplit);
  return expect(next ? next(comm, color, key, made, config) : kInvalidUsage, made, comm, name);
}

EXPORT Result ncclCommShrink(Comm comm, int *excluded, int numExcluded, Comm *made, void *config,
                             int flags) {
  if (!made || numExcluded < 0 || (numExcluded && !excluded))
    return wrong("ncclCommShrink", made ? "the list of ranks to leave out is not valid"
                                        : "the result's address is null");
  // Excluded ranks do not call this, so each list has its own count.
  std::set<int> sorted(excluded, excluded + numExcluded);
  std::vector<int> list(sorted.begin(), sorted.end());
  std::string why,
      name =
          nameOfChild(comm, "shrink-" + hashOf(list.data(), list.size() * sizeof(int)) + "-", why);
  if (!why.empty())
    return wrong("ncclCommShrink", why);
  auto next = REAL(cclCommShrink);
  return expect(next ? next(comm, excluded, numExcluded, made, config, flags) : kInvalidUsage, made,
                comm, name);
}

/// Existing members pass no id, so they and new members share no name.
EXPORT Result ncclCommGrow(Comm comm, int ranks, const UniqueId *id, int rank, Comm *made,
                           void *config) {
  if (!made)
    return wrong("ncclCommGrow", "the result's address is null");
  auto next = REAL(cclCommGrow);
  return expect(next ? next(comm, ranks, id, rank, made, config) : kInvalidUsage, made, comm, "");
}

EXPORT Result ncclCommGetAsyncError(Comm comm, Result *error) {
  auto next = REAL(cclCommGetAsyncError);
  Result result = next ? next(comm, error) : kInvalidUsage;
  if (result != kSuccess || !error || *error == kInProgress)
    return result;
  std::lock_guard lock(Communicators::all().mutex);
  Communicators::all().settle(comm);
  return result;
}

namespace {
enum class Ending { finalize, destroy, abort };
} // namespace

static Result release(Comm comm, const char *function, Result (*next)(Comm), Ending how) {
  if (groupDepth() > 0 && how != Ending::finalize)
    return wrong(function, "within a group; end the group first");
  std::string left;
  {
    Communicators &all = Communicators::all();
    std::lock_guard lock(all.mutex);
    Communicator *found = nullptr;
    if (std::string why = all.find(comm, found); !why.empty())
      return wrong(function, why);
    left = all.hasEnded() ? "" : found->end();
    found->isFinalized = true;
    if (how != Ending::finalize)
      all.forget(comm);
  }
  if (!left.empty() && how != Ending::abort)
    return wrong(function, left); // it would wait forever
  if (!left.empty())
    (void)wrong(function, left);
  return next ? next(comm) : kInvalidUsage;
}
EXPORT Result ncclCommFinalize(Comm comm) {
  return release(comm, "ncclCommFinalize", REAL(cclCommFinalize), Ending::finalize);
}
EXPORT Result ncclCommDestroy(Comm comm) {
  return release(comm, "ncclCommDestroy", REAL(cclCommDestroy), Ending::destroy);
}
EXPORT Result ncclCommAbort(Comm comm) {
  return release(comm, "ncclCommAbort", REAL(cclCommAbort), Ending::abort);
}

EXPORT Result ncclRedOpCreatePreMulSum(int *operation, void *scalar, int type, int where,
                                       Comm comm) {
  auto next = REAL(cclRedOpCreatePreMulSum);
  Result result = next ? next(operation, scalar, type, where, comm) : kInvalidUsage;
  Communicators &all = Communicators::all();
  std::lock_guard lock(all.mutex);
  Communicator *found = nullptr;
  if (result == kSuccess && all.find(comm, found).empty())
    found->operations.insert(*operation);
  return result;
}

EXPORT Result ncclRedOpDestroy(int operation, Comm comm) {
  {
    Communicators &all = Communicators::all();
    std::lock_guard lock(all.mutex);
    Communicator *found = nullptr;
    std::string why = all.find(comm, found);
    if (why.empty() && !found->operations.erase(operation) && !found->name.empty())
      why = "operation " + std::to_string(operation) + " was not made for this communicator";
    if (!why.empty())
      return wrong("ncclRedOpDestroy", why);
  }
  auto next = REAL(cclRedOpDestroy);
  return next ? next(operation, comm) : kInvalidUsage;
}

EXPORT Result ncclGroupStart() {
  auto next = REAL(cclGroupStart);
  ++groupDepth();
  return next ? next() : kInvalidUsage;
}
EXPORT Result ncclGroupEnd() {
  if (groupDepth() == 0)
    return wrong("ncclGroupEnd", "no group was started on this thread");
  auto next = REAL(cclGroupEnd);
  Result result = next ? next() : kInvalidUsage;
  if (--groupDepth() > 0)
    return result;
  std::lock_guard lock(Communicators::all().mutex);
  Communicators::all().settleGroup(result);
  return result;
}
