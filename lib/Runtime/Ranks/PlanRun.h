//===- PlanRun.h - Executing a rank's plan over a transport -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_PLANRUN_H
#define TESSERA_LIB_RUNTIME_RANKS_PLANRUN_H

#include "../Execution/Reduce.h"
#include "MessagePlan.h"
#include "Transport.h"

#include <deque>
#include <memory>

namespace tessera::runtime {

/// The element type of a plan.
struct PlanElements {
  int64_t bytes = 1;               ///< of one, 1 to 8
  ReduceFunction reduce = nullptr; ///< of plans that combine
  double scale = 1;
};

/// Memory for consecutive executions, which grows as needed.
class Scratch {
public:
  std::byte *atLeast(int64_t bytes) {
    if (bytes > size) {
      held.reset(); // before there are two of them
      held.reset(new std::byte[static_cast<size_t>(bytes)]);
      size = bytes;
    }
    return held.get();
  }

private:
  std::unique_ptr<std::byte[]> held;
  int64_t size = 0;
};

/// One execution of a plan. Messages are sent in segments, so that a segment is added while the
/// next one arrives. Executions that share a channel run one after the other, in the same order on
/// all ranks.
class PlanRun {
public:
  static constexpr int64_t kSegmentBytes = int64_t(1) << 19;

  /// `members`: ranks of the transport by place in the group. The buffers are those of the plan's
  /// request. `segmentBytes` is the same on all ranks. `memory` belongs to this run until it has
  /// ended.
  PlanRun(Transport &transport, int64_t channel, const std::vector<int64_t> &members,
          std::shared_ptr<const MessagePlan> plan, const PlanElements &elements,
          const std::byte *input, std::byte *output, int64_t segmentBytes = kSegmentBytes,
          std::shared_ptr<Scratch> memory = std::make_shared<Scratch>());

  /// Advances without waiting; true at the end. Not called after that, or an error.
  Expected<bool> advance();
  /// Places of the group whose messages are awaited.
  std::vector<int64_t> awaited() const;

private:
  /// A message of the current round. Segments before `posted` have been posted, those before `done`
  /// are complete.
  struct Progress {
    const MessagePlan::Message *message;
    int64_t before;               ///< previous message of the round in the same direction, or -1
    int64_t posted = 0, done = 0; ///< elements
    std::deque<std::pair<Transport::Request, int64_t>> requests;
  };
  struct Sum {
    const MessagePlan::Combination *combination;
    std::vector<size_t> receives; ///< messages of the round that it reads
    int64_t done = 0;
  };

  void startRound();
  Status advanceMessages();
  Status advanceMessage(Progress &each);
  void advanceSums();
  void combine(const MessagePlan::Combination &each, int64_t from, int64_t to);
  const std::byte *at(const Slice &slice) const;

  Transport &transport;
  const int64_t channel;
  const std::vector<int64_t> &members;
  const std::shared_ptr<const MessagePlan> plan;
  const PlanElements elements;
  const std::byte *const input;
  std::byte *const output;
  const std::shared_ptr<Scratch> memory;
  std::byte *const scratch;
  int64_t segment; ///< elements
  size_t round = 0;
  bool started = false;
  std::vector<Progress> messages;
  std::vector<Sum> sums;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_PLANRUN_H
