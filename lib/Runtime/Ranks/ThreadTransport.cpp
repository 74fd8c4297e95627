//===- ThreadTransport.cpp - Ranks that are threads of one process --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadTransport.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <unordered_map>

namespace tessera::runtime {

namespace {

struct QueuedMessage {
  enum State { waiting, copying, done, failed };
  int64_t owner, peer;
  bool send;
  std::byte *data;
  int64_t bytes;
  std::atomic<State> state = waiting;
  std::string failure;
};
using MessagePtr = std::shared_ptr<QueuedMessage>;

/// State shared by the transports of a job.
struct Hub {
  struct Key {
    int64_t channel, from, to;
    auto operator<=>(const Key &) const = default;
  };
  std::mutex mutex;
  std::map<Key, std::deque<MessagePtr>> queues; ///< of one end or of the other
  std::map<std::pair<std::vector<int64_t>, int64_t>, int64_t> channels; ///< by ranks and number
  std::vector<std::string> hosts;
  std::vector<bool> gone;     ///< by rank
  std::vector<int64_t> cause; ///< by rank: the rank that caused its failure, by default itself
  std::vector<std::condition_variable> news;   ///< by rank
  std::vector<std::atomic<uint64_t>> finished; ///< messages, by rank

  explicit Hub(std::vector<std::string> names)
      : hosts(std::move(names)), gone(hosts.size()), cause(hosts.size()), news(hosts.size()),
        finished(hosts.size()) {
    std::iota(cause.begin(), cause.end(), 0);
  }

  void finish(QueuedMessage &message, QueuedMessage::State state) {
    message.state = state;
    ++finished[message.owner];
    news[message.owner].notify_one();
  }
};

class ThreadTransport final : public Transport {
public:
  ThreadTransport(std::shared_ptr<Hub> hub, int64_t rank) : hub(std::move(hub)), self(rank) {}
  ~ThreadTransport() override { abandon(); }

  int64_t rank() const override { return self; }
  int64_t size() const override { return static_cast<int64_t>(hub->hosts.size()); }
  const std::string &hostOf(int64_t rank) const override { return hub->hosts[rank]; }

  Expected<int64_t> openChannel(const std::vector<int64_t> &ranks) override {
    std::lock_guard lock(hub->mutex);
    auto made = hub->channels.try_emplace({ranks, opened[ranks]++},
                                          static_cast<int64_t>(hub->channels.size()));
    return made.first->second;
  }
  Expected<Request> send(int64_t channel, int64_t peer, const std::byte *data,
                         int64_t bytes) override {
    return post({channel, self, peer}, peer, true, const_cast<std::byte *>(data), bytes);
  }
  Expected<Request> receive(int64_t channel, int64_t peer, std::byte *data,
                            int64_t bytes) override {
    return post({channel, peer, self}, peer, false, data, bytes);
  }
  Expected<bool> test(Request request) override;
  void rest(int64_t microseconds) override;
  void abandon() override;

private:
  Expected<Request> post(const Hub::Key &key, int64_t peer, bool send, std::byte *data,
                         int64_t bytes);
  /// The error for a lost peer. If another rank caused it, names that one, also for ranks that fail
  /// because of this one. Under the mutex.
  Status failsBy(int64_t peer) {
    int64_t first = hub->cause[self] = hub->cause[peer];
    return Status::error("rank " + std::to_string(first) + " (" + hub->hosts[first] +
                         ") has ended");
  }

  const std::shared_ptr<Hub> hub;
  const int64_t self;
  std::map<std::vector<int64_t>, int64_t> opened; ///< channels of these ranks
  std::unordered_map<Request, MessagePtr> underWay;
  Request last = 0;
  uint64_t seen = 0; ///< of Hub::finished
};

} // namespace

Expected<Transport::Request> ThreadTransport::post(const Hub::Key &key, int64_t peer, bool send,
                                                   std::byte *data, int64_t bytes) {
  auto mine = std::make_shared<QueuedMessage>();
  mine->owner = self, mine->peer = peer, mine->send = send, mine->data = data, mine->bytes = bytes;
  MessagePtr other;
  {
    std::lock_guard lock(hub->mutex);
    std::deque<MessagePtr> &queue = hub->queues[key];
    if (queue.empty() || queue.front()->send == send) {
      if (hub->gone[peer])
        return failsBy(peer);
      queue.push_back(mine);
    } else {
      other = std::move(queue.front());
      queue.pop_front();
      other->state = QueuedMessage::copying;
    }
  }
  if (other) {
    bool fits = other->bytes == bytes;
    if (fits && bytes > 0)
      std::memcpy(send ? other->data : data, send ? data : other->data, static_cast<size_t>(bytes));
    else if (!fits)
      other->failure = mine->failure = "rank " + std::to_string(key.from) + " sends " +
                                       std::to_string(send ? bytes : other->bytes) +
                                       " bytes, rank " + std::to_string(key.to) + " receives " +
                                       std::to_string(send ? other->bytes : bytes);
    std::lock_guard lock(hub->mutex);
    for (const MessagePtr &each : {mine, other})
      hub->finish(*each, fits ? QueuedMessage::done : QueuedMessage::failed);
  }
  underWay[++last] = std::move(mine);
  return last;
}

Expected<bool> ThreadTransport::test(Request request) {
  auto found = underWay.find(request);
  assert(found != underWay.end() && "the message is under way");
  switch (found->second->state.load()) {
  case QueuedMessage::done:
    underWay.erase(found);
    return true;
  case QueuedMessage::failed: {
    std::lock_guard lock(hub->mutex);
    return found->second->failure.empty() ? failsBy(found->second->peer)
                                          : Status::error(found->second->failure);
  }
  default:
    return false;
  }
}

void ThreadTransport::rest(int64_t microseconds) {
  std::unique_lock lock(hub->mutex);
  hub->news[self].wait_for(lock, std::chrono::microseconds(microseconds),
                           [&] { return hub->finished[self] != seen; });
  seen = hub->finished[self];
}

void ThreadTransport::abandon() {
  std::unique_lock lock(hub->mutex);
  hub->gone[self] = true;
  for (auto &[key, queue] : hub->queues) {
    if (key.from != self && key.to != self)
      continue;
    for (const MessagePtr &each : queue)
      if (each->owner != self)
        hub->finish(*each, QueuedMessage::failed); // without a reason: the peer is gone
    queue.clear();
  }
  // A peer may be at one of them just now.
  for (auto &[request, message] : underWay)
    while (message->state == QueuedMessage::copying) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  underWay.clear();
}

std::vector<std::unique_ptr<Transport>> makeThreadTransports(int64_t ranks,
                                                             std::vector<std::string> hosts) {
  hosts.resize(static_cast<size_t>(ranks), "localhost");
  auto hub = std::make_shared<Hub>(std::move(hosts));
  std::vector<std::unique_ptr<Transport>> made;
  for (int64_t rank = 0; rank < ranks; ++rank)
    made.push_back(std::make_unique<ThreadTransport>(hub, rank));
  return made;
}

} // namespace tessera::runtime
