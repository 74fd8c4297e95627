//===- Verdict.cpp - Ranks for which a job waits --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verdict.h"

#include "Guard.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tessera::runtime {

static std::string rankText(int64_t rank, const std::string &host) {
  return "rank " + std::to_string(rank) + " (" + host + ")";
}

std::string lostRankText(int64_t rank, const std::string &host) {
  return rankText(rank, host) + " has ended";
}

std::string silentText(int64_t rank, const std::string &host) {
  return rankText(rank, host) + " is stopped: it sends no reports";
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

/// The least duration of a deadlock before it is reported. Reports are at most kFresh old, so that
/// all of these ranks have waited at the same time.
constexpr double kStuck = 0.7, kFresh = 0.45, kSettled = 5;

namespace {
struct Judge {
  const std::vector<RankReport> &ranks;
  const double deadline;
  const Calls calls;
  double patience = deadline / 2; ///< shorter waits are not reported

  bool isDead(const RankReport &rank) const { return rank.isGone || rank.hasLeft; }
  bool isSilent(const RankReport &rank) const {
    return !isDead(rank) && rank.silent >= silenceOf(deadline);
  }
  bool waits(const RankReport &rank, double seconds) const {
    return !isDead(rank) && !isSilent(rank) && rank.state.isWaiting && rank.state.isOpen &&
           rank.state.call && rank.stalled >= seconds;
  }

  /// Members missing in a waiting rank's call.
  std::set<int64_t> missing(const RankState &state) const {
    std::set<int64_t> result;
    for (int64_t member : state.call->group) {
      const RankReport &rank = ranks[member];
      auto calls = rank.state.issued.find(state.call->stream);
      bool hasCalled = calls != rank.state.issued.end() && calls->second > state.place;
      bool leftDuringCall = rank.hasLeft && rank.state.isOpen && rank.state.call &&
                            rank.state.call->stream == state.call->stream &&
                            rank.state.place <= state.place;
      if (isDead(rank) ? !hasCalled || leftDuringCall || rank.isGone : isSilent(rank) || !hasCalled)
        result.insert(member);
    }
    return result;
  }

  /// Ranks that have left although others wait for them.
  std::set<int64_t> deserted() const {
    std::set<int64_t> result;
    for (const RankReport &rank : ranks)
      if (waits(rank, 0))
        for (int64_t member : missing(rank.state))
          if (ranks[member].hasLeft)
            result.insert(member);
    return result;
  }

  /// The largest set of ranks each of which waits for another one in the set.
  std::set<int64_t> stuck() const {
    std::set<int64_t> result;
    for (size_t i = 0; i < ranks.size(); ++i)
      if (waits(ranks[i], kStuck) && ranks[i].silent <= kFresh && ranks[i].state.open == 1)
        result.insert(static_cast<int64_t>(i));
    auto waitsForOneOf = [&](int64_t rank) {
      std::set<int64_t> misses = missing(ranks[rank].state);
      return std::any_of(misses.begin(), misses.end(),
                         [&](int64_t each) { return result.count(each) > 0; });
    };
    while (std::erase_if(result, [&](int64_t rank) { return !waitsForOneOf(rank); }) > 0)
      ;
    return result;
  }

  /// Whether the other ranks in calls have also waited for a moment, so that the message includes
  /// them; on a busy machine one may be late. This wait is bounded.
  bool isSettled(const std::set<int64_t> &blocked) const {
    for (int64_t rank : blocked)
      if (ranks[rank].stalled >= kSettled)
        return true;
    for (size_t i = 0; i < ranks.size(); ++i)
      if (!isDead(ranks[i]) && !isSilent(ranks[i]) && ranks[i].state.isOpen &&
          ranks[i].stalled < kStuck)
        return false;
    return true;
  }

  /// Among ranks that all wait, those in another call than most.
  std::set<int64_t> elsewhere(std::set<int64_t> blamed) const {
    std::map<std::pair<std::string, int64_t>, std::set<int64_t>> waiting; ///< by call
    for (size_t i = 0; i < ranks.size(); ++i)
      if (waits(ranks[i], patience))
        waiting[{ranks[i].state.call->stream, ranks[i].state.place}].insert(
            static_cast<int64_t>(i));
    const std::set<int64_t> *most = nullptr;
    for (const auto &[call, in] : waiting)
      if (!most || in.size() > most->size() ||
          (in.size() == most->size() && *in.begin() < *most->begin()))
        most = &in;
    std::set<int64_t> others = blamed;
    if (most)
      std::erase_if(others, [&](int64_t rank) { return most->count(rank) > 0; });
    return others.empty() ? blamed : others;
  }

  std::string whereIs(int64_t number) const {
    const RankReport &rank = ranks[number];
    std::string text = rankText(number, rank.host);
    const RankState &state = rank.state;
    std::string last =
        state.call ? "; its last call is " + callText(state) : "; it has made no call yet";
    if (rank.isGone)
      return lostRankText(number, rank.host) + last;
    if (rank.hasLeft)
      return text + " has left the job" + last;
    if (isSilent(rank))
      return silentText(number, rank.host) + last;
    if (waits(rank, patience))
      return text + " waits in " + callText(state) + " instead";
    if (state.call && state.isOpen)
      return text + " is missing; it is busy, in " + callText(state);
    return text + " is missing; it is in no call" + last;
  }

  std::optional<std::string> text();
};
} // namespace

std::optional<std::string> Judge::text() {
  std::set<int64_t> gone, left = deserted(), missed, idle;
  std::vector<int64_t> waiting;
  bool isLate = !left.empty();
  std::set<int64_t> blocked = calls == Calls::blocking ? stuck() : std::set<int64_t>();
  if (!blocked.empty() && isSettled(blocked)) {
    isLate = true;
    patience = std::min(patience, kStuck);
  } else {
    blocked.clear();
  }
  if (!left.empty())
    patience = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto rank = static_cast<int64_t>(i);
    if (ranks[i].isGone)
      gone.insert(rank);
    bool isLost = isSilent(ranks[i]) && ranks[i].silent >= deadline;
    if (isLost)
      idle.insert(rank);
    // A receive may be posted long ahead, and has its own deadline.
    bool isReceive = ranks[i].state.call && ranks[i].state.call->isReceive;
    isLate |= isLost || (!isReceive && waits(ranks[i], deadline));
    if (!waits(ranks[i], patience))
      continue;
    waiting.push_back(rank);
    for (int64_t member : missing(ranks[i].state)) {
      missed.insert(member);
      if (!waits(ranks[member], patience))
        idle.insert(member);
    }
  }
  if (gone.empty() && !isLate)
    return std::nullopt;
  // A deadlock does not depend on other ranks.
  if (!blocked.empty())
    std::erase_if(missed, [&](int64_t rank) { return blocked.count(rank) == 0; });
  if (!blocked.empty() && left.empty())
    idle.clear();
  // A rank in another call may wait for one that does not wait, which is then the cause.
  std::set<int64_t> blamed = !gone.empty()   ? gone
                             : !left.empty() ? left
                             : !idle.empty() ? idle
                                             : elsewhere(missed);
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
  // Ranks that wait for one of them, in the call of the first.
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
    if (gone.empty() && left.empty())
      said += " for " + std::to_string(std::llround(longest)) + " s";
  }
  return said;
}

std::optional<std::string> verdictOf(const std::vector<RankReport> &ranks, double deadline,
                                     Calls calls) {
  return Judge{ranks, deadline, calls}.text();
}

std::optional<LateCall> findLateCall(const std::vector<RankReport> &ranks, double seconds) {
  Judge judge{ranks, seconds, Calls::concurrent};
  for (const RankReport &rank : ranks)
    if (judge.waits(rank, seconds) && !rank.state.call->isReceive)
      if (auto text = judge.text())
        return LateCall{*text, rank.state.call->stream + " " + std::to_string(rank.state.place)};
  return {};
}

} // namespace tessera::runtime
