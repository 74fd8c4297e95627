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

WorkerPool::WorkerPool(int64_t workers) {
  try {
    for (int64_t i = 1; i < workers; ++i)
      threads.emplace_back([this] { workerLoop(); });
  } catch (const std::system_error &) { // the system has no more threads: see `size`
  }
}

WorkerPool::~WorkerPool() {
  {
    Lock lock(mutex);
    closing = true;
  }
  wake.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void WorkerPool::push(Job &job) {
  {
    Lock lock(mutex);
    jobs.push_back(&job);
  }
  wake.notify_one();
}

void WorkerPool::run(const std::vector<Job *> &first) {
  {
    Lock lock(mutex);
    jobs.insert(jobs.end(), first.begin(), first.end());
  }
  // This thread takes one job itself: a single job wakes no worker.
  size_t takers = std::min(first.size(), threads.size() + 1);
  for (size_t i = 1; i < takers; ++i)
    wake.notify_one();
  drain();
}

void WorkerPool::submit(TaskGroup &group, int64_t count) {
  {
    Lock lock(mutex);
    group.count = count;
    group.next = group.done = 0;
    groups.push_back(&group);
  }
  wake.notify_all();
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

bool WorkerPool::runOne(Lock &lock) {
  if (groups.empty() && jobs.empty())
    return false;
  ++running;
  if (!groups.empty()) {
    runTaskOf(*groups.front(), lock);
  } else {
    Job *job = jobs.front();
    jobs.pop_front();
    lock.unlock();
    job->run();
    lock.lock();
  }
  if (--running == 0 && isDraining && groups.empty() && jobs.empty())
    wake.notify_all();
  return true;
}

void WorkerPool::workerLoop() {
  Lock lock(mutex);
  while (!closing)
    if (!runOne(lock))
      wake.wait(lock, [&] { return closing || !groups.empty() || !jobs.empty(); });
}

void WorkerPool::drain() {
  Lock lock(mutex);
  while (true) {
    if (runOne(lock))
      continue;
    if (running == 0)
      return;
    isDraining = true;
    wake.wait(lock, [&] { return !groups.empty() || !jobs.empty() || running == 0; });
    isDraining = false;
  }
}

} // namespace tessera::runtime
