//===- OverlapSchedule.cpp - Times of collectives -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OverlapSchedule.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <utility>

using namespace tessera::dist;

/// Collectives that end just in time start earlier by this factor of their modelled time.
static constexpr double kMargin = 1.25;

namespace {

class Scheduler {
public:
  Scheduler(const std::vector<OverlapStep> &steps, const OverlapLimits &limits)
      : steps(steps), limits(limits) {}
  OverlapSchedule run();

private:
  using Kind = OverlapEvent::Kind;
  using Timed = std::pair<double, unsigned>;
  using Earliest = std::priority_queue<Timed, std::vector<Timed>, std::greater<>>;

  bool isCollective(unsigned step) const { return steps[step].queue >= 0; }
  /// Runs directly before its reader: a view, a constant.
  bool isFree(unsigned step) const {
    return steps[step].seconds <= 0 && !isCollective(step) && !steps[step].isOrdered;
  }

  void findSources();
  void findStarts();
  void findLatest();
  void release(unsigned step);
  void finish(unsigned step, double at);
  void emitSources(unsigned step);
  void compute(unsigned step);
  void start(unsigned step);
  bool startDue();
  bool startFirst();
  /// Whether its queue becomes free before a time, at which the most urgent of its waiting
  /// collectives starts.
  bool isFreeBefore(unsigned step, double until) const {
    double freeAt = queueFreeAt[steps[step].queue];
    return freeAt <= now || freeAt < until;
  }
  bool mayStart(unsigned step) const {
    return !steps[step].grows || ahead[steps[step].queue] < limits.mostAhead;
  }
  unsigned nextToCompute() const;
  std::vector<OverlapEvent> withoutIdleStarts() const;

  const std::vector<OverlapStep> &steps;
  const OverlapLimits &limits;
  std::vector<std::vector<unsigned>> sources, users; ///< without the free steps in between
  std::vector<unsigned> missing;                     ///< by step: sources that are not scheduled
  std::vector<double> readyAt, doneAt;               ///< by step
  std::vector<double> latest;     ///< by step: latest start that does not delay the end
  std::vector<double> startAt;    ///< of growing collectives: computing seconds before the start
  std::vector<unsigned> readerOf; ///< of a collective: its first reader in the program
  std::vector<bool> isEmitted, isStarted, isWaited;
  std::vector<double> queueFreeAt;
  std::vector<int> ahead;       ///< by queue
  std::set<unsigned> ready;     ///< steps to compute whose operands are available
  std::set<Timed> urgent;       ///< the same, by `latest`
  Earliest waiting;             ///< to compute or to start, by when operands are available
  std::set<Timed> startable;    ///< collectives that do not grow, by `latest`
  std::set<Timed> deferred;     ///< collectives that grow, by `startAt`
  std::set<unsigned> left;      ///< steps still to compute
  double now = 0, progress = 0; ///< seconds elapsed, and those spent on computation
  std::vector<OverlapEvent> events;
};

} // namespace

/// Removes free steps from the graph: their readers depend on their sources instead.
void Scheduler::findSources() {
  size_t count = steps.size();
  sources.resize(count);
  users.resize(count);
  missing.assign(count, 0);
  int64_t lastOrdered = -1;
  for (unsigned step = 0; step < count; ++step) {
    std::vector<unsigned> &all = sources[step];
    for (unsigned source : steps[step].sources)
      if (isFree(source))
        all.insert(all.end(), sources[source].begin(), sources[source].end());
      else
        all.push_back(source);
    if (steps[step].isOrdered)
      if (int64_t previous = std::exchange(lastOrdered, step); previous >= 0)
        all.push_back(static_cast<unsigned>(previous));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (isFree(step))
      continue;
    missing[step] = all.size();
    for (unsigned source : all)
      users[source].push_back(step);
  }
}

/// A growing collective ends when the computation before its first reader ends, or when the next
/// one on its queue starts.
void Scheduler::findStarts() {
  std::vector<double> before(steps.size() + 1, 0);
  int queues = 0;
  for (size_t step = 0; step < steps.size(); ++step) {
    before[step + 1] = before[step] + (isCollective(step) ? 0 : steps[step].seconds);
    queues = std::max(queues, steps[step].queue + 1);
    for (int queue : steps[step].uses)
      queues = std::max(queues, queue + 1);
  }
  queueFreeAt.assign(queues, 0);
  ahead.assign(queues, 0);
  startAt.assign(steps.size(), 0);
  readerOf.assign(steps.size(), static_cast<unsigned>(steps.size()));
  std::vector<unsigned> growing;
  for (unsigned step = 0; step < steps.size(); ++step) {
    if (!isCollective(step))
      continue;
    if (!users[step].empty())
      readerOf[step] = users[step].front();
    if (steps[step].grows)
      growing.push_back(step);
  }
  std::sort(growing.begin(), growing.end(), [&](unsigned a, unsigned b) {
    return std::pair(readerOf[a], a) > std::pair(readerOf[b], b);
  });
  std::vector<double> nextStart(queues, std::numeric_limits<double>::infinity());
  for (unsigned step : growing) {
    double &next = nextStart[steps[step].queue];
    startAt[step] = std::min(next, before[readerOf[step]]) - kMargin * steps[step].seconds;
    next = startAt[step];
  }
}

/// The earliest possible end is that of all computation, or of the longest path. The collectives
/// that nothing reads, such as gathers of updated weights, take turns on their queue: of many only
/// one can be the last.
void Scheduler::findLatest() {
  std::vector<double> earliestEnd(steps.size(), 0);
  double end = 0, longest = 0;
  std::vector<std::vector<unsigned>> last(queueFreeAt.size()); // by queue
  for (unsigned step = 0; step < steps.size(); ++step) {
    for (unsigned source : sources[step])
      earliestEnd[step] = std::max(earliestEnd[step], earliestEnd[source]);
    earliestEnd[step] += steps[step].seconds;
    longest = std::max(longest, earliestEnd[step]);
    end += isCollective(step) ? 0 : steps[step].seconds;
    if (isCollective(step) && users[step].empty())
      last[steps[step].queue].push_back(step);
  }
  latest.assign(steps.size(), std::max(end, longest)); // of ends, until each is visited
  for (std::vector<unsigned> &turns : last) {
    std::sort(turns.begin(), turns.end(), [&](unsigned a, unsigned b) {
      return std::pair(earliestEnd[a], a) > std::pair(earliestEnd[b], b);
    });
    double free = std::max(end, longest);
    for (unsigned step : turns) {
      latest[step] = free;
      free -= steps[step].seconds;
    }
  }
  for (size_t step = steps.size(); step-- > 0;) {
    for (unsigned user : users[step])
      latest[step] = std::min(latest[step], latest[user]);
    latest[step] -= steps[step].seconds;
  }
}

/// Queues a step whose sources are all scheduled.
void Scheduler::release(unsigned step) {
  if (isCollective(step) && steps[step].grows && readyAt[step] <= now)
    deferred.insert({startAt[step], step});
  else if (readyAt[step] > now)
    waiting.push({readyAt[step], step});
  else if (isCollective(step))
    startable.insert({latest[step], step});
  else {
    ready.insert(step);
    urgent.insert({latest[step], step});
  }
}

void Scheduler::finish(unsigned step, double at) {
  doneAt[step] = at;
  for (unsigned user : users[step]) {
    readyAt[user] = std::max(readyAt[user], at);
    if (--missing[user] == 0)
      release(user);
  }
}

/// Emits the free steps that a step reads, and waits for the collectives that they or the step
/// read.
void Scheduler::emitSources(unsigned step) {
  for (unsigned source : steps[step].sources) {
    if (isCollective(source) && isStarted[source] && !isWaited[source]) {
      isWaited[source] = true;
      ahead[steps[source].queue] -= steps[source].grows;
      events.push_back({Kind::wait, source});
    } else if (isFree(source) && !isEmitted[source]) {
      isEmitted[source] = true;
      emitSources(source);
      events.push_back({Kind::run, source});
    }
  }
}

void Scheduler::compute(unsigned step) {
  now = std::max(now, readyAt[step]);
  for (int queue : steps[step].uses)
    now = std::max(now, queueFreeAt[queue]);
  emitSources(step);
  events.push_back({Kind::run, step});
  isEmitted[step] = true;
  ready.erase(step);
  urgent.erase({latest[step], step});
  left.erase(step);
  now += steps[step].seconds;
  progress += steps[step].seconds;
  finish(step, now);
}

void Scheduler::start(unsigned step) {
  emitSources(step);
  events.push_back({Kind::start, step});
  isEmitted[step] = isStarted[step] = true;
  double &freeAt = queueFreeAt[steps[step].queue];
  freeAt = std::max({freeAt, now, readyAt[step]}) + steps[step].seconds;
  ahead[steps[step].queue] += steps[step].grows;
  finish(step, freeAt);
}

/// Starts the most urgent collective, if any, that is due now or becomes due while the next step
/// computes. Queues are kept busy, but not filled further ahead: collectives that become ready
/// meanwhile may be more urgent.
bool Scheduler::startDue() {
  unsigned next = nextToCompute();
  double computing = next < steps.size() ? steps[next].seconds : 0;
  double until = next < steps.size() ? now + computing
                 : waiting.empty()   ? std::numeric_limits<double>::infinity()
                                     : waiting.top().first;
  std::optional<Timed> first;
  for (const Timed &each : startable)
    if (isFreeBefore(each.second, until)) {
      first = each;
      break;
    }
  auto taken = deferred.end();
  for (auto it = deferred.begin(); it != deferred.end() && it->first < progress + computing; ++it)
    if (Timed own(latest[it->second], it->second);
        mayStart(it->second) && (!first || own < *first)) {
      first = own;
      taken = it;
    }
  if (!first)
    return false;
  if (taken == deferred.end())
    startable.erase(*first);
  else
    deferred.erase(taken);
  start(first->second);
  return true;
}

/// Starts the deferred collective with the earliest reader, regardless of its time, if the next
/// step of the program waits for it, or nothing else is in progress.
bool Scheduler::startFirst() {
  auto first = std::min_element(deferred.begin(), deferred.end(), [&](auto &a, auto &b) {
    return std::pair(readerOf[a.second], a.second) < std::pair(readerOf[b.second], b.second);
  });
  if (first == deferred.end() ||
      (!waiting.empty() && !left.empty() && readerOf[first->second] > *left.begin()))
    return false;
  unsigned step = first->second;
  deferred.erase(first);
  start(step);
  return true;
}

/// The next step whose operands are available; the number of steps if there is none.
unsigned Scheduler::nextToCompute() const {
  if (ready.empty() || (!limits.reorders && *ready.begin() != *left.begin()))
    return static_cast<unsigned>(steps.size());
  unsigned first = *ready.begin();
  if (limits.reorders && limits.prioritizesCritical &&
      urgent.begin()->first < now + steps[first].seconds)
    return urgent.begin()->second;
  return first;
}

OverlapSchedule Scheduler::run() {
  auto count = static_cast<unsigned>(steps.size());
  findSources();
  findStarts();
  findLatest();
  readyAt.assign(count, 0);
  doneAt.assign(count, 0);
  isEmitted.assign(count, false);
  isStarted.assign(count, false);
  isWaited.assign(count, false);
  for (unsigned step = 0; step < count; ++step)
    if (!isFree(step) && !isCollective(step))
      left.insert(step);
  for (unsigned step = 0; step < count; ++step)
    if (!isFree(step) && missing[step] == 0)
      release(step);
  for (;;) {
    while (!waiting.empty() && waiting.top().first <= now) {
      unsigned step = waiting.top().second;
      waiting.pop();
      release(step);
    }
    if (startDue())
      continue;
    if (unsigned step = nextToCompute(); step < count) {
      compute(step);
      continue;
    }
    // No step can run now. The next step may wait for a deferred collective.
    if (startFirst())
      continue;
    if (waiting.empty())
      break;
    now = std::max(now, waiting.top().first);
  }
  for (unsigned step = 0; step < count; ++step)
    if (isFree(step) && !isEmitted[step]) {
      isEmitted[step] = true;
      emitSources(step);
      events.push_back({Kind::run, step});
    }
  for (unsigned step = 0; step < count; ++step)
    if (isStarted[step] && !isWaited[step])
      events.push_back({Kind::wait, step});
  double end = now;
  for (double done : doneAt)
    end = std::max(end, done);
  return {withoutIdleStarts(), end};
}

/// Merges a start and its wait if nothing runs in between.
std::vector<OverlapEvent> Scheduler::withoutIdleStarts() const {
  // By step: the index of its event; by event: the computing and communicating events before it.
  std::vector<size_t> startOf(steps.size());
  std::vector<bool> isHidden(steps.size());
  std::vector<size_t> computing(events.size() + 1, 0);
  std::vector<std::vector<size_t>> starts(queueFreeAt.size() + 1);
  size_t allStarts = 0;
  std::map<int, size_t> ofQueue;
  std::vector<std::pair<size_t, size_t>> startsBefore(events.size() + 1); // all, of its queue
  for (size_t i = 0; i < events.size(); ++i) {
    const OverlapStep &step = steps[events[i].step];
    computing[i + 1] = computing[i] + (events[i].kind == Kind::run && step.seconds > 0 ? 1 : 0);
    if (events[i].kind == Kind::start) {
      startOf[events[i].step] = i;
      startsBefore[i] = {++allStarts, ++ofQueue[step.queue]};
    } else if (events[i].kind == Kind::wait) {
      size_t from = startOf[events[i].step];
      bool others =
          allStarts - startsBefore[from].first > ofQueue[step.queue] - startsBefore[from].second;
      isHidden[events[i].step] = computing[i] > computing[from] || others;
    }
  }
  std::vector<OverlapEvent> result;
  for (const OverlapEvent &event : events)
    if (event.kind == Kind::run || isHidden[event.step])
      result.push_back(event);
    else if (event.kind == Kind::start)
      result.push_back({Kind::run, event.step});
  return result;
}

OverlapSchedule tessera::dist::scheduleOverlap(const std::vector<OverlapStep> &steps,
                                               const OverlapLimits &limits) {
  return Scheduler(steps, limits).run();
}
