//===- StubCollectives.h - Match and perform calls of ranks -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_STUBCOLLECTIVES_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_STUBCOLLECTIVES_H

#include "../../Ranks/HostCalls.h"
#include "StubDriver.h"

#include <deque>
#include <map>

namespace tessera::runtime::gpu {

/// The n-th call of a rank on a communicator matches the n-th call of every other rank: kind, step,
/// type, reduction, count and root must agree, which a library requires without a check. Messages
/// between two ranks match in order. Calls of different communicators on one device must be
/// ordered.
class StubCollectives final : public RankEngine, public StubMeetings {
public:
  explicit StubCollectives(StubDriver &driver) : driver(driver) { driver.setMeetings(this); }

  Expected<std::vector<int64_t>> makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                                                   const std::vector<int64_t> &here,
                                                   Calls calls) override;
  Status call(Issue issue, int64_t communicator, int64_t rank, const RankCall &call,
              const std::byte *send, std::byte *receive) override;
  Status exchange(Issue issue, int64_t communicator, int64_t rank,
                  std::vector<RankMessage> messages) override;
  Status arrive(const StubNodePtr &node, std::vector<StubNodePtr> &finished) override;

private:
  struct Open { ///< a call that some ranks have reached
    std::vector<StubNodePtr> ranks;
    int64_t arrived = 0;
  };
  struct Message {
    StubNodePtr node;
    RankMessage copy;
  };
  struct Communicator {
    std::vector<int64_t> devices;
    bool ordered = true;
    std::deque<Open> open;
    int64_t first = 0;            ///< sequence number of open.front()
    std::vector<int64_t> reached; ///< calls by rank
    std::map<std::pair<int64_t, int64_t>, std::deque<Message>> waiting; ///< by sender and receiver
  };
  Status arriveAtCall(Communicator &communicator, const StubNodePtr &node,
                      std::vector<StubNodePtr> &finished);
  Status arriveAtExchange(Communicator &communicator, const StubNodePtr &node,
                          std::vector<StubNodePtr> &finished);

  StubDriver &driver;
  std::vector<Communicator> communicators;
  std::map<int64_t, std::unique_ptr<std::byte>> launchOrder; ///< by device: an address only
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_STUBCOLLECTIVES_H
