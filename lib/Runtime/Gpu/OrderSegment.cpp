//===- OrderSegment.cpp - The waits that accesses make necessary ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include <algorithm>
#include <map>

namespace tessera::runtime::gpu {

namespace {

/// For each stream, the last operation of it that is known to be done.
using Known = std::vector<int64_t>;

/// The last writer and the readers since, of an interval; operations by index.
struct Users {
  int64_t end = 0;
  int64_t writer = -1;
  std::vector<int64_t> readers; ///< the latest of each stream
};

class Orderer {
public:
  Orderer(Segment &segment, int64_t numStreams)
      : operations(segment.operations), numStreams(numStreams),
        now(numStreams, Known(numStreams, -1)) {}

  int64_t run() {
    fork();
    for (size_t i = 0; i < operations.size(); ++i)
      order(static_cast<int64_t>(i));
    joinAll();
    return numberEvents();
  }

private:
  void fork();
  void joinAll();
  void order(int64_t index);
  /// Whom an access must wait for.
  void conflicts(const Access &access, int64_t index, std::vector<int64_t> &found);
  void waitFor(int64_t index, const std::vector<int64_t> &found);
  int64_t numberEvents();
  void cutAt(int64_t address);

  std::vector<Operation> &operations;
  int64_t numStreams;
  std::vector<Known> now;                 ///< by stream
  std::vector<Known> after;               ///< by operation, itself included
  std::vector<std::vector<int64_t>> deps; ///< by operation: those it waits for by event
  std::map<int64_t, Users> users;         ///< by begin; disjoint intervals
};

} // namespace

/// Streams beside 0 begin behind its first operation, which exists for that alone.
void Orderer::fork() {
  std::vector<bool> used(numStreams);
  for (const Operation &operation : operations)
    used[operation.stream] = true;
  if (std::count(used.begin() + 1, used.end(), true) == 0)
    return;
  const Step *step = operations.front().step;
  Operation first;
  first.step = step;
  operations.insert(operations.begin(), std::move(first));
  // As if it had written everything that another stream touches first.
  for (int64_t stream = 1; stream < numStreams; ++stream)
    if (used[stream]) {
      auto it = std::find_if(operations.begin(), operations.end(),
                             [&](const Operation &each) { return each.stream == stream; });
      it->waits = {0}; // by operation, until events are numbered
    }
}

void Orderer::joinAll() {
  std::vector<int64_t> last(numStreams, -1);
  for (size_t i = 0; i < operations.size(); ++i)
    last[operations[i].stream] = static_cast<int64_t>(i);
  std::vector<int64_t> found;
  for (int64_t stream = 1; stream < numStreams; ++stream)
    if (last[stream] >= 0)
      found.push_back(last[stream]);
  if (found.empty())
    return;
  Operation end;
  end.step = operations.back().step;
  operations.push_back(std::move(end));
  deps.emplace_back();
  after.emplace_back();
  waitFor(static_cast<int64_t>(operations.size()) - 1, found);
}

void Orderer::cutAt(int64_t address) {
  auto it = users.lower_bound(address);
  if (it == users.begin())
    return;
  --it;
  if (it->first < address && address < it->second.end) {
    Users upper = it->second;
    it->second.end = address;
    users.emplace(address, std::move(upper));
  }
}

void Orderer::conflicts(const Access &access, int64_t index, std::vector<int64_t> &found) {
  if (access.bytes <= 0 || spaceOf(access.begin) == kConstants)
    return;
  int64_t end = access.begin + access.bytes;
  cutAt(access.begin);
  cutAt(end);
  auto first = users.lower_bound(access.begin), last = users.lower_bound(end);
  for (auto it = first; it != last; ++it) {
    if (it->second.writer >= 0)
      found.push_back(it->second.writer);
    if (access.write)
      found.insert(found.end(), it->second.readers.begin(), it->second.readers.end());
  }
  if (access.write) {
    users.erase(first, last);
    users[access.begin] = {end, index, {}};
    return;
  }
  int64_t at = access.begin, stream = operations[index].stream;
  for (auto it = first; it != last; at = it->second.end, ++it) {
    if (at < it->first)
      users[at] = {it->first, -1, {index}};
    auto &readers = it->second.readers;
    auto same = std::find_if(readers.begin(), readers.end(),
                             [&](int64_t reader) { return operations[reader].stream == stream; });
    if (same != readers.end())
      *same = index;
    else
      readers.push_back(index);
  }
  if (at < end)
    users[at] = {end, -1, {index}};
}

void Orderer::waitFor(int64_t index, const std::vector<int64_t> &found) {
  int64_t stream = operations[index].stream;
  Known &known = now[stream];
  // The latest first: what it knows need not be waited for again.
  std::vector<int64_t> sorted(found);
  std::sort(sorted.rbegin(), sorted.rend());
  for (int64_t other : sorted) {
    if (other == index || known[operations[other].stream] >= other)
      continue;
    deps[index].push_back(other);
    for (int64_t i = 0; i < numStreams; ++i)
      known[i] = std::max(known[i], after[other][i]);
  }
  known[stream] = index;
  after[index] = known;
}

void Orderer::order(int64_t index) {
  deps.emplace_back();
  after.emplace_back();
  Operation &operation = operations[index];
  std::vector<int64_t> found = std::move(operation.waits);
  operation.waits.clear();
  if (operation.accesses)
    for (const Access &access : *operation.accesses)
      conflicts(access, index, found);
  waitFor(index, found);
}

int64_t Orderer::numberEvents() {
  // A wait refers to what was recorded when it is issued, so an event is free again behind its last
  // wait.
  std::vector<int64_t> lastWait(operations.size(), -1);
  for (size_t i = 0; i < operations.size(); ++i)
    for (int64_t other : deps[i])
      lastWait[other] = static_cast<int64_t>(i);
  int64_t count = 0;
  std::vector<int64_t> free;
  for (size_t i = 0; i < operations.size(); ++i) {
    for (int64_t other : deps[i]) {
      operations[i].waits.push_back(operations[other].record);
      if (lastWait[other] == static_cast<int64_t>(i))
        free.push_back(operations[other].record);
    }
    if (lastWait[i] < 0)
      continue;
    if (free.empty())
      free.push_back(count++);
    operations[i].record = free.back();
    free.pop_back();
  }
  return count;
}

int64_t orderSegment(Segment &segment, int64_t numStreams) {
  return segment.operations.empty() ? 0 : Orderer(segment, numStreams).run();
}

} // namespace tessera::runtime::gpu
