//===- Verdict.cpp - Whom a job waits for ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verdict.h"

#include "Guard.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tessera::runtime {

static std::string rankText(int64_t rank, const std::string &host) {
  return "rank " + std::to_string(rank) + " (" + host + ")";
}

std::string goneText(int64_t rank, const std::string &host) {
  return rankText(rank, host) + " has ended";
}

std::string silentText(int64_t rank, const std::string &host) {
  return rankText(rank, host) + " is stopped: it gives no sign of life";
}

double silenceOf(double deadline) {
  return std::clamp(deadline / 2, 0.5, 3.0);
}

/// "all_reduce 3 of 16 f32, call 12, at f.mlir:3".
static std::string callText(const RankState &state) {
  std::string text = state.call->text + ", call " + std::to_string(state.place + 1);
  if (!state.call->loc.empty())
    text += ", at " + state.call->loc;
  return text;
}

namespace {
struct Judge {
  const std::vector<RankReport> &ranks;
  const double deadline;

  bool isDead(const RankReport &rank) const { return rank.isGone || rank.hasLeft; }
  bool isSilent(const RankReport &rank) const {
    return !isDead(rank) && rank.silent >= silenceOf(deadline);
  }
  bool waits(const RankReport &rank, double seconds) const {
    return !isDead(rank) && !isSilent(rank) && rank.state.isWaiting && rank.state.isOpen &&
           rank.state.call && rank.stalled >= seconds;
  }

  /// Members that a waiting rank's call misses.
  std::set<int64_t> missing(const RankState &state) const {
    std::set<int64_t> result;
    for (int64_t member : state.call->group) {
      const RankReport &rank = ranks[member];
      auto calls = rank.state.issued.find(state.call->stream);
      bool hasCalled = calls != rank.state.issued.end() && calls->second > state.place;
      if (isDead(rank) ? !hasCalled || rank.isGone : isSilent(rank) || !hasCalled)
        result.insert(member);
    }
    return result;
  }

  std::string whereIs(int64_t number) const {
    const RankReport &rank = ranks[number];
    std::string text = rankText(number, rank.host);
    const RankState &state = rank.state;
    std::string last =
        state.call ? "; its last call is " + callText(state) : "; it has called nothing yet";
    if (rank.isGone)
      return goneText(number, rank.host) + last;
    if (rank.hasLeft)
      return text + " has left the job" + last;
    if (isSilent(rank))
      return silentText(number, rank.host) + last;
    if (waits(rank, deadline / 2))
      return text + " waits in " + callText(state) + " instead";
    if (state.call && state.isOpen)
      return text + " has not come; it is busy, in " + callText(state);
    return text + " has not come; it is in no call" + last;
  }

  std::optional<std::string> text() const;
};
} // namespace

std::optional<std::string> Judge::text() const {
  std::set<int64_t> gone, missed, idle;
  std::vector<int64_t> waiting;
  bool isLate = false;
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto rank = static_cast<int64_t>(i);
    if (ranks[i].isGone)
      gone.insert(rank);
    bool isLost = isSilent(ranks[i]) && ranks[i].silent >= deadline;
    if (isLost)
      idle.insert(rank);
    isLate |= isLost || waits(ranks[i], deadline);
    if (!waits(ranks[i], deadline / 2))
      continue;
    waiting.push_back(rank);
    for (int64_t member : missing(ranks[i].state)) {
      missed.insert(member);
      if (!waits(ranks[member], deadline / 2))
        idle.insert(member);
    }
  }
  if (gone.empty() && !isLate)
    return std::nullopt;
  // A rank that waits elsewhere may wait for one that does not wait: that is the cause.
  std::set<int64_t> blamed = !gone.empty() ? gone : !idle.empty() ? idle : missed;
  std::string said;
  constexpr size_t kListed = 4;
  size_t listed = 0;
  for (int64_t rank : blamed) {
    if (listed++ == kListed)
      break;
    said += (said.empty() ? "" : "; ") + whereIs(rank);
  }
  if (blamed.size() > kListed)
    said += "; and " + std::to_string(blamed.size() - kListed) + " more ranks";
  // Those that wait for one of them, in the call of the first.
  std::vector<int64_t> with;
  const RankState *in = nullptr;
  double longest = 0;
  for (int64_t rank : waiting) {
    const RankState &state = ranks[rank].state;
    std::set<int64_t> misses = missing(state);
    bool isCaused = blamed.empty() || std::any_of(misses.begin(), misses.end(), [&](int64_t each) {
                      return blamed.count(each) > 0;
                    });
    if (!isCaused || (in && (state.call->stream != in->call->stream || state.place != in->place)))
      continue;
    in = in ? in : &state;
    with.push_back(rank);
    longest = std::max(longest, ranks[rank].stalled);
  }
  if (in) {
    said += (said.empty() ? "" : "; ") + ranksText(with) + (with.size() == 1 ? " waits" : " wait") +
            " in " + callText(*in);
    if (gone.empty())
      said += " for " + std::to_string(std::llround(longest)) + " s";
  }
  return said;
}

std::optional<std::string> verdictOf(const std::vector<RankReport> &ranks, double deadline) {
  return Judge{ranks, deadline}.text();
}

} // namespace tessera::runtime
