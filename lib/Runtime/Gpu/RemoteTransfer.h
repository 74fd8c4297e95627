//===- RemoteTransfer.h - Transfers between parts as messages ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_REMOTETRANSFER_H
#define TESSERA_LIB_RUNTIME_GPU_REMOTETRANSFER_H

#include "../Ranks/Engine.h"
#include "../Ranks/TransferPlan.h"
#include "Transfers.h"

namespace tessera::runtime::gpu {

/// A transfer between devices of any processes, by sends and receives of its own communicator. Each
/// device packs the data for others into a buffer and continues; the messages run on their own
/// streams. A send completes only after its receive has started, so a device has as many buffers as
/// messages that it may be ahead (MessageBuffers.h). If that number is unknown, it reuses a buffer
/// whose message has been sent, or adds one: then it never waits for a receiver.
class RemoteTransfer final : public Transfer {
public:
  RemoteTransfer(GpuDriver &driver, RankEngine &engine, const Program &program, const Step &send,
                 const Step &recv);
  /// `here` are the devices of this process. `buffers`: messages that a sender may be ahead; 0 if
  /// unknown. Called by all processes in the same order.
  Status open(const std::vector<int64_t> &here, int64_t buffers);

  Expected<bool> trySend(Issuer &issuer) override;
  Expected<bool> tryReceive(Issuer &issuer) override;
  /// Limited to devices of this process; others are not visible.
  std::vector<int64_t> missingFor(int64_t device) const override;
  CollectiveStats stats() const override;

private:
  struct StagingBuffer { ///< for one message in flight
    std::byte *staging = nullptr;
    /// After it is filled; after it is sent; and, for a message of a device to itself, after it is
    /// unpacked.
    Event packed = nullptr, sent = nullptr, taken = nullptr;
  };
  struct Side { ///< a sending or a receiving device
    int64_t device = 0, stagingBytes = 0;
    Stream stream = nullptr;
    std::vector<StagingBuffer> buffers; ///< one for a receiver
    std::deque<size_t> toSelf; ///< buffers of its messages to itself, sent and not received
    Event done = nullptr;      ///< of a receiver: the last message is in its slots
    int64_t count = 0;         ///< issued messages
    bool isHere = false;
  };
  Status openSide(Side &side, const char *name, int64_t buffers);
  Status addStagingBuffer(Side &side);
  /// The index of a sender's buffer that is free, or that is free after a wait of the compute
  /// stream.
  Expected<size_t> chooseStagingBuffer(Side &side, Stream compute);
  Status exchange(const Side &side, std::byte *staging, Issuer &issuer, bool sends);
  Side *find(std::vector<Side> &sides, int64_t device) const;

  GpuDriver &driver;
  RankEngine &engine;
  const Step &recv;
  const TransferStep &sending, &receiving;
  const TransferPlan plan;
  std::vector<Side> senders, receivers;
  int64_t communicator = -1;
  bool hasKnownDepth = true;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_REMOTETRANSFER_H
