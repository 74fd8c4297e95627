//===- VerdictTest.cpp - Ranks that a job waits for -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks/Verdict.h"

#include <gtest/gtest.h>

using namespace tessera::runtime;

namespace {

CallShapePtr shape(const std::string &text, const std::string &stream, std::vector<int64_t> group) {
  auto made = std::make_shared<CallShape>();
  made->text = text;
  made->loc = "f.mlir:3";
  made->stream = stream;
  made->group = std::move(group);
  return made;
}

const CallShapePtr kSum = shape("all_reduce 3 of 16 f32", "a", {0, 1, 2});
const CallShapePtr kPair = shape("all_gather 4 of 8 f32", "b", {1, 2});

/// A rank that has been waiting in the `place`-th call of a stream.
RankReport waits(const CallShapePtr &call, int64_t place, double seconds) {
  RankReport report;
  report.host = "h";
  report.stalled = seconds;
  report.state = {true, 1, place, call, true, 1, {{call->stream, place + 1}}};
  return report;
}
RankReport computes(int64_t calls) {
  RankReport report = waits(kSum, calls - 1, 0);
  report.state.isWaiting = report.state.isOpen = false;
  report.state.open = 0;
  return report;
}

TEST(Verdict, NoVerdictBeforeTheDeadline) {
  EXPECT_FALSE(verdictOf({waits(kSum, 4, 4), waits(kSum, 4, 4), computes(4)}, 5));
}

TEST(Verdict, MissingRankIsNamed) {
  EXPECT_EQ(verdictOf({waits(kSum, 4, 5), waits(kSum, 4, 4.9), computes(4)}, 5),
            "rank 2 (h) is missing; it is in no call; its last call is all_reduce 3 of 16 f32, "
            "call 4, at f.mlir:3; ranks 0, 1 wait in all_reduce 3 of 16 f32, call 5, at f.mlir:3 "
            "for 5 s");
}

TEST(Verdict, SilentRankIsStoppedAfterACall) {
  std::vector<RankReport> ranks{waits(kSum, 4, 5), waits(kSum, 4, 5), waits(kSum, 4, 5)};
  ranks[1].silent = 4;
  EXPECT_EQ(verdictOf(ranks, 5)->find("rank 1 (h) is stopped: it sends no reports"), 0u);
}

TEST(Verdict, SilentRankIsStoppedWithoutWaitingRanks) {
  std::vector<RankReport> ranks{computes(1), computes(1), computes(1)};
  ranks[2].silent = 4;
  EXPECT_FALSE(verdictOf(ranks, 5));
  ranks[2].silent = 5;
  EXPECT_EQ(verdictOf(ranks, 5)->find("rank 2 (h) is stopped"), 0u);
}

TEST(Verdict, DeadRankIsNamedImmediately) {
  std::vector<RankReport> ranks{computes(1), waits(kSum, 1, 0), computes(1)};
  ranks[0].isGone = true;
  EXPECT_EQ(verdictOf(ranks, 5)->find("rank 0 (h) has ended"), 0u);
}

TEST(Verdict, LeavingRankIsNamedImmediatelyIfOthersWait) {
  std::vector<RankReport> ranks{waits(kSum, 1, 0), computes(2), computes(2)};
  ranks[2].hasLeft = true;
  EXPECT_FALSE(verdictOf(ranks, 5)) << "it has called all that they wait in";
  ranks[2].state.issued["a"] = 1;
  EXPECT_EQ(verdictOf(ranks, 5),
            "rank 2 (h) has left the job; its last call is all_reduce 3 of 16 f32, call 2, at "
            "f.mlir:3; rank 0 waits in all_reduce 3 of 16 f32, call 2, at f.mlir:3");
}

TEST(Verdict, LeavingDuringACallIsNamedImmediately) {
  std::vector<RankReport> ranks{waits(kSum, 1, 0), waits(kSum, 1, 0), waits(kSum, 1, 0)};
  ranks[1].hasLeft = true;
  EXPECT_EQ(verdictOf(ranks, 5)->find("rank 1 (h) has left the job"), 0u);
}

TEST(Verdict, DeadlockIsDetectedBeforeTheDeadline) {
  std::vector<RankReport> ranks{waits(kSum, 4, 1), waits(kPair, 0, 1), waits(kSum, 4, 1)};
  ranks[1].state.issued["a"] = 4;
  EXPECT_FALSE(verdictOf(ranks, 60)) << "another thread of rank 1 may come";
  EXPECT_EQ(verdictOf(ranks, 60, Calls::blocking)
                ->find("rank 1 (h) waits in all_gather 4 of 8 f32, call 1, at f.mlir:3 instead"),
            0u);
  ranks[1].silent = 0.5;
  EXPECT_FALSE(verdictOf(ranks, 60, Calls::blocking)) << "it may have gone on since";
  ranks[1].silent = 0;
  ranks[1].state.open = 2;
  EXPECT_FALSE(verdictOf(ranks, 60, Calls::blocking)) << "it may wait for the other one";
}

TEST(Verdict, DeadlockBlamesOnlyItsRanks) {
  // Rank 0 has also called, but only just now.
  std::vector<RankReport> ranks{waits(kSum, 4, 0.1), waits(kSum, 4, 1), waits(kPair, 0, 1)};
  ranks[0].state.isWaiting = false;
  ranks[2].state.issued["a"] = 4;
  EXPECT_FALSE(verdictOf(ranks, 60, Calls::blocking)) << "in a moment more is known";
  ranks[1].stalled = ranks[2].stalled = 6;
  EXPECT_EQ(verdictOf(ranks, 60, Calls::blocking),
            "rank 2 (h) waits in all_gather 4 of 8 f32, call 1, at f.mlir:3 instead; rank 1 waits "
            "in all_reduce 3 of 16 f32, call 5, at f.mlir:3 for 6 s");
}

TEST(Verdict, CompleteBlockingCallsMayTakeLong) {
  std::vector<RankReport> ranks{waits(kSum, 4, 1), waits(kSum, 4, 1), waits(kSum, 4, 1)};
  EXPECT_FALSE(verdictOf(ranks, 60, Calls::blocking));
  ranks[2] = computes(4);
  EXPECT_FALSE(verdictOf(ranks, 60, Calls::blocking)) << "rank 2 computes";
}

TEST(Verdict, ChainBlamesTheRankThatDoesNotWait) {
  // Rank 0 waits for 1, which waits for 2, which computes.
  std::vector<RankReport> ranks{waits(kSum, 4, 5), waits(kPair, 0, 5), computes(4)};
  ranks[1].state.issued["a"] = 4;
  std::string text = *verdictOf(ranks, 5);
  EXPECT_EQ(text.find("rank 2 (h) is missing"), 0u) << text;
  EXPECT_EQ(text.find("instead"), std::string::npos) << text;
}

TEST(Verdict, MinorityOfWaitingRanksIsReported) {
  std::vector<RankReport> ranks{waits(kSum, 4, 5), waits(kPair, 0, 5), waits(kSum, 4, 5)};
  ranks[1].state.issued["a"] = 4;
  EXPECT_EQ(verdictOf(ranks, 5)->find(
                "rank 1 (h) waits in all_gather 4 of 8 f32, call 1, at f.mlir:3 instead; "
                "ranks 0, 2 wait in all_reduce 3 of 16 f32, call 5, at f.mlir:3"),
            0u);
}

TEST(Verdict, LateRankIsNamedWhileTheJobContinues) {
  EXPECT_FALSE(findLateCall({waits(kSum, 4, 2.9), waits(kSum, 4, 2), computes(4)}, 3));
  auto late = findLateCall({waits(kSum, 4, 3), waits(kSum, 4, 2), computes(4)}, 3);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->text,
            "rank 2 (h) is missing; it is in no call; its last call is all_reduce 3 of 16 f32, "
            "call 4, at f.mlir:3; ranks 0, 1 wait in all_reduce 3 of 16 f32, call 5, at f.mlir:3 "
            "for 3 s");
  EXPECT_EQ(late->call, "a 4");
}

/// A receive from rank 1, of whose messages `came` have arrived.
RankReport receives(int64_t came, double seconds) {
  auto made = std::make_shared<CallShape>();
  made->text = "receive of 4 f32 from rank 1";
  made->stream = "group [0, 1] from 1 to 0";
  made->group = {1};
  made->isReceive = true;
  RankReport report = waits(made, came, seconds);
  report.state.issued = {};
  return report;
}
RankReport hasSent(int64_t count, bool hasLeft) {
  RankReport report = computes(0);
  report.state.call = nullptr;
  report.state.issued = {{"group [0, 1] from 1 to 0", count}};
  report.hasLeft = hasLeft;
  return report;
}

TEST(Verdict, ReceiveEndsWhenItsSenderLeaves) {
  EXPECT_EQ(verdictOf({receives(2, 0.1), hasSent(2, true)}, 5),
            "rank 1 (h) has left the job; it has made no call yet; rank 0 waits in receive of 4 "
            "f32 from rank 1, call 3");
  EXPECT_FALSE(verdictOf({receives(2, 0.1), hasSent(3, true)}, 5)) << "it is on its way";
  EXPECT_FALSE(verdictOf({receives(2, 0.1), hasSent(2, false)}, 5)) << "it may yet be sent";
}

TEST(Verdict, ReceiveMayBePostedEarly) {
  EXPECT_FALSE(verdictOf({receives(0, 100), hasSent(0, false)}, 5));
  EXPECT_FALSE(findLateCall({receives(0, 100), hasSent(0, false)}, 3));
}

TEST(CallLog, ReceiveIsReportedOnlyWithoutAnotherCall) {
  CallLog log(0);
  int64_t receive = log.receive(receives(0, 0).state.call, 0);
  EXPECT_EQ(log.state().call->kind, receives(0, 0).state.call->kind);
  EXPECT_TRUE(log.state().call->isReceive);
  EXPECT_TRUE(log.state().issued.empty()) << "the sender counts";
  log.setPlace(receive, 3);
  EXPECT_EQ(log.state().place, 3);
  int64_t sum = log.issue(kSum);
  log.begin(sum);
  EXPECT_EQ(log.state().call, kSum);
  log.end(sum);
  EXPECT_TRUE(log.state().call->isReceive);
  log.end(receive);
  EXPECT_FALSE(log.state().isOpen);
  log.sent("s");
  EXPECT_EQ(log.state().issued.at("s"), 1);
}

TEST(CallLog, KeepsTheLastCallsAndPendingOnes) {
  CallLog log(0);
  for (int i = 0; i < CallLog::kCapacity + 5; ++i) {
    int64_t call = log.issue(i % 2 ? kPair : kSum);
    log.begin(call);
    if (i < CallLog::kCapacity + 3)
      log.end(call);
  }
  std::vector<CallRecord> last = log.last();
  ASSERT_EQ(last.size(), static_cast<size_t>(CallLog::kCapacity));
  EXPECT_EQ(last.front().sequence, 5);
  EXPECT_EQ(last.front().place, 2);
  RankState state = log.state();
  EXPECT_TRUE(state.isOpen);
  EXPECT_EQ(state.call, kPair);
  EXPECT_EQ(state.issued.at("a"), 515);
}

} // namespace
