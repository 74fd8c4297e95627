//===- Job.h - A transport and its thread -----------------------*- C++ -*-===//
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
  /// `openDevice` is called by the first call that needs it; null for jobs with only host memory.
  explicit Job(std::unique_ptr<Transport> transport, OpenDeviceCalls openDevice = nullptr,
               int64_t localRank = 0);
  ~Job();

  /// Works of one queue run one after the other, those of different queues concurrently.
  using Queue = int64_t;
  Queue makeQueue();
  /// The queue of independent works, which are advanced in order.
  static constexpr Queue kIndependent = -1;
  void submit(Queue queue, const WorkPtr &work);
  /// Runs an action with the transport, in its thread.
  Status withTransport(const std::function<Status(Transport &)> &action);

  /// Keeps buffers to which the transport may write until it is abandoned.
  void keep(std::shared_ptr<void> buffers);

  Transport &transport() { return *held; }
  /// The device of this process, opened on the first request. From any thread.
  Expected<DeviceCalls *> device();
  /// The calls of this rank.
  CallLog &log() { return calls; }
  /// The number of earlier groups of these ranks: the same on all of them. In the job's thread.
  int64_t countGroup(const std::vector<int64_t> &ranks) { return groups[ranks]++; }
  /// Starts the watchdog. Called by all ranks, before anything else.
  Status watch(double seconds);
  /// For works: the error that has ended the job.
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
  std::string verdict; ///< of the watchdog; empty without one
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
  std::optional<Expected<std::unique_ptr<DeviceCalls>>> opened; ///< empty before the first attempt
  std::unique_ptr<Watchdog> watchdog;                           ///< null if there is none
  std::thread thread;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_JOB_H
