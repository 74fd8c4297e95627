//===- Nccl.cpp - Collectives through NCCL --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nccl.h"

#include "../../Execution/Backoff.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <utility>

namespace tessera::runtime::gpu {

using sharding::CollectiveKind;
using sharding::ReduceKind;

constexpr size_t kMinOwnBytes = size_t(1) << 20; ///< for memory from NCCL

/// Closes communicators split from others first. Finalization waits for all calls, and so for
/// peers: if one of them has ended, the remaining communicators are aborted.
void Nccl::close() {
  auto closeOne = [&](NcclComm &comm) {
    if (!comm)
      return true;
    if (!finalizeFn || !destroyFn ||
        !check(finalizeFn(comm), comm, "cannot finalize a communicator").ok())
      return false;
    return destroyFn(std::exchange(comm, nullptr)) == kNcclSuccess;
  };
  bool closed = std::all_of(communicators.begin(), communicators.end(), closeOne);
  if (closed)
    closed = closeOne(world);
  if (!closed)
    abortAll();
}

Nccl::~Nccl() {
  close();
  for (void *each : own)
    (void)memFreeFn(each);
}

void Nccl::abortAll() {
  for (NcclComm &comm : communicators)
    if (comm)
      (void)abortFn(std::exchange(comm, nullptr));
  if (world)
    (void)abortFn(std::exchange(world, nullptr));
}

Status Nccl::progress() {
  for (NcclComm comm : communicators) {
    int state = kNcclSuccess;
    if (!comm || (asyncErrorFn(comm, &state) == kNcclSuccess &&
                  (state == kNcclSuccess || state == kNcclInProgress)))
      continue;
    Status failed =
        check(state == kNcclSuccess ? kNcclInternalError : state, nullptr, "a collective failed");
    abortAll();
    return failed;
  }
  return {};
}

Status Nccl::open() {
  return openLibrary();
}

/// Waits for work in progress; fails if the communicator fails, or at the time limit.
Status Nccl::check(int result, NcclComm comm, const std::string &what) {
  if (grouping && result == kNcclInProgress)
    return {}; // no call proceeds before the group ends
  auto deadline = std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  Backoff backoff;
  while (result == kNcclInProgress && comm) {
    int asked = asyncErrorFn(comm, &result);
    if (asked != kNcclSuccess)
      result = asked;
    // A call on connected ranks ends within microseconds, in a thread of NCCL.
    if (result != kNcclInProgress || !backoff.sleep())
      continue;
    if (std::chrono::steady_clock::now() > deadline)
      return Status::error(what + ": no answer from other ranks within " +
                           std::to_string(static_cast<int>(seconds)) + " s (rank " +
                           std::to_string(self.rank) + " of " + std::to_string(self.size) + ")");
    if (peersRun)
      TESSERA_RETURN_IF_ERROR(peersRun().in(what));
  }
  if (result == kNcclSuccess || result == kNcclInProgress)
    return {};
  return Status::error(what + ": " + describe(result) + " on rank " + std::to_string(self.rank));
}

Status Nccl::join(Rendezvous &rendezvous) {
  NcclUniqueId id{};
  if (self.rank == 0)
    TESSERA_RETURN_IF_ERROR(check(getUniqueIdFn(&id), nullptr, "cannot create a unique id"));
  auto ids = rendezvous.allGather(std::string(id.bytes, sizeof(id.bytes)));
  if (!ids)
    return ids.status();
  if (ids->front().size() != sizeof(id.bytes))
    return Status::error("rank 0 sent a unique id of the wrong size");
  std::memcpy(id.bytes, ids->front().data(), sizeof(id.bytes));
  NcclConfig options = config();
  int result =
      initRankFn(&world, static_cast<int>(self.size), id, static_cast<int>(self.rank), &options);
  return check(result, world, "cannot create the communicator of all ranks");
}

/// One split: the color is the group; ranks without a group have no color.
Expected<std::vector<int64_t>>
Nccl::makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                        const std::vector<int64_t> &, Calls calls) {
  NcclConfig options = config();
  if (calls == Calls::concurrent)
    options.maxCtas = static_cast<int>(
        std::clamp<int64_t>(kConcurrentBlocks / concurrent, 1, kMostConcurrentBlocks));
  NcclComm made = nullptr;
  int color = kNcclNoColor, key = static_cast<int>(self.rank);
  for (size_t i = 0; i < groups.size(); ++i)
    if (std::binary_search(groups[i].begin(), groups[i].end(), self.rank))
      color = static_cast<int>(i);
  TESSERA_RETURN_IF_ERROR(
      check(splitFn(world, color, key, &made, &options), world,
            "cannot create communicators of " + std::to_string(groups.size()) + " groups"));
  if (made)
    TESSERA_RETURN_IF_ERROR(check(kNcclInProgress, made, "cannot create a communicator"));
  std::vector<int64_t> result;
  for (size_t i = 0; i < groups.size(); ++i) {
    result.push_back(static_cast<int64_t>(communicators.size()));
    communicators.push_back(static_cast<int>(i) == color ? made : nullptr);
  }
  return result;
}

/// Types that NCCL lacks are only moved, as bytes.
static int typeOf(DType dtype) {
  return ncclTypeOf(dtype).value_or(kNcclInt8);
}

/// Plain operations, and scaled sums, which each communicator creates once per type and factor.
Expected<int> Nccl::operationOf(const RankCall &call, int64_t communicator) {
  bool isBit = call.dtype == DType::i1;
  switch (call.reduction) {
  case ReduceKind::prod:
    return isBit ? kNcclMin : kNcclProd;
  case ReduceKind::max:
    return kNcclMax;
  case ReduceKind::min:
    return kNcclMin;
  default:
    break;
  }
  if (isBit)
    return kNcclMax;
  if (call.scale == 1)
    return kNcclSum;
  auto key = std::tuple(communicator, call.dtype, call.scale);
  if (auto it = scaledSums.find(key); it != scaledSums.end())
    return it->second;
  std::byte scalar[8] = {};
  ElementBytes value = elementOf(call.dtype, call.scale);
  std::copy(value.begin(), value.end(), scalar);
  int made = kNcclSum;
  TESSERA_RETURN_IF_ERROR(check(makePreMulSumFn(&made, scalar, typeOf(call.dtype),
                                                kNcclScalarOnHost, communicators[communicator]),
                                communicators[communicator], "cannot create a scaled sum"));
  scaledSums.emplace(key, made);
  return made;
}

Status Nccl::call(Issue issue, int64_t communicator, int64_t, const RankCall &call,
                  const std::byte *send, std::byte *receive) {
  NcclComm comm = communicators[communicator];
  bool reduces = call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::reduce ||
                 call.kind == CollectiveKind::reduce_scatter;
  int type = typeOf(call.dtype), operation = kNcclSum, root = static_cast<int>(call.root);
  if (reduces) {
    auto made = operationOf(call, communicator);
    if (!made)
      return made.status();
    operation = *made;
  }
  auto count = static_cast<size_t>(call.count) * (call.dtype == DType::i16 ? 2 : 1);
  int result = kNcclSuccess;
  switch (call.kind) {
  case CollectiveKind::all_gather:
    result = allGatherFn(send, receive, count, type, comm, issue.stream);
    break;
  case CollectiveKind::reduce_scatter:
    result = reduceScatterFn(send, receive, count, type, operation, comm, issue.stream);
    break;
  case CollectiveKind::broadcast:
    result = broadcastFn(send, receive, count, type, root, comm, issue.stream);
    break;
  case CollectiveKind::reduce:
    result = reduceFn(send, receive, count, type, operation, root, comm, issue.stream);
    break;
  default:
    result = allReduceFn(send, receive, count, type, operation, comm, issue.stream);
    break;
  }
  return check(result, comm, issue.what);
}

Status Nccl::exchange(Issue issue, int64_t communicator, int64_t,
                      std::vector<RankMessage> messages) {
  NcclComm comm = communicators[communicator];
  TESSERA_RETURN_IF_ERROR(check(groupStartFn(), nullptr, "cannot start a group"));
  int result = kNcclSuccess;
  for (const RankMessage &each : messages) {
    auto bytes = static_cast<size_t>(each.bytes);
    auto peer = static_cast<int>(each.peer);
    int one = each.send ? sendFn(each.data, bytes, kNcclInt8, peer, comm, issue.stream)
                        : receiveFn(each.data, bytes, kNcclInt8, peer, comm, issue.stream);
    if (one != kNcclSuccess && one != kNcclInProgress && result == kNcclSuccess)
      result = one;
  }
  int ended = groupEndFn();
  return check(result == kNcclSuccess ? ended : result, comm, issue.what);
}

Status Nccl::beginCalls() {
  TESSERA_RETURN_IF_ERROR(check(groupStartFn(), nullptr, "cannot start a group"));
  grouping = true;
  return {};
}

Status Nccl::endCalls(int64_t communicator, const char *what) {
  grouping = false;
  return check(groupEndFn(), communicators[communicator], what);
}

void *Nccl::allocate(size_t bytes) {
  void *data = nullptr;
  if (bytes < kMinOwnBytes || !memAllocFn || !memFreeFn || memAllocFn(&data, bytes) != kNcclSuccess)
    return nullptr;
  own.push_back(data);
  return data;
}

Status Nccl::registerBuffer(std::byte *data, int64_t bytes, const std::vector<int64_t> &members) {
  auto size = static_cast<size_t>(bytes);
  for (int64_t index : members) {
    NcclComm comm = communicators[index];
    if (!comm)
      continue; // this process is not in it
    void *handle = nullptr;
    if (windowFn && std::find(own.begin(), own.end(), data) != own.end()) {
      // All members call this. A machine without such memory gives a null window.
      TESSERA_RETURN_IF_ERROR(
          check(windowFn(comm, data, size, &handle, kNcclSymmetric), comm,
                "cannot register a window of " + std::to_string(bytes) + " bytes"));
      if (handle)
        continue;
    }
    if (registerFn)
      (void)registerFn(comm, data, size, &handle); // only an optimization
  }
  return {};
}

} // namespace tessera::runtime::gpu
