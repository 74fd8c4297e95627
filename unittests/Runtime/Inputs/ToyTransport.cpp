//===- ToyTransport.cpp - A third-party backend ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Like an out-of-tree backend: includes only the C interface. Ranks are threads of one
// process; a send copies its data into a queue that the receiver polls.
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/tessera_groups.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;
std::mutex mutex;
/// By job, channel, sender and receiver.
std::map<std::tuple<std::string, int64_t, int64_t, int64_t>, std::deque<Bytes>> queues;

struct Receive {
  int64_t channel, peer;
  unsigned char *data;
  int64_t bytes;
};
struct Toy {
  std::string job, message;
  int64_t rank;
  std::vector<const char *> hosts;
  std::map<std::vector<int64_t>, int64_t> opened;
  std::deque<std::pair<uint64_t, Receive>> receives; ///< in progress, in order
  std::map<uint64_t, bool> done;
  uint64_t last = 0;
};

Toy &of(void *self) {
  return *static_cast<Toy *>(self);
}

int openChannel(void *self, const int64_t *ranks, int64_t count, int64_t *channel) {
  std::vector<int64_t> members(ranks, ranks + count);
  int64_t number = of(self).opened[members]++;
  for (int64_t rank : members)
    number = number * 31 + rank + 1;
  *channel = number;
  return 0;
}

int send(void *self, int64_t channel, int64_t peer, const void *data, int64_t bytes,
         uint64_t *request) {
  Bytes copy(static_cast<size_t>(bytes));
  if (bytes > 0)
    std::memcpy(copy.data(), data, copy.size());
  std::lock_guard<std::mutex> lock(mutex);
  queues[{of(self).job, channel, of(self).rank, peer}].push_back(std::move(copy));
  of(self).done[ *request = ++of(self).last] = true;
  return 0;
}

int receive(void *self, int64_t channel, int64_t peer, void *data, int64_t bytes,
            uint64_t *request) {
  of(self).done[ *request = ++of(self).last] = false;
  of(self).receives.push_back(
      {*request, {channel, peer, static_cast<unsigned char *>(data), bytes}});
  return 0;
}

int test(void *self, uint64_t request, int *isDone) {
  Toy &toy = of(self);
  std::lock_guard<std::mutex> lock(mutex);
  for (auto each = toy.receives.begin(); each != toy.receives.end();) {
    auto &[number, wanted] = *each;
    std::deque<Bytes> &queue = queues[{toy.job, wanted.channel, wanted.peer, toy.rank}];
    if (queue.empty()) {
      ++each;
      continue;
    }
    if (static_cast<int64_t>(queue.front().size()) != wanted.bytes) {
      toy.message = "rank " + std::to_string(wanted.peer) + " sends another size";
      return 1;
    }
    if (wanted.bytes > 0)
      std::memcpy(wanted.data, queue.front().data(), queue.front().size());
    queue.pop_front();
    toy.done[number] = true;
    each = toy.receives.erase(each);
  }
  *isDone = toy.done.at(request);
  if (*isDone)
    toy.done.erase(request);
  return 0;
}

void abandon(void *self) {
  of(self).receives.clear();
}
void close(void *self) {
  delete static_cast<Toy *>(self);
}
const char *error(void *self) {
  return of(self).message.c_str();
}

int open(const tessera_group_options *options, tessera_transport *transport, char *message,
         size_t size) {
  if (options->size > 100) {
    std::snprintf(message, size, "%lld ranks are too many", static_cast<long long>(options->size));
    return 1;
  }
  Toy *toy = new Toy;
  toy->job = options->address;
  toy->rank = options->rank;
  toy->hosts.assign(static_cast<size_t>(options->size), "toybox");
  *transport = {sizeof(*transport),
                toy,
                options->rank,
                options->size,
                toy->hosts.data(),
                openChannel,
                send,
                receive,
                test,
                nullptr,
                abandon,
                close,
                error};
  return 0;
}

} // namespace

extern "C" __attribute__((visibility("default"))) const char *
tessera_transport_entry(tessera_open_transport *how) {
  *how = open;
  return "toy";
}
