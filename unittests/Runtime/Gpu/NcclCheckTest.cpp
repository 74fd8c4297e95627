//===- NcclCheckTest.cpp - The checker with a library without effect ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Id {
  char bytes[128];
};
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21800;
  int blocking = 0;
  int rest[8] = {};
};
constexpr int kInProgress = 7;
constexpr int kFloat = 7, kInt = 2, kSum = 0, kOk = 0, kInvalidUsage = 5;

/// The checked functions, and two ranks of one communicator.
class NcclCheck : public testing::Test {
protected:
  void SetUp() override {
    ::setenv("TESSERA_NCCL_LIBRARY", FAKE_NCCL, 1);
    checker = ::dlopen(NCCL_CHECK, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(checker) << ::dlerror();
    library = ::dlopen(FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << ::dlerror();
    auto init = find<int (*)(void **, int, Id, int)>("ncclCommInitRank");
    static char last = 0;
    Id id{};
    id.bytes[5] = ++last; // a new communicator for each call
    for (int rank = 0; rank < 2; ++rank)
      ASSERT_EQ(init(&comm[rank], 2, id, rank), kOk);
    calls = static_cast<int *>(::dlsym(library, "fake_nccl_calls"));
    before = *calls;
  }
  template <typename Function> Function find(const char *name) {
    return reinterpret_cast<Function>(::dlsym(checker, name));
  }
  int allReduce(int rank, const void *send, void *receive, size_t count, int type = kFloat,
                int operation = kSum) {
    using F = int (*)(const void *, void *, size_t, int, int, void *, void *);
    testing::internal::CaptureStderr();
    int result = find<F>("ncclAllReduce")(send, receive, count, type, operation, comm[rank], {});
    said = testing::internal::GetCapturedStderr();
    return result;
  }
  int allGather(int rank, const void *send, void *receive, size_t count) {
    using F = int (*)(const void *, void *, size_t, int, void *, void *);
    testing::internal::CaptureStderr();
    int result = find<F>("ncclAllGather")(send, receive, count, kFloat, comm[rank], {});
    said = testing::internal::GetCapturedStderr();
    return result;
  }
  /// A send of `rank`, or, if `sends` is false, a receive.
  int message(int rank, bool sends, int peer, size_t count, int type = kFloat) {
    testing::internal::CaptureStderr();
    int result = sends ? find<int (*)(const void *, size_t, int, int, void *, void *)>("ncclSend")(
                             buffer, count, type, peer, comm[rank], nullptr)
                       : find<int (*)(void *, size_t, int, int, void *, void *)>("ncclRecv")(
                             other, count, type, peer, comm[rank], nullptr);
    said = testing::internal::GetCapturedStderr();
    return result;
  }
  /// Sends from `buffer` to `other`, with a root.
  int rooted(const char *function, int rank, int root, const void *send, void *receive,
             size_t count) {
    using F = int (*)(const void *, void *, size_t, int, int, void *, void *);
    testing::internal::CaptureStderr();
    int result = find<F>(function)(send, receive, count, kFloat, root, comm[rank], nullptr);
    said = testing::internal::GetCapturedStderr();
    return result;
  }
  int end(int rank, const char *how) {
    testing::internal::CaptureStderr();
    int result = find<int (*)(void *)>(how)(comm[rank]);
    said = testing::internal::GetCapturedStderr();
    return result;
  }
  bool saidAll(std::initializer_list<const char *> texts) const {
    for (const char *text : texts)
      if (said.find(text) == std::string::npos)
        return false;
    return true;
  }
  int passedOn() const { return *calls - before; }

  void *checker = nullptr, *library = nullptr, *comm[2] = {};
  int *calls = nullptr, before = 0;
  alignas(64) float buffer[64] = {}, other[64] = {};
  std::string said;
};

} // namespace

TEST_F(NcclCheck, ValidCallsAreForwardedSilently) {
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(allReduce(rank, buffer, buffer, 16), kOk);
    EXPECT_EQ(said, "");
    EXPECT_EQ(allGather(rank, buffer + 8 * rank, buffer, 8), kOk);
    EXPECT_EQ(said, "");
  }
  EXPECT_EQ(passedOn(), 4);
}

TEST_F(NcclCheck, ArgumentsAndInPlaceRules) {
  EXPECT_EQ(allReduce(0, nullptr, buffer, 16), kInvalidUsage);
  EXPECT_TRUE(saidAll({"ncclAllReduce", "64 bytes from a null pointer"})) << said;
  EXPECT_EQ(allReduce(0, buffer, other, 16, 99), kInvalidUsage);
  EXPECT_TRUE(saidAll({"type 99 is not a valid type"})) << said;
  EXPECT_EQ(allReduce(0, buffer, other, 16, kFloat, 12), kInvalidUsage);
  EXPECT_TRUE(saidAll({"operation 12 was not made"})) << said;
  EXPECT_EQ(allReduce(0, buffer, buffer + 4, 16), kInvalidUsage);
  EXPECT_TRUE(saidAll({"overlap"})) << said;
  EXPECT_EQ(allGather(1, buffer, buffer, 8), kInvalidUsage);
  EXPECT_TRUE(saidAll({"send", "rank * count", "0 bytes instead of 32", "rank 1"})) << said;
  EXPECT_EQ(allReduce(0, buffer, other, SIZE_MAX / 2), kInvalidUsage);
  EXPECT_TRUE(saidAll({"address space"})) << said;
  EXPECT_EQ(passedOn(), 0);
}

TEST_F(NcclCheck, RanksMustMakeTheSameCallsInOrder) {
  EXPECT_EQ(allReduce(0, buffer, other, 16), kOk);
  EXPECT_EQ(allReduce(1, buffer, other, 15), kInvalidUsage);
  EXPECT_TRUE(saidAll({"call 1", "ncclAllReduce of 15 float32 by sum", "on rank 0",
                       "ncclAllReduce of 16 float32 by sum"}))
      << said;
}

TEST_F(NcclCheck, SwappedCallsAreFoundByTheLaterRank) {
  EXPECT_EQ(allReduce(0, buffer, other, 16), kOk);
  EXPECT_EQ(allGather(0, buffer, other, 16), kOk);
  EXPECT_EQ(allGather(1, buffer, other, 16), kInvalidUsage);
  EXPECT_TRUE(saidAll({"ncclAllGather of 16", "on rank 0", "ncclAllReduce of 16"})) << said;
}

TEST_F(NcclCheck, GroupsAndLifetimesOfCommunicators) {
  auto start = find<int (*)()>("ncclGroupStart"), end = find<int (*)()>("ncclGroupEnd");
  auto destroy = find<int (*)(void *)>("ncclCommDestroy");
  EXPECT_EQ(end(), kInvalidUsage);
  EXPECT_EQ(start(), kOk);
  EXPECT_EQ(destroy(comm[0]), kInvalidUsage) << "within a group";
  EXPECT_EQ(end(), kOk);
  EXPECT_EQ(destroy(comm[0]), kOk);
  EXPECT_EQ(allReduce(0, buffer, other, 16), kInvalidUsage);
  EXPECT_TRUE(saidAll({"destroyed"})) << said;
}

TEST_F(NcclCheck, MessagesBelongToTheirCommunicator) {
  using F = int (*)(const void *, size_t, int, int, void *, void *);
  auto send = find<F>("ncclSend");
  EXPECT_EQ(send(buffer, 4, kFloat, 1, comm[0], nullptr), kOk);
  EXPECT_EQ(send(buffer, 4, kFloat, 2, comm[0], nullptr), kInvalidUsage) << "no such rank";
  EXPECT_EQ(send(buffer, 4, kFloat, 0, comm[0], nullptr), kInvalidUsage) << "to itself";
}

TEST_F(NcclCheck, MessagesMatchInOrder) {
  for (size_t count : {4, 8}) {
    EXPECT_EQ(message(0, true, 1, count), kOk);
    EXPECT_EQ(message(1, false, 0, count), kOk) << said;
  }
  EXPECT_EQ(message(1, true, 0, 5), kOk) << "the other way is another pair";
  EXPECT_EQ(message(0, false, 1, 5), kOk) << said;
  for (int rank : {0, 1}) {
    EXPECT_EQ(end(rank, "ncclCommDestroy"), kOk);
    EXPECT_EQ(said, "");
  }
}

TEST_F(NcclCheck, CountsAndTypesOfMessagesAgree) {
  EXPECT_EQ(message(0, true, 1, 4), kOk);
  EXPECT_EQ(message(1, false, 0, 8), kInvalidUsage);
  EXPECT_TRUE(saidAll(
      {"ncclRecv", "message 1 from rank 0 is 8 float32", "that rank sends 4 float32", "rank 1"}))
      << said;
  // The later sender detects it, too.
  EXPECT_EQ(message(0, false, 1, 4, kInt), kOk);
  EXPECT_EQ(message(1, true, 0, 4), kInvalidUsage);
  EXPECT_TRUE(saidAll({"message 1 to rank 0 is 4 float32", "that rank receives 4 int32"})) << said;
}

TEST_F(NcclCheck, SwappedMessagesDiffer) {
  EXPECT_EQ(message(0, true, 1, 4), kOk);
  EXPECT_EQ(message(0, true, 1, 8), kOk);
  EXPECT_EQ(message(1, false, 0, 8), kInvalidUsage);
  EXPECT_TRUE(saidAll({"message 1 from rank 0 is 8 float32", "sends 4 float32"})) << said;
}

TEST_F(NcclCheck, UnreceivedMessages) {
  EXPECT_EQ(message(0, true, 1, 4), kOk);
  EXPECT_EQ(message(0, true, 1, 6), kOk);
  EXPECT_EQ(message(1, false, 0, 4), kOk);
  EXPECT_EQ(end(1, "ncclCommDestroy"), kInvalidUsage);
  EXPECT_TRUE(saidAll({"message 2 is never received", "rank 0 sent 6 float32", "rank 1"})) << said;
  EXPECT_EQ(message(0, true, 1, 6), kInvalidUsage) << "nor what is sent behind";
  EXPECT_TRUE(saidAll({"message 3 to rank 1", "has ended the communicator without receiving it"}))
      << said;
}

TEST_F(NcclCheck, UnsentMessages) {
  EXPECT_EQ(message(0, false, 1, 4), kOk);
  EXPECT_EQ(end(1, "ncclCommAbort"), kOk) << "an abort is not kept from it";
  EXPECT_TRUE(saidAll({"ncclCommAbort", "message 1 is never sent", "rank 0 waits for 4 float32"}))
      << said;
}

TEST_F(NcclCheck, ForkedProcessesDoNotFinalize) {
  EXPECT_EQ(message(0, true, 1, 4), kOk);
  EXPECT_EQ(message(1, false, 0, 4), kOk) << said;
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child == 0)
    std::exit(0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(message(0, true, 1, 4), kOk) << "rank 1 is still there: " << said;
  EXPECT_EQ(message(1, false, 0, 4), kOk) << said;
}

using Split = int (*)(void *, int, int, void **, void *);
using AsyncError = int (*)(void *, int *);

TEST_F(NcclCheck, NonBlockingSplitsAreKnownWhenTheyComplete) {
  void *half[2] = {};
  Config config;
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(find<Split>("ncclCommSplit")(comm[rank], 0, rank, &half[rank], &config), kInProgress);
    ASSERT_FALSE(half[rank]) << "the stand-in is to be as NCCL is";
    for (int state = kInProgress; state == kInProgress;)
      ASSERT_EQ(find<AsyncError>("ncclCommGetAsyncError")(comm[rank], &state), kOk);
    comm[rank] = half[rank];
  }
  EXPECT_EQ(allReduce(0, buffer, other, 16), kOk) << said;
  EXPECT_EQ(allReduce(1, buffer, other, 15), kInvalidUsage) << "and compared";
  EXPECT_TRUE(saidAll({"call 1", "on rank 0"})) << said;
}

TEST_F(NcclCheck, SplitsInAGroupAreKnownAtItsEnd) {
  void *half[2] = {};
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(find<int (*)()>("ncclGroupStart")(), kOk);
    ASSERT_EQ(find<Split>("ncclCommSplit")(comm[rank], 0, rank, &half[rank], nullptr), kOk);
    ASSERT_FALSE(half[rank]);
    ASSERT_EQ(find<int (*)()>("ncclGroupEnd")(), kOk);
    comm[rank] = half[rank];
  }
  EXPECT_EQ(allReduce(0, buffer, other, 16), kOk) << said;
  EXPECT_EQ(allReduce(1, buffer, other, 15), kInvalidUsage);
}

TEST_F(NcclCheck, UnknownCommunicatorsAreAccepted) {
  auto make = reinterpret_cast<int (*)(void **, int, Id, int)>(
      ::dlsym(library, "pncclCommInitRank")); // bypasses the checker
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_EQ(make(&comm[rank], 2, Id{}, rank), kOk);
  EXPECT_EQ(allReduce(0, buffer, other, 16), kOk) << said;
  EXPECT_EQ(allReduce(1, buffer, other, 15), kOk) << "who the others are is not known";
  EXPECT_EQ(allReduce(0, nullptr, other, 16), kInvalidUsage);
  EXPECT_EQ(message(0, true, 1, 4), kOk) << said;
  EXPECT_EQ(end(0, "ncclCommDestroy"), kOk) << said;
  EXPECT_EQ(allReduce(0, buffer, other, 16), kInvalidUsage);
  EXPECT_TRUE(saidAll({"destroyed"})) << said;
}

TEST_F(NcclCheck, EveryWayToCreateACommunicator) {
  auto expectCompared = [&](const char *how) {
    EXPECT_EQ(allReduce(0, buffer, other, 16), kOk) << how << ": " << said;
    EXPECT_EQ(allReduce(1, buffer, other, 15), kInvalidUsage) << how;
  };
  ASSERT_EQ(find<int (*)(void **, int, const int *)>("ncclCommInitAll")(comm, 2, nullptr), kOk);
  expectCompared("ncclCommInitAll");
  Id ids[2] = {};
  ids[1].bytes[3] = 77;
  using Scalable = int (*)(void **, int, int, int, Id *, void *);
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_EQ(find<Scalable>("ncclCommInitRankScalable")(&comm[rank], 2, rank, 2, ids, nullptr),
              kOk);
  expectCompared("ncclCommInitRankScalable");
  void *three[3];
  ASSERT_EQ(find<int (*)(void **, int, const int *)>("ncclCommInitAll")(three, 3, nullptr), kOk);
  using Shrink = int (*)(void *, int *, int, void **, void *, int);
  int excluded[1] = {2};
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_EQ(find<Shrink>("ncclCommShrink")(three[rank], excluded, 1, &comm[rank], nullptr, 0),
              kOk);
  expectCompared("ncclCommShrink");
}

TEST_F(NcclCheck, UserDefinedOperationsMayDifferPerRank) {
  using Make = int (*)(int *, void *, int, int, void *);
  int operation[2] = {};
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_EQ(
        find<Make>("ncclRedOpCreatePreMulSum")(&operation[rank], buffer, kFloat, 1, comm[rank]),
        kOk);
  ASSERT_NE(operation[0], operation[1]);
  EXPECT_EQ(allReduce(0, buffer, other, 16, kFloat, operation[0]), kOk) << said;
  EXPECT_EQ(allReduce(1, buffer, other, 16, kFloat, operation[1]), kOk) << said;
  EXPECT_EQ(allReduce(0, buffer, other, 16, kFloat, operation[0]), kOk) << said;
  EXPECT_EQ(allReduce(1, buffer, other, 16), kInvalidUsage) << "a plain sum is another";
  auto drop = find<int (*)(int, void *)>("ncclRedOpDestroy");
  EXPECT_EQ(drop(operation[0], comm[0]), kOk);
  EXPECT_EQ(drop(operation[0], comm[0]), kInvalidUsage) << "it is gone";
  EXPECT_EQ(allReduce(0, buffer, other, 16, kFloat, operation[0]), kInvalidUsage);
}

TEST_F(NcclCheck, GathersScattersAndFinalize) {
  using InPlace = int (*)(void *, size_t, int, int, void *, void *);
  EXPECT_EQ(find<InPlace>("ncclBcast")(buffer, 8, kFloat, 0, comm[0], nullptr), kOk);
  EXPECT_EQ(rooted("ncclBroadcast", 1, 0, buffer, buffer, 8), kOk) << "the same call: " << said;
  EXPECT_EQ(rooted("ncclGather", 0, 1, buffer, nullptr, 8), kOk) << said;
  EXPECT_EQ(rooted("ncclGather", 1, 1, other + 8, other, 8), kOk) << "in place: " << said;
  EXPECT_EQ(rooted("ncclScatter", 0, 0, buffer, buffer + 8, 8), kInvalidUsage);
  EXPECT_TRUE(saidAll({"ncclScatter", "32 bytes instead of 0"})) << said;
  EXPECT_EQ(rooted("ncclScatter", 0, 0, buffer, buffer, 8), kOk) << said;
  EXPECT_EQ(rooted("ncclScatter", 1, 1, buffer, other, 8), kInvalidUsage);
  EXPECT_TRUE(saidAll({"call 3", "root 1", "on rank 0", "root 0"})) << said;
  using AllToAll = int (*)(const void *, void *, size_t, int, void *, void *);
  EXPECT_EQ(find<AllToAll>("ncclAlltoAll")(buffer, other, 8, kFloat, comm[0], nullptr), kOk);
  EXPECT_EQ(find<AllToAll>("ncclAlltoAll")(buffer, buffer, 8, kFloat, comm[0], nullptr),
            kInvalidUsage);
  EXPECT_EQ(end(0, "ncclCommFinalize"), kOk) << said;
  EXPECT_EQ(allReduce(0, buffer, other, 8), kInvalidUsage);
  EXPECT_TRUE(saidAll({"finalized"})) << said;
  EXPECT_EQ(end(0, "ncclCommDestroy"), kOk) << said;
}
