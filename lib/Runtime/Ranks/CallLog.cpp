//===- CallLog.cpp - The last calls of a rank -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallLog.h"

#include "tessera/Runtime/Artifact/Bytes.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera::runtime {

int64_t CallLog::issue(CallShapePtr shape) {
  std::lock_guard lock(mutex);
  int64_t place = streams[shape->stream]++;
  return record(std::move(shape), place);
}

/// Holds the lock.
int64_t CallLog::record(CallShapePtr shape, int64_t place) {
  int64_t sequence = issued++;
  if (open.size() >= static_cast<size_t>(kCapacity))
    open.erase(open.begin()); // its record is overwritten
  open.push_back(sequence);
  at(sequence) = {std::move(shape), sequence, place, clock.now(), 0, 0};
  return sequence;
}

void CallLog::begin(int64_t sequence) {
  std::lock_guard lock(mutex);
  if (at(sequence).sequence == sequence)
    at(sequence).begunNs = clock.now();
}

void CallLog::end(int64_t sequence) {
  std::lock_guard lock(mutex);
  if (at(sequence).sequence == sequence)
    at(sequence).endedNs = clock.now();
  auto found = std::find(open.begin(), open.end(), sequence);
  if (found != open.end())
    open.erase(found);
}

void CallLog::sent(const std::string &stream) {
  std::lock_guard lock(mutex);
  ++streams[stream];
}

int64_t CallLog::receive(CallShapePtr shape, int64_t place) {
  std::lock_guard lock(mutex);
  int64_t sequence = record(std::move(shape), place);
  at(sequence).begunNs = clock.now();
  return sequence;
}

void CallLog::setPlace(int64_t sequence, int64_t place) {
  std::lock_guard lock(mutex);
  if (at(sequence).sequence == sequence)
    at(sequence).place = place;
}

RankState CallLog::state() const {
  std::lock_guard lock(mutex);
  RankState state;
  state.isWaiting = waiting.load(std::memory_order_relaxed);
  state.counter = counter.load(std::memory_order_relaxed);
  state.issued = streams;
  if (issued == 0)
    return state;
  // Among several, the rank waits in one that has begun.
  int64_t sequence = open.empty() ? issued - 1 : open.front(), rank = 0;
  for (int64_t each : open) {
    const CallRecord &record = ring[each % kCapacity];
    int64_t better = record.begunNs == 0 ? 1 : record.shape->isReceive ? 2 : 3;
    if (better > rank) {
      sequence = each;
      rank = better;
    }
  }
  const CallRecord &record = ring[sequence % kCapacity];
  state.call = record.shape;
  state.place = record.place;
  state.isOpen = !open.empty();
  state.open = static_cast<int64_t>(open.size());
  return state;
}

std::vector<CallRecord> CallLog::last() const {
  std::lock_guard lock(mutex);
  std::vector<CallRecord> result;
  for (int64_t each = std::max<int64_t>(issued - kCapacity, 0); each < issued; ++each)
    result.push_back(ring[each % kCapacity]);
  return result;
}

std::string CallLog::dumpText(const std::string &reason) const {
  using Json = nlohmann::ordered_json;
  RankState now = state();
  Json calls = Json::array();
  for (const CallRecord &each : last())
    calls.push_back({{"sequence", each.sequence},
                     {"stream", each.shape->stream},
                     {"place", each.place},
                     {"id", each.shape->id},
                     {"kind", each.shape->kind},
                     {"dtype", each.shape->dtype},
                     {"count", each.shape->count},
                     {"group", each.shape->group},
                     {"text", each.shape->text},
                     {"loc", each.shape->loc},
                     {"issued_ns", each.issuedNs},
                     {"begun_ns", each.begunNs},
                     {"ended_ns", each.endedNs}});
  Json json{{"version", 1},
            {"rank", rank},
            {"host", host},
            {"pid", ::getpid()},
            {"about", about},
            {"reason", reason},
            {"waiting", now.isWaiting},
            {"now_ns", clock.now()},
            {"calls", std::move(calls)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The number of a log in its process, per rank: every rank opens them in the same order.
static int64_t numberOfLog(int64_t rank) {
  static std::mutex mutex;
  static std::map<int64_t, int64_t> counts;
  std::lock_guard lock(mutex);
  return counts[rank]++;
}

CallLog::CallLog(int64_t rank) : rank(rank), number(numberOfLog(rank)), ring(kCapacity) {}

void CallLog::dump(const std::string &reason) {
  if (folder.empty())
    return;
  std::lock_guard lock(dumping);
  std::string path =
      folder + "/rank-" + std::to_string(rank) + "." + std::to_string(number) + ".json";
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    std::fprintf(stderr, "tessera: warning: no dump: %s: %s\n", folder.c_str(),
                 std::strerror(errno));
    return;
  }
  if (Status status = writeFile(path, dumpText(reason)); !status.ok())
    std::fprintf(stderr, "tessera: warning: no dump: %s\n", status.message().c_str());
}

std::string dumpFolderOf(const std::string &given) {
  const char *text = std::getenv("TESSERA_DUMP_DIR");
  return given.empty() && text ? text : given;
}

} // namespace tessera::runtime
