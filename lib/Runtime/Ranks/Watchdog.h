//===- Watchdog.h - Detects jobs without progress ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread of each rank, connected to that of rank 0 by a separate socket, which no
// transport uses. Ranks report their state to rank 0 five times per second; rank 0
// judges (Verdict.h) and sends the verdict to all, which ends the job.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_WATCHDOG_H
#define TESSERA_LIB_RUNTIME_RANKS_WATCHDOG_H

#include "ControlChannel.h"
#include "Sockets.h"
#include "Verdict.h"

#include <condition_variable>
#include <thread>

namespace tessera::runtime {

struct WatchdogOptions {
  double deadline = 120; ///< seconds that a rank may wait without progress
  /// Whether a rank that does not react to the verdict after a moment, because it computes or is
  /// inside a library, prints it and ends.
  bool endsProcess = false;
  Calls calls = Calls::concurrent;
  std::function<void(const std::string &)> onVerdict = {}; ///< in the watchdog's thread
};

class Watchdog {
public:
  /// Called by all ranks together. Null on all ranks if all are in one process, or cannot reach
  /// each other. If a process has several ranks, its number follows their hosts in messages.
  static Expected<std::unique_ptr<Watchdog>>
  start(Transport &transport, ControlChannel &conversation, CallLog &log, WatchdogOptions options);
  /// Tells the others that this rank leaves.
  ~Watchdog();

  bool hasVerdict() const { return isOver.load(std::memory_order_relaxed); }
  /// Why the job has ended; success before that.
  Status verdict() const;
  /// The job's error for a failure of this rank: the common verdict, or after a second this rank's
  /// own error. Informs the others.
  Status explain(const Status &mine);
  /// For the end of the process: like the destructor, without waiting.
  void leave();

private:
  using Time = std::chrono::steady_clock::time_point;
  struct Peer {
    Socket socket;
    std::string input;
    bool isStuck = false, hasEnded = false, hasLeft = false;
    Time heard, changed; ///< times of its last report and of its last progress
    RankState state;
  };
  Watchdog(int64_t rank, std::vector<std::string> hosts, CallLog &log, WatchdogOptions options);
  Status connect(Transport &transport, ControlChannel &conversation, bool &isThere);
  bool accept(const Socket &listener, const std::string &secret);
  void run();
  void read(size_t peer);
  void take(size_t peer, char kind, const std::string &text);
  void tick(Time now);
  void note(Peer &peer, RankState state, Time now);
  std::vector<RankReport> reports(Time now) const;
  void judge(Time now, double deadline);
  void warn(Time now);
  void checkRoot(Time now, double deadline);
  void checkDepartedRoot();
  void reportDeparture();
  void decide(const std::string &text);
  void send(Peer &peer, char kind, const std::string &text);

  const int64_t self;
  std::vector<std::string> hosts; ///< for messages: "gpu01", "gpu01, process 3"
  CallLog &log;
  const WatchdogOptions options;
  const int64_t process;
  std::vector<Peer> peers; ///< rank 0: by rank; others: rank 0, and themselves
  int wake[2] = {-1, -1};
  std::atomic<bool> isStopping = false, isOver = false;
  mutable std::atomic<bool> isSeen = false; ///< the verdict
  mutable std::mutex mutex;
  std::condition_variable decided;
  std::string verdictText; ///< the verdict
  std::string failure;     ///< of this rank, to be sent
  std::string warned;      ///< the call of the last warning
  Time decidedAt;
  std::thread thread;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_WATCHDOG_H
