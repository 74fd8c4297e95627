//===- ProcessTransfer.h - Moves between parts, by messages -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_MPI_PROCESSTRANSFER_H
#define TESSERA_LIB_RUNTIME_MPI_PROCESSTRANSFER_H

#include "../Execution/DeviceMemory.h"
#include "../Execution/Move.h"
#include "../Ranks/CallLog.h"
#include "../Ranks/TransferPlan.h"
#include "Lane.h"
#include "tessera/Runtime/Artifact/Bytes.h"

namespace tessera::runtime {

/// A send step and its recv step on one device. A send packs the data for others into a
/// buffer and continues; a buffer is free when its messages have been sent, and buffers are added
/// as needed, so a sender never waits.
class ProcessTransfer {
public:
  /// Slots of the device by index, empty if it is not in the part.
  ProcessTransfer(const Program &program, const Step &send, const Step &recv, int64_t device,
                  std::vector<std::byte *> sendSlots, std::vector<std::byte *> recvSlots);
  /// Called by all ranks of both sides, in the same order.
  Status open(RankEngine &engine);

  Status send();
  /// False until the messages have arrived; then it is called again.
  Expected<bool> tryReceive();
  /// Advances messages; returns whether one has ended.
  Expected<bool> progress();
  bool isIdle() const;

  bool sends() const { return isSender; }
  /// The call in the record; a device that only receives waits for the senders' calls.
  const CallShapePtr &sendShape() const { return sendCall; }
  const CallShapePtr &receiveShape() const { return receiveCall; }
  const Step &step() const { return recvStep; }
  /// Process ids whose messages the current recv waits for.
  std::vector<int64_t> awaited() const { return incomingLane.awaited(); }
  int64_t executions() const { return std::max(sent, received); }
  int64_t sentBytes() const { return sent * plan.sentBytes[device]; }
  int64_t receivedBytes() const { return received * plan.receivedBytes[device]; }

private:
  struct StagingBuffer { ///< of a message in flight
    StagingBuffer(int64_t device, int64_t bytes)
        : staging(static_cast<size_t>(bytes)), claim(device, nullptr, bytes) {}
    Bytes staging;
    MemoryClaim claim; ///< of `staging`
    Lane lane;
    bool held = false; ///< holds a part for the device itself
  };
  Expected<StagingBuffer *> freeBuffer();
  Status exchange(Lane &lane, std::byte *staging, bool sends);
  void pack(StagingBuffer &buffer) const;
  void unpack(const StagingBuffer *own);

  const Step &sendStep, &recvStep;
  const TransferStep &sending, &receiving;
  const TransferPlan plan;
  const int64_t device;
  const std::vector<std::byte *> sendSlots, recvSlots;
  RankEngine *engine = nullptr;
  int64_t communicator = -1;
  int64_t sendBytes = 0, receiveBytes = 0; ///< of staging
  std::deque<StagingBuffer> buffers;
  std::deque<StagingBuffer *> toSelf; ///< filled, oldest first
  Bytes incoming;
  std::optional<MemoryClaim> incomingClaim;
  Lane incomingLane;
  CallShapePtr sendCall, receiveCall;
  bool isReceiver = false, isSender = false, posted = false;
  int64_t sent = 0, received = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_PROCESSTRANSFER_H
