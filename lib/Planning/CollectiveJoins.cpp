//===- CollectiveJoins.cpp - Join collectives into buckets ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buckets are filled in program order. The level of an op in a group is the number of
// the first bucket that it may join: one beyond the newest bucket that it depends on.
// It joins the newest bucket, but a small one that others of its group depend on (the
// mean of a second norm) the oldest, so that these join old ones, too. Buckets of several groups
// can still form a dependence cycle,
//
//   a1 -> b1, b2 -> a2     with buckets {a1, a2} and {b1, b2}
//
// so a list schedule over buckets and ops finds the new order. If nothing is ready, the
// schedule takes the first remaining op of a bucket: its bucket is emitted with only
// the members that are ready.
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/CollectiveJoins.h"

#include "llvm/ADT/STLExtras.h"

#include <array>
#include <limits>
#include <queue>

using namespace tessera::dist;
using llvm::SmallVector;

namespace {

class Joiner {
public:
  Joiner(std::vector<JoinItem> given, JoinBudget *budget)
      : items(std::move(given)), budget(budget) {
    for (const JoinItem &item : items)
      if (item.candidate)
        groups = std::max(groups, item.candidate->group + 1);
  }

  std::vector<SmallVector<size_t>> run() {
    if (groups == 0)
      return {};
    fillBuckets();
    if (llvm::all_of(buckets, [](const Bucket &bucket) { return bucket.members.size() < 2; }))
      return {};
    schedule();
    return std::move(order);
  }

private:
  /// Collectives that become one, by position in the block, ascending.
  struct Bucket {
    SmallVector<size_t> members;
    int64_t bytes = 0;
    int64_t first = 0, last = 0; ///< times of its members
    double freed = 0;            ///< by all of them
    SmallVector<size_t> ready;   ///< members whose operands are scheduled
  };

  void fillBuckets() {
    bucketOf.assign(items.size(), kNone);
    std::vector<SmallVector<size_t>> ofGroup(groups); ///< buckets, oldest first
    findLeading();
    std::vector<int64_t> levels(items.size() * groups, 0);
    for (size_t i = 0; i < items.size(); ++i) {
      int64_t *own = &levels[i * groups];
      for (size_t producer : items[i].producers)
        for (int64_t g = 0; g < groups; ++g)
          own[g] = std::max(own[g], levels[producer * groups + g]);
      if (!items[i].candidate)
        continue;
      const JoinCandidate &candidate = *items[i].candidate;
      auto [group, bytes, limit] = std::tie(candidate.group, candidate.bytes, candidate.limit);
      SmallVector<size_t> &existing = ofGroup[group];
      auto count = static_cast<int64_t>(existing.size()), at = count;
      int64_t oldest = leads[i] && bytes <= kSmallBytes ? own[group] : count - 1;
      for (int64_t number = std::max(own[group], oldest); number < count && at == count; ++number) {
        Bucket &bucket = buckets[existing[number]];
        if (bytes <= limit && bucket.bytes <= limit - bytes && reserve(bucket, candidate))
          at = number;
      }
      if (at == count) {
        existing.push_back(buckets.size());
        buckets.emplace_back().first = candidate.time;
      }
      size_t into = existing[at];
      buckets[into].members.push_back(i);
      buckets[into].bytes += bytes;
      buckets[into].last = candidate.time;
      buckets[into].freed += candidate.freed;
      bucketOf[i] = into;
      own[group] = at + 1;
    }
  }

  /// Finds the collectives that others of their group depend on.
  void findLeading() {
    leads.assign(items.size(), false);
    std::vector<bool> reached(items.size() * groups); ///< whether a candidate of a group follows
    for (size_t i = items.size(); i-- > 0;) {
      if (items[i].candidate) {
        leads[i] = reached[i * groups + items[i].candidate->group];
        reached[i * groups + items[i].candidate->group] = true;
      }
      for (size_t producer : items[i].producers)
        for (int64_t g = 0; g < groups; ++g)
          if (reached[i * groups + g])
            reached[producer * groups + g] = true;
    }
  }

  /// Whether the budget allows a join, which keeps operands live for longer and produces results
  /// earlier.
  bool reserve(const Bucket &bucket, const JoinCandidate &candidate) {
    if (!budget)
      return true;
    struct Interval {
      int64_t from, to;
      double bytes;
    };
    std::array<Interval, 2> added{Interval{bucket.last + 1, candidate.time, bucket.freed},
                                  Interval{bucket.first, candidate.time - 1, candidate.taken}};
    auto isEmpty = [](const Interval &each) { return each.bytes <= 0 || each.from > each.to; };
    for (const Interval &each : added)
      if (!isEmpty(each) && budget->profile.peak(each.from, each.to) + each.bytes > budget->bytes)
        return false;
    for (const Interval &each : added)
      if (!isEmpty(each))
        budget->profile.add(each.from, each.to, each.bytes);
    return true;
  }

  /// Emits a bucket or an op at the position of its last member.
  void push(SmallVector<size_t> unit) {
    size_t place = unit.back();
    units[place] = std::move(unit);
    queue.push(place);
  }

  void becomesReady(size_t i) {
    if (bucketOf[i] == kNone)
      return push({i});
    Bucket &bucket = buckets[bucketOf[i]];
    bucket.ready.push_back(i);
    if (bucket.ready.size() == bucket.members.size())
      flush(bucket);
  }

  /// Schedules the members that are ready; the others stay in the bucket.
  void flush(Bucket &bucket) {
    llvm::sort(bucket.ready);
    llvm::erase_if(bucket.members, [&](size_t i) {
      return std::binary_search(bucket.ready.begin(), bucket.ready.end(), i);
    });
    push(std::exchange(bucket.ready, {}));
  }

  void schedule() {
    units.resize(items.size());
    std::vector<size_t> waiting(items.size());
    std::vector<bool> done(items.size());
    consumers.resize(items.size());
    for (size_t i = 0; i < items.size(); ++i)
      for (size_t producer : items[i].producers)
        consumers[producer].push_back(i);
    for (size_t i = 0; i < items.size(); ++i)
      waiting[i] = items[i].producers.size();
    for (size_t i = 0; i < items.size(); ++i)
      if (waiting[i] == 0)
        becomesReady(i);
    for (size_t first = 0;;) {
      while (!queue.empty()) {
        SmallVector<size_t> unit = std::move(units[queue.top()]);
        queue.pop();
        for (size_t i : unit)
          done[i] = true;
        for (size_t i : unit)
          for (size_t consumer : consumers[i])
            if (--waiting[consumer] == 0)
              becomesReady(consumer);
        order.push_back(std::move(unit));
      }
      while (first < items.size() && done[first])
        ++first;
      if (first == items.size())
        return;
      flush(buckets[bucketOf[first]]);
    }
  }

  /// Operands up to this size are sent in about the latency of a message.
  static constexpr int64_t kSmallBytes = int64_t(256) << 10;
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  std::vector<JoinItem> items;
  JoinBudget *budget; ///< null: no budget
  int64_t groups = 0;
  std::vector<SmallVector<size_t, 4>> consumers; ///< by position
  std::vector<Bucket> buckets;
  std::vector<size_t> bucketOf;
  std::vector<bool> leads; ///< by position: whether another of its group depends on it
  std::vector<SmallVector<size_t>> units; ///< ready ones, by the position of their last member
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> queue;
  std::vector<SmallVector<size_t>> order;
};

} // namespace

bool tessera::dist::isJoined(sharding::CollectiveKind kind) {
  using enum sharding::CollectiveKind;
  return kind == all_reduce || kind == all_gather || kind == reduce_scatter || isMove(kind);
}

bool tessera::dist::isMove(sharding::CollectiveKind kind) {
  using enum sharding::CollectiveKind;
  return kind == all_to_all || kind == permute || kind == exchange || kind == halo_exchange;
}

Meetings tessera::dist::meetingsOf(sharding::CollectiveKind kind, const sharding::AxisList &axes,
                                   const sharding::TensorSharding &source,
                                   const sharding::TensorSharding &target) {
  bool isExchange = kind == sharding::CollectiveKind::exchange;
  if (!isExchange && kind != sharding::CollectiveKind::permute)
    return {{axes, {}}};
  Meetings result;
  auto addAxes = [&](const sharding::AxisList &list) {
    for (const sharding::AxisRef &axis : list)
      result.insert({{{axis.axis, 1, 0}}, {}});
  };
  auto isIn = [](const sharding::TensorSharding &sharding, size_t d) {
    return llvm::find_if(sharding.windows, [&](const sharding::Window &window) {
      return window.dim == static_cast<int64_t>(d);
    });
  };
  auto haveSameWindow = [&](size_t d) {
    auto from = isIn(source, d), to = isIn(target, d);
    bool isPlain = from == source.windows.end();
    return isPlain == (to == target.windows.end()) && (isPlain || *from == *to);
  };
  for (size_t d = 0; d < source.dims.size(); ++d) {
    if (source.dims[d] == target.dims[d] && haveSameWindow(d))
      continue;
    if (!isExchange) {
      result.insert({source.dims[d], target.dims[d]});
      continue;
    }
    addAxes(source.dims[d]);
    addAxes(target.dims[d]);
  }
  if (isExchange && source.partial != target.partial) {
    addAxes(source.partialAxes());
    addAxes(target.partialAxes());
  }
  return result;
}

std::vector<SmallVector<size_t>> tessera::dist::joinCollectives(std::vector<JoinItem> items,
                                                                JoinBudget *budget) {
  return Joiner(std::move(items), budget).run();
}
