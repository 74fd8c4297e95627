//===- WorkerPool.h - Workers that run jobs to the end ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_WORKERPOOL_H
#define TESSERA_LIB_RUNTIME_EXECUTION_WORKERPOOL_H

#include "Placement.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::runtime {

/// A job that a worker runs once per push.
class Job {
public:
  virtual ~Job() = default;
  virtual void run() = 0;

  int64_t node = -1; ///< of its memory, an index into Placement::nodes; -1: any
};

/// Independent tasks 0 … count-1 for any worker; the worker that ends the last one calls `finish`.
/// May be submitted again afterwards.
class TaskGroup {
public:
  virtual ~TaskGroup() = default;
  virtual void runTask(int64_t index) = 0;
  virtual void finish() = 0;

private:
  friend class WorkerPool;
  int64_t count = 0, next = 0, done = 0; // guarded by the pool's mutex
};

/// A fixed number of workers over one queue. Nothing spins: a worker without work sleeps. Workers
/// that a placement pins to several memory nodes prefer jobs of their node, and take others before
/// they sleep.
class WorkerPool {
public:
  /// The thread that calls `run` is one of the `workers` (at least 1). If the system provides fewer
  /// threads, `size` is their number.
  explicit WorkerPool(int64_t workers)
      : WorkerPool(HeldPlacement{{workers, {}, {}, {}, true}, {}}) {}
  /// The thread that calls `run` is worker 0, and is not pinned: its threads inherit its affinity.
  explicit WorkerPool(HeldPlacement placed);
  ~WorkerPool();

  const Placement &placement() const { return held.placement; }
  /// Workers that the system has pinned.
  int64_t pinned() const { return pinnedWorkers; }

  int64_t size() const { return static_cast<int64_t>(threads.size()) + 1; }
  void push(Job &job);
  /// Offers the tasks to all workers. The caller may take part through `help`.
  void submit(TaskGroup &group, int64_t count);
  /// Runs tasks of the group on this thread until none is left to start; others may still run.
  void help(TaskGroup &group);
  /// Runs these jobs, and the jobs that they push, until the queue is empty and every worker is
  /// idle. An unfinished job can then never finish: only running jobs push jobs. Called by one
  /// thread at a time.
  void run(const std::vector<Job *> &first);
  /// Runs body(0) … body(count-1) on this thread and on idle workers; returns when all are done.
  template <typename Body> void parallelFor(int64_t count, const Body &body);

private:
  using Lock = std::unique_lock<std::mutex>;
  void workerLoop(int64_t worker);
  void drain();
  bool runOne(Lock &lock, int64_t node);
  Job *takeJob(int64_t node);
  int64_t nodeOf(int64_t worker) const;
  void wait(Lock &lock, int64_t node, bool (*until)(const WorkerPool &));
  void wakeFor(const Job &job);
  void wakeAll();
  bool runTaskOf(TaskGroup &group, Lock &lock);

  std::mutex mutex;
  HeldPlacement held;
  /// By node: work arrived, nothing is left, or the pool closes.
  std::vector<std::condition_variable> wakes;
  std::vector<int64_t> sleeping; ///< by node; guarded by the mutex
  std::condition_variable groupEnded;
  std::deque<Job *> jobs;
  std::deque<TaskGroup *> groups;
  int64_t running = 0;
  bool isDraining = false; ///< the thread in `run` waits for the last job
  bool closing = false;
  std::atomic<int64_t> pinnedWorkers{0};
  std::vector<std::thread> threads;
};

template <typename Body> void WorkerPool::parallelFor(int64_t count, const Body &body) {
  if (count <= 1 || threads.empty()) {
    for (int64_t i = 0; i < count; ++i)
      body(i);
    return;
  }
  struct Group final : TaskGroup {
    Group(WorkerPool &pool, const Body &body) : pool(pool), body(body) {}
    void runTask(int64_t index) override { body(index); }
    void finish() override {
      Lock lock(pool.mutex);
      finished = true;
    }
    WorkerPool &pool;
    const Body &body;
    bool finished = false; // guarded by the pool's mutex; the last access to the group
  } group(*this, body);
  submit(group, count);
  help(group);
  Lock lock(mutex);
  groupEnded.wait(lock, [&] { return group.finished; });
}

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_WORKERPOOL_H
