//===- HostCalls.cpp - Calls of ranks in host memory ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostCalls.h"

#include "../Execution/Reduce.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

using sharding::CollectiveKind;

std::pair<int64_t, int64_t> callBytes(const RankCall &call, int64_t rank, int64_t ranks) {
  int64_t bytes = call.count * sizeOf(call.dtype);
  switch (call.kind) {
  case CollectiveKind::all_gather:
    return {bytes, ranks * bytes};
  case CollectiveKind::reduce_scatter:
    return {ranks * bytes, bytes};
  case CollectiveKind::reduce:
    return {bytes, rank == call.root ? bytes : 0};
  default:
    return {bytes, bytes};
  }
}

Status checkInPlace(const RankCall &call, int64_t rank, int64_t ranks, const std::byte *send,
                    const std::byte *receive) {
  auto [sent, received] = callBytes(call, rank, ranks);
  if (send + sent <= receive || receive + received <= send)
    return {};
  int64_t offset = rank * call.count * sizeOf(call.dtype);
  bool gathers = call.kind == CollectiveKind::all_gather;
  bool scatters = call.kind == CollectiveKind::reduce_scatter;
  if (gathers ? send == receive + offset : scatters ? receive == send + offset : send == receive)
    return {};
  return Status::error(std::string(toString(call.kind)) + " of rank " + std::to_string(rank) +
                       " receives " + std::to_string(receive - send) +
                       " bytes after its send buffer; in place requires " +
                       (gathers    ? "receive = send - rank * count"
                        : scatters ? "receive = send + rank * count"
                                   : "receive = send"));
}

/// Combines [begin, begin + count) of every rank's buffer and writes it to `to`, at `at` in each.
static void combine(const RankCall &call, const std::vector<const std::byte *> &send, int64_t begin,
                    int64_t count, const std::vector<std::byte *> &to, int64_t at) {
  int64_t size = sizeOf(call.dtype);
  ReduceFunction reduce = reduceFunction(call.dtype, call.reduction);
  std::vector<const std::byte *> data(send.size());
  std::byte chunk[kReduceChunk * 8];
  for (int64_t done = 0; done < count; done += kReduceChunk) {
    int64_t now = std::min(kReduceChunk, count - done);
    for (size_t i = 0; i < send.size(); ++i)
      data[i] = send[i] + (begin + done) * size;
    reduce(data.data(), static_cast<int64_t>(data.size()), now, call.scale, chunk);
    for (std::byte *target : to)
      std::memcpy(target + (at + done) * size, chunk, static_cast<size_t>(now * size));
  }
}

void performCall(const RankCall &call, const std::vector<const std::byte *> &send,
                 const std::vector<std::byte *> &receive) {
  auto ranks = static_cast<int64_t>(send.size());
  int64_t bytes = call.count * sizeOf(call.dtype);
  auto copy = [&](std::byte *to, const std::byte *from) {
    std::memmove(to, from, static_cast<size_t>(bytes));
  };
  switch (call.kind) {
  case CollectiveKind::all_gather:
    for (int64_t from = 0; from < ranks; ++from)
      for (std::byte *to : receive)
        copy(to + from * bytes, send[from]);
    return;
  case CollectiveKind::broadcast:
    for (std::byte *to : receive)
      copy(to, send[call.root]);
    return;
  case CollectiveKind::reduce_scatter:
    for (int64_t to = 0; to < ranks; ++to)
      combine(call, send, to * call.count, call.count, {receive[to]}, 0);
    return;
  case CollectiveKind::reduce:
    combine(call, send, 0, call.count, {receive[call.root]}, 0);
    return;
  default:
    combine(call, send, 0, call.count, receive, 0);
  }
}

} // namespace tessera::runtime
