//===- WorkerPool.cpp - Pool of workers -----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WorkerPool.h"

#include <algorithm>
#include <system_error>

namespace tessera::runtime {

WorkerPool::WorkerPool(HeldPlacement placed)
    : held(std::move(placed)), wakes(std::max<size_t>(1, held.placement.nodes.size())),
      sleeping(wakes.size()) {
  try {
    for (int64_t i = 1; i < held.placement.workers; ++i)
      threads.emplace_back([this, i] {
        const std::vector<int64_t> &processors = held.placement.processors;
        if (!processors.empty() && pinThread(processors[i]))
          ++pinnedWorkers;
        workerLoop(i);
      });
  } catch (const std::system_error &) { // the system has no more threads: see `size`
  }
}

WorkerPool::~WorkerPool() {
  {
    Lock lock(mutex);
    closing = true;
  }
  wakeAll();
  for (std::thread &thread : threads)
    thread.join();
}

int64_t WorkerPool::nodeOf(int64_t worker) const {
  const std::vector<int64_t> &nodes = held.placement.nodeOf;
  return nodes.empty() ? 0 : nodes[worker];
}

void WorkerPool::wakeAll() {
  for (std::condition_variable &wake : wakes)
    wake.notify_all();
}

/// Wakes a worker of the job's node, or else of another one. Requires the mutex if there are
/// several nodes.
void WorkerPool::wakeFor(const Job &job) {
  if (wakes.size() == 1)
    return wakes[0].notify_one();
  auto count = static_cast<int64_t>(wakes.size());
  int64_t first = std::max<int64_t>(0, job.node);
  for (int64_t i = 0; i < count; ++i)
    if (int64_t node = (first + i) % count; sleeping[node])
      return wakes[node].notify_one();
}

void WorkerPool::push(Job &job) {
  {
    Lock lock(mutex);
    jobs.push_back(&job);
    if (wakes.size() > 1)
      return wakeFor(job);
  }
  wakeFor(job);
}

void WorkerPool::run(const std::vector<Job *> &first) {
  {
    Lock lock(mutex);
    jobs.insert(jobs.end(), first.begin(), first.end());
  }
  // This thread takes one job itself: a single job wakes no worker.
  size_t takers = std::min(first.size(), threads.size() + 1);
  if (wakes.size() > 1 && takers > 1)
    wakeAll();
  else
    for (size_t i = 1; i < takers; ++i)
      wakes[0].notify_one();
  drain();
}

void WorkerPool::submit(TaskGroup &group, int64_t count) {
  {
    Lock lock(mutex);
    group.count = count;
    group.next = group.done = 0;
    groups.push_back(&group);
  }
  wakeAll();
}

bool WorkerPool::runTaskOf(TaskGroup &group, Lock &lock) {
  if (group.next == group.count)
    return false;
  int64_t index = group.next++;
  if (group.next == group.count) // the group may be submitted again as soon as it is finished
    groups.erase(std::find(groups.begin(), groups.end(), &group));
  lock.unlock();
  group.runTask(index);
  lock.lock();
  if (++group.done == group.count) {
    lock.unlock();
    group.finish();
    lock.lock();
    groupEnded.notify_all();
  }
  return true;
}

void WorkerPool::help(TaskGroup &group) {
  Lock lock(mutex);
  while (runTaskOf(group, lock)) {
  }
}

/// The first job of the node, else the first of any node, else the first.
Job *WorkerPool::takeJob(int64_t node) {
  auto at = jobs.begin();
  if (wakes.size() > 1) {
    auto mine = std::find_if(at, jobs.end(), [&](Job *job) { return job->node == node; });
    if (mine == jobs.end())
      mine = std::find_if(at, jobs.end(), [](Job *job) { return job->node < 0; });
    if (mine != jobs.end())
      at = mine;
  }
  Job *job = *at;
  jobs.erase(at);
  // The worker that was woken for another job may have taken this one.
  if (wakes.size() > 1 && !jobs.empty())
    wakeFor(*jobs.front());
  return job;
}

bool WorkerPool::runOne(Lock &lock, int64_t node) {
  if (groups.empty() && jobs.empty())
    return false;
  ++running;
  if (!groups.empty()) {
    runTaskOf(*groups.front(), lock);
  } else {
    Job *job = takeJob(node);
    lock.unlock();
    job->run();
    lock.lock();
  }
  if (--running == 0 && isDraining && groups.empty() && jobs.empty())
    wakeAll();
  return true;
}

/// Sleeps until a condition of the pool holds.
void WorkerPool::wait(Lock &lock, int64_t node, bool (*until)(const WorkerPool &)) {
  ++sleeping[node];
  wakes[node].wait(lock, [&] { return until(*this); });
  --sleeping[node];
}

void WorkerPool::workerLoop(int64_t worker) {
  const int64_t node = nodeOf(worker);
  Lock lock(mutex);
  while (!closing)
    if (!runOne(lock, node))
      wait(lock, node, [](const WorkerPool &pool) {
        return pool.closing || !pool.groups.empty() || !pool.jobs.empty();
      });
}

void WorkerPool::drain() {
  const int64_t node = nodeOf(0);
  Lock lock(mutex);
  while (true) {
    if (runOne(lock, node))
      continue;
    if (running == 0)
      return;
    isDraining = true;
    wait(lock, node, [](const WorkerPool &pool) {
      return !pool.groups.empty() || !pool.jobs.empty() || pool.running == 0;
    });
    isDraining = false;
  }
}

} // namespace tessera::runtime
