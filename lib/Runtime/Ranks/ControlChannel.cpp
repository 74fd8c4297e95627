//===- ControlChannel.cpp - Messages of ranks besides steps ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ControlChannel.h"

#include "Watchdog.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace tessera::runtime {

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool Backoff::wait(Transport &transport) {
  // Reads the clock only now and then: a turn takes less time than a reading.
  constexpr int64_t kYields = 4000, kAsk = 64;
  constexpr int64_t kSleepMicroseconds = 100;
  if (rounds == 0)
    beganAt = now();
  ++rounds;
  if (rounds < kYields)
    std::this_thread::yield();
  else
    transport.rest(kSleepMicroseconds);
  return rounds % kAsk != 0 || now() - beganAt < seconds;
}

Status ControlChannel::open() {
  std::vector<int64_t> all(static_cast<size_t>(transport.size()));
  std::iota(all.begin(), all.end(), 0);
  auto opened = transport.openChannel(all);
  if (!opened)
    return opened.status();
  channel = *opened;
  return {};
}

std::string ControlChannel::rankText(int64_t rank) const {
  return "rank " + std::to_string(rank) + " (" + transport.hostOf(rank) + ")";
}

Status ControlChannel::send(std::vector<Pending> &list, int64_t peer, const void *data,
                            int64_t bytes) {
  auto request = transport.send(channel, peer, static_cast<const std::byte *>(data), bytes);
  if (!request)
    return request.status();
  list.push_back({peer, *request});
  return {};
}

Status ControlChannel::receive(std::vector<Pending> &list, int64_t peer, void *data,
                               int64_t bytes) {
  auto request = transport.receive(channel, peer, static_cast<std::byte *>(data), bytes);
  if (!request)
    return request.status();
  list.push_back({peer, *request});
  return {};
}

Status ControlChannel::wait(std::vector<Pending> list, const std::string &what) {
  if (!log)
    return waitFor(list, what);
  auto shape = std::make_shared<CallShape>();
  shape->kind = "conversation";
  shape->text = "a call " + what;
  shape->stream = "conversation";
  shape->group.resize(static_cast<size_t>(transport.size()));
  std::iota(shape->group.begin(), shape->group.end(), 0);
  int64_t sequence = log->issue(std::move(shape));
  log->begin(sequence);
  Status status = waitFor(list, what);
  if (!status.ok() && watchdog)
    status = watchdog->explain(status);
  log->rests();
  if (status.ok()) {
    log->end(sequence);
    return status;
  }
  log->dump(status.message());
  transport.abandon();
  return status;
}

Status ControlChannel::waitFor(std::vector<Pending> &list, const std::string &what) {
  Backoff patience(seconds);
  while (!list.empty()) {
    bool went = false;
    for (auto each = list.begin(); each != list.end();) {
      auto done = transport.test(each->request);
      if (!done)
        return done.status();
      went |= *done;
      each = *done ? list.erase(each) : std::next(each);
    }
    if (went) {
      patience.reset();
      if (log)
        log->progressed();
      continue;
    }
    if (log)
      log->waits();
    if (watchdog && watchdog->hasVerdict())
      return watchdog->verdict();
    if (patience.wait(transport))
      continue;
    std::string text = rankText(transport.rank()) + " waited " +
                       std::to_string(static_cast<int64_t>(seconds)) + " s for " +
                       rankText(list.front().peer) + " " + what;
    if (!log)
      transport.abandon();
    return Status::error(std::move(text));
  }
  return {};
}

Expected<std::vector<std::string>> ControlChannel::allGather(const std::string &mine,
                                                             const std::string &what) {
  std::vector<std::string> all(static_cast<size_t>(transport.size()));
  std::vector<int64_t> sizes(all.size());
  auto size = static_cast<int64_t>(mine.size());
  std::vector<Pending> list;
  for (int64_t rank = 0; rank < transport.size(); ++rank) {
    TESSERA_RETURN_IF_ERROR(receive(list, rank, &sizes[rank], sizeof(int64_t)));
    TESSERA_RETURN_IF_ERROR(send(list, rank, &size, sizeof(int64_t)));
  }
  TESSERA_RETURN_IF_ERROR(wait(std::move(list), what));
  list.clear();
  for (int64_t rank = 0; rank < transport.size(); ++rank) {
    all[rank].resize(static_cast<size_t>(sizes[rank]));
    TESSERA_RETURN_IF_ERROR(receive(list, rank, all[rank].data(), sizes[rank]));
    TESSERA_RETURN_IF_ERROR(send(list, rank, mine.data(), size));
  }
  TESSERA_RETURN_IF_ERROR(wait(std::move(list), what));
  return all;
}

Status ControlChannel::agree(const Status &mine, const std::string &what) {
  auto said = allGather(mine.message(), what);
  if (!said)
    return mine.ok() ? said.status() : mine;
  for (size_t other = 0; other < said->size(); ++other)
    if (!(*said)[other].empty()) {
      // An error common to all ranks names no rank.
      bool allAlike = std::all_of(said->begin(), said->end(),
                                  [&](const std::string &text) { return text == (*said)[other]; });
      Status status = Status::error((*said)[other]);
      if (!allAlike)
        status = status.in(rankText(static_cast<int64_t>(other)));
      return transport.rank() == 0 ? status : status.asReportedElsewhere();
    }
  return {};
}

Status ControlChannel::share(const std::vector<int64_t> &owners,
                             const std::vector<std::byte *> &data, int64_t bytes, bool toAll,
                             const std::string &what) {
  std::vector<Pending> list;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] != transport.rank()) {
      if (toAll || transport.rank() == 0)
        TESSERA_RETURN_IF_ERROR(receive(list, owners[i], data[i], bytes));
      continue;
    }
    for (int64_t rank = 0; rank < (toAll ? transport.size() : 1); ++rank)
      if (rank != transport.rank())
        TESSERA_RETURN_IF_ERROR(send(list, rank, data[i], bytes));
  }
  return wait(std::move(list), what);
}

} // namespace tessera::runtime
