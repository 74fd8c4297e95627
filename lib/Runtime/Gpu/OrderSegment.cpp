//===- OrderSegment.cpp - Insert the waits that accesses require ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AccessMap.h"
#include "Plan.h"

#include <algorithm>

namespace tessera::runtime::gpu {

namespace {

/// By stream, the last operation that is known to be done.
using StreamClock = std::vector<int64_t>;

/// An operation, by its index, and its stream.
struct Issued {
  int64_t operation;
  int64_t stream;
};

class Orderer {
public:
  Orderer(Segment &segment, int64_t numStreams)
      : operations(segment.operations), numStreams(numStreams),
        now(numStreams, StreamClock(numStreams, -1)) {}

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
  /// Finds the operations that an access must wait for.
  void conflicts(const Access &access, int64_t index, std::vector<int64_t> &found);
  void waitFor(int64_t index, const std::vector<int64_t> &found);
  int64_t numberEvents();

  std::vector<Operation> &operations;
  int64_t numStreams;
  std::vector<StreamClock> now;           ///< by stream
  std::vector<StreamClock> after;         ///< by operation, including itself
  std::vector<std::vector<int64_t>> deps; ///< by operation: those it waits for by events
  AccessMap<int64_t, Issued> touched;
};

} // namespace

/// Streams other than 0 begin after its first operation, which exists only for that.
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
  // As if the operation had written all bytes that another stream accesses first.
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

void Orderer::conflicts(const Access &access, int64_t index, std::vector<int64_t> &found) {
  if (access.bytes <= 0 || spaceOf(access.begin) == kConstants)
    return;
  int64_t end = access.begin + access.bytes;
  for (const auto &[begin, interval] : touched.within(access.begin, end)) {
    if (interval.writer)
      found.push_back(interval.writer->operation);
    if (access.write)
      for (const Issued &reader : interval.readers)
        found.push_back(reader.operation);
  }
  Issued by{index, operations[index].stream};
  if (access.write)
    touched.write(access.begin, end, by);
  else
    touched.read(access.begin, end, by);
}

void Orderer::waitFor(int64_t index, const std::vector<int64_t> &found) {
  int64_t stream = operations[index].stream;
  StreamClock &known = now[stream];
  // The latest first: its known operations need no other wait.
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
  // A wait refers to the last record at the time of its issue, so an event can be reused after its
  // last wait.
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
