//===- Job.h - A transport and the thread that works with it -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_JOB_H
#define TESSERA_LIB_RUNTIME_GROUPS_JOB_H

#include "../Ranks/Watchdog.h"
#include "DeviceCalls.h"
#include "Work.h"

#include <deque>
#include <functional>
#include <thread>
#include <vector>

namespace tessera::runtime {

/// This process's part of a job. One thread uses the transport. A call that fails because of the
/// transport or takes too long ends the job: all other calls, and later ones, fail with its
/// message.
class Job {
public:
  /// `openDevice` is called when the first call needs it; null where the job works in memory of
  /// the host alone.
  explicit Job(std::unique_ptr<Transport> transport, OpenDeviceCalls openDevice = nullptr,
               int64_t localRank = 0);
  ~Job();

  /// Works of one queue follow each other, those of different queues go on side by side.
  using Queue = int64_t;
  Queue makeQueue();
  /// The queue of works that wait for none of their queue, and are advanced in order all the same.
  static constexpr Queue kIndependent = -1;
  void submit(Queue queue, const WorkPtr &work);
  /// Does something with the transport, in its thread.
  Status withTransport(const std::function<Status(Transport &)> &action);

  /// Keeps what the transport may write to until it is abandoned.
  void keep(std::shared_ptr<void> buffers);

  Transport &transport() { return *held; }
  /// The device of this process, opened by the first who asks. By any thread.
  Expected<DeviceCalls *> device();
  /// The calls of this rank.
  CallLog &log() { return calls; }
  /// How many groups of these ranks there were before: the same on all of them. In its thread.
  int64_t countGroup(const std::vector<int64_t> &ranks) { return groups[ranks]++; }
  /// Starts the watchdog. Called by all ranks, before anything else.
  Status watch(double seconds);
  /// For works: a message's failure, which they return, has ended the job.
  Status ended() const;

private:
  void run();
  bool advanceAll();
  void fail(const Status &status);
  Status explained(const Status &status);

  std::vector<std::shared_ptr<void>> kept;
  const std::unique_ptr<Transport> held;
  CallLog calls;
  std::map<std::vector<int64_t>, int64_t> groups;
  std::string verdict; ///< of the watchdog; empty while there is none
  mutable std::mutex mutex;
  std::condition_variable news;
  std::vector<std::deque<WorkPtr>> queues;
  std::vector<WorkPtr> independent;
  std::deque<std::function<void()>> actions;
  bool isStopping = false;
  Status failure;
  const OpenDeviceCalls openDevice;
  const int64_t localRank;
  std::mutex deviceMutex;
  std::optional<Expected<std::unique_ptr<DeviceCalls>>> opened; ///< empty until it was tried
  std::unique_ptr<Watchdog> watchdog;                           ///< null where there is none
  std::thread thread;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_JOB_H
