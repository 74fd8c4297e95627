//===- ControlChannel.h - Messages of ranks besides steps -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_CONTROLCHANNEL_H
#define TESSERA_LIB_RUNTIME_RANKS_CONTROLCHANNEL_H

#include "Transport.h"

#include <functional>

namespace tessera::runtime {

class CallLog;
class Watchdog;

/// Collective calls of all ranks on a separate channel. Calls wait for the others, at most
/// `seconds`, and are made by all ranks in the same order; `what` is their subject in messages.
class ControlChannel {
public:
  ControlChannel(Transport &transport, double seconds) : transport(transport), seconds(seconds) {}
  Status open();
  /// Records further calls, and ends them with the verdict of the watchdog, which may be null.
  void record(CallLog *callLog, Watchdog *of) {
    log = callLog;
    watchdog = of;
  }

  /// The texts of all ranks, by rank.
  Expected<std::vector<std::string>> allGather(const std::string &mine, const std::string &what);
  /// The failure of any rank fails all of them, with its message, its rank and its host. On ranks
  /// other than 0 the error is marked as reported by another process.
  Status agree(const Status &mine, const std::string &what);
  /// A message of equal size from each of `owners` to all ranks, or only to rank 0. `data` by
  /// owner: this rank's own is sent, others' are written. Those that this rank does not receive may
  /// be null.
  Status share(const std::vector<int64_t> &owners, const std::vector<std::byte *> &data,
               int64_t bytes, bool toAll, const std::string &what);

  double deadline() const { return seconds; }
  /// "rank 3 (gpu02)".
  std::string rankText(int64_t rank) const;

private:
  struct Pending {
    int64_t peer;
    Transport::Request request;
  };
  Status send(std::vector<Pending> &list, int64_t peer, const void *data, int64_t bytes);
  Status receive(std::vector<Pending> &list, int64_t peer, void *data, int64_t bytes);
  Status wait(std::vector<Pending> list, const std::string &what);
  Status waitFor(std::vector<Pending> &list, const std::string &what);

  Transport &transport;
  const double seconds;
  int64_t channel = -1;
  CallLog *log = nullptr;
  Watchdog *watchdog = nullptr;
};

/// Yields the core at first, and sleeps after a longer wait.
class Backoff {
public:
  explicit Backoff(double seconds) : seconds(seconds) {}
  /// Records progress.
  void reset() { rounds = 0; }
  /// Waits a little; false after too long without progress.
  bool wait(Transport &transport);

private:
  const double seconds;
  int64_t rounds = 0;
  double beganAt = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_CONTROLCHANNEL_H
