//===- HostEngine.h - Calls of ranks, over messages -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_HOSTENGINE_H
#define TESSERA_LIB_RUNTIME_RANKS_HOSTENGINE_H

#include "Algorithm.h"
#include "Engine.h"
#include "PlanRun.h"

#include <functional>
#include <map>

namespace tessera::runtime {

/// Work of a stream that advances in pieces.
class HostWork {
public:
  virtual ~HostWork() = default;
  /// Advances without waiting; true at the end. Not called after that, or an error.
  virtual Expected<bool> advance() = 0;
  /// Ranks of the transport whose messages it waits for.
  virtual std::vector<int64_t> awaited() const { return {}; }
};

/// The owner of the streams of calls. `start` is called each time the stream reaches the operation,
/// and its work is advanced until it ends; then the stream continues. All in the thread that uses
/// the engine's transport.
class HostStreams {
public:
  using Start = std::function<Expected<std::unique_ptr<HostWork>>()>;
  virtual ~HostStreams() = default;
  virtual Status issue(Issue issue, Start start) = 0;
};

struct HostEngineOptions {
  /// For every call to which it applies, even if it adds in another order than rank order.
  std::optional<Algorithm> algorithm;
  int64_t segmentBytes = PlanRun::kSegmentBytes;
};

/// The engine of one rank, in host memory: collectives are plans of messages, which add in rank
/// order like performCall. Devices are ranks of the transport. The calls of a communicator run in
/// the order in which streams reach them, which is the same on all ranks; its exchanges are
/// independent of them.
class HostEngine final : public RankEngine {
public:
  HostEngine(Transport &transport, HostStreams &streams, HostEngineOptions options = {})
      : transport(transport), streams(streams), options(options) {}

  Expected<std::vector<int64_t>> makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                                                   const std::vector<int64_t> &here,
                                                   Calls calls) override;
  Status call(Issue issue, int64_t communicator, int64_t rank, const RankCall &call,
              const std::byte *send, std::byte *receive) override;
  Status exchange(Issue issue, int64_t communicator, int64_t rank,
                  std::vector<RankMessage> messages) override;

private:
  class CallWork;
  class ExchangeWork;
  struct Communicator {
    std::vector<int64_t> members, hosts; ///< ranks of the transport; numbers of their hosts
    int64_t calls = -1, exchanges = -1;  ///< channels; -1 if this rank is not a member
    uint64_t started = 0, finished = 0;  ///< calls
  };
  Expected<std::shared_ptr<const MessagePlan>> planOf(const Communicator &communicator,
                                                      int64_t rank, const RankCall &call);

  Transport &transport;
  HostStreams &streams;
  const HostEngineOptions options;
  std::vector<std::unique_ptr<Communicator>> communicators;
  /// By kind, rank, count, bytes of an element, root, and the members' hosts.
  std::map<std::vector<int64_t>, std::shared_ptr<const MessagePlan>> plans;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_HOSTENGINE_H
