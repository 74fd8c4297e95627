//===- RemoteTransfer.h - Moves between parts, as messages ------*- C++ -*-===//
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

/// Between devices of any processes, by the sends and receives of a communicator of its own. Each
/// device packs what others need into a room and goes on; the messages run on streams of their own.
/// A send ends when its receive is there, so a device has as many rooms as it may be ahead by
/// (MessageBuffers.h). Where that is not known, it takes one whose message has gone, or another:
/// then it never waits for a receiver.
class RemoteTransfer final : public Transfer {
public:
  RemoteTransfer(GpuDriver &driver, RankEngine &engine, const Program &program, const Step &send,
                 const Step &recv);
  /// `here` are the devices of this process. `rooms`: messages that a sender may be ahead by; 0:
  /// not known. Called by all processes in the same order.
  Status open(const std::vector<int64_t> &here, int64_t rooms);

  Expected<bool> trySend(Issuer &issuer) override;
  Expected<bool> tryReceive(Issuer &issuer) override;
  /// Of the devices of this process; others are not seen.
  std::vector<int64_t> missingFor(int64_t device) const override;
  CollectiveStats stats() const override;

private:
  struct Room { ///< of a message on its way
    std::byte *staging = nullptr;
    /// Filled; gone; and, of what a device gives itself, taken out again.
    Event packed = nullptr, sent = nullptr, taken = nullptr;
  };
  struct Side { ///< a device that sends, or one that receives
    int64_t device = 0, stagingBytes = 0;
    Stream stream = nullptr;
    std::vector<Room> rooms;   ///< one of a receiver
    std::deque<size_t> toSelf; ///< rooms of messages that it sent and has not received
    Event done = nullptr;      ///< of a receiver: the last message is in its slots
    int64_t count = 0;         ///< messages issued
    bool isHere = false;
  };
  Status openSide(Side &side, const char *name, int64_t rooms);
  Status addRoom(Side &side);
  /// The index of a sender's room that is free, or free once the stream that computes has waited.
  Expected<size_t> chooseRoom(Side &side, Stream compute);
  Status exchange(const Side &side, std::byte *staging, Issuer &issuer, bool sends);
  Side *find(std::vector<Side> &sides, int64_t device) const;

  GpuDriver &driver;
  RankEngine &engine;
  const Step &recv;
  const TransferStep &sending, &receiving;
  const TransferPlan plan;
  std::vector<Side> senders, receivers;
  int64_t communicator = -1;
  bool roomsAreKnown = true;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_REMOTETRANSFER_H
