//===- Job.cpp - A transport and its thread -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Job.h"

#include <algorithm>
#include <exception>
#include <future>

namespace tessera::runtime {

bool Work::isCompleted() const {
  std::lock_guard lock(mutex);
  return isDone;
}

Status Work::wait() const {
  std::unique_lock lock(mutex);
  completed.wait(lock, [&] { return isDone; });
  return result;
}

bool Work::waitFor(double seconds) const {
  std::unique_lock lock(mutex);
  return completed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return isDone; });
}

void Work::complete(const Status &status) {
  std::lock_guard lock(mutex);
  result = status;
  isDone = true;
  completed.notify_all();
}

Job::Job(std::unique_ptr<Transport> transport, OpenDeviceCalls openDevice, int64_t localRank)
    : held(std::move(transport)), calls(held->rank()), openDevice(std::move(openDevice)),
      localRank(localRank) {
  calls.folder = dumpFolderOf("");
  calls.host = held->hostOf(held->rank());
  calls.about = "a process group";
  thread = std::thread([this] { run(); });
}

Job::~Job() {
  {
    std::lock_guard lock(mutex);
    isStopping = true;
    news.notify_one();
  }
  thread.join();
}

Status Job::watch(double seconds) {
  return withTransport([&](Transport &transport) -> Status {
    ControlChannel conversation(transport, seconds);
    TESSERA_RETURN_IF_ERROR(conversation.open());
    auto onVerdict = [this](const std::string &text) {
      std::lock_guard lock(mutex);
      verdict = text;
      news.notify_one();
    };
    auto started = Watchdog::start(transport, conversation, calls,
                                   {seconds, false, Calls::concurrent, onVerdict});
    if (!started)
      return started.status();
    watchdog = std::move(*started);
    return {};
  });
}

Expected<DeviceCalls *> Job::device() {
  std::lock_guard lock(deviceMutex);
  if (!openDevice)
    return Status::error("the buffers are on 'cuda', and the backend of the job works on 'cpu'; "
                         "begin it with 'cpu:tcp,cuda:nccl'");
  if (!opened)
    opened = openDevice(localRank);
  if (!*opened)
    return opened->status();
  return (*opened)->get();
}

/// The common verdict, if there is one.
Status Job::explained(const Status &status) {
  Status said = watchdog ? watchdog->explain(status) : status;
  calls.dump(said.message());
  return said;
}

Job::Queue Job::makeQueue() {
  std::lock_guard lock(mutex);
  queues.emplace_back();
  return static_cast<Queue>(queues.size()) - 1;
}

void Job::keep(std::shared_ptr<void> buffers) {
  std::lock_guard lock(mutex);
  kept.push_back(std::move(buffers));
}

void Job::submit(Queue queue, const WorkPtr &work) {
  std::lock_guard lock(mutex);
  if (!failure.ok())
    return work->complete(failure.in(work->what));
  if (queue == kIndependent)
    independent.push_back(work);
  else
    queues[queue].push_back(work);
  news.notify_one();
}

Status Job::withTransport(const std::function<Status(Transport &)> &action) {
  std::promise<Status> done;
  {
    std::lock_guard lock(mutex);
    if (!failure.ok())
      return failure;
    actions.emplace_back([&] { done.set_value(action(*held)); });
    news.notify_one();
  }
  return done.get_future().get();
}

Status Job::ended() const {
  std::lock_guard lock(mutex);
  return failure;
}

void Job::run() {
  int idle = 0;
  while (true) {
    std::deque<std::function<void()>> now;
    std::string ended;
    {
      std::unique_lock lock(mutex);
      auto isIdle = [&] {
        for (const std::deque<WorkPtr> &queue : queues)
          if (!queue.empty())
            return false;
        return actions.empty() && independent.empty() && (verdict.empty() || !failure.ok());
      };
      news.wait(lock, [&] { return isStopping || !isIdle(); });
      if (isStopping)
        break;
      now.swap(actions);
      ended = failure.ok() ? verdict : "";
    }
    for (const std::function<void()> &action : now)
      action();
    if (!ended.empty()) {
      held->abandon();
      fail(Status::error(ended));
      continue;
    }
    idle = advanceAll() || !now.empty() ? 0 : idle + 1;
    if (idle > 20) // short at first, since most messages arrive soon
      held->rest(idle < 200 ? 50 : 500);
  }
  // Abandons operations in flight. An idle transport is not abandoned: MPI would treat the process
  // as failed.
  bool isBusy;
  {
    std::lock_guard lock(mutex);
    isBusy = !independent.empty() ||
             std::any_of(queues.begin(), queues.end(), [](auto &queue) { return !queue.empty(); });
  }
  if (isBusy)
    held->abandon();
  fail(Status::error("the process group was closed"));
}

/// Advances the first work of each queue, and the independent ones. Returns whether any of them
/// ended.
bool Job::advanceAll() {
  std::vector<std::pair<Queue, WorkPtr>> fronts;
  {
    std::lock_guard lock(mutex);
    for (size_t queue = 0; queue < queues.size(); ++queue)
      if (!queues[queue].empty())
        fronts.emplace_back(queue, queues[queue].front());
    for (const WorkPtr &work : independent)
      fronts.emplace_back(kIndependent, work);
  }
  bool anyEnded = false;
  for (auto &[queue, work] : fronts) {
    Expected<bool> isDone = false;
    try {
      isDone = work->advance();
    } catch (const std::exception &error) {
      isDone = Status::error(error.what());
    }
    if (isDone && !*isDone && std::chrono::steady_clock::now() > work->deadline)
      isDone = Status::error("it took too long; " + work->awaited());
    if (!isDone) {
      // Others receive the reason before they notice that this rank has left.
      Status said = explained(isDone.status().in(work->what));
      held->abandon();
      fail(said);
      return true;
    }
    if (!*isDone)
      continue;
    anyEnded = true;
    std::lock_guard lock(mutex);
    if (queue == kIndependent)
      std::erase(independent, work);
    else
      queues[queue].pop_front();
  }
  return anyEnded;
}

/// Ends all works; keeps the first failure.
void Job::fail(const Status &status) {
  {
    std::lock_guard lock(deviceMutex);
    if (opened && *opened)
      (**opened)->abort();
  }
  std::lock_guard lock(mutex);
  if (failure.ok())
    failure = status;
  for (std::deque<WorkPtr> &queue : queues) {
    for (const WorkPtr &work : queue)
      work->complete(failure);
    queue.clear();
  }
  for (const WorkPtr &work : independent)
    work->complete(failure);
  independent.clear();
}

} // namespace tessera::runtime
