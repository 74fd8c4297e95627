//===- Transfers.h - Transfers between parts in one process -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_TRANSFERS_H
#define TESSERA_LIB_RUNTIME_GPU_TRANSFERS_H

#include "../Execution/Recorder.h"
#include "Driver.h"

#include <deque>
#include <memory>

namespace tessera::runtime::gpu {

class Issuer;

/// A send step and its recv step; the n-th recv matches the n-th send.
class Transfer {
public:
  virtual ~Transfer() = default;
  /// False while its buffer holds an earlier message that has not been received.
  virtual Expected<bool> trySend(Issuer &issuer) = 0;
  /// False until the work that it waits for is issued.
  virtual Expected<bool> tryReceive(Issuer &issuer) = 0;
  /// Process ids that have not sent the message for which a device waits.
  virtual std::vector<int64_t> missingFor(int64_t device) const = 0;
  virtual CollectiveStats stats() const = 0;
};

/// A transfer between devices of one process. The buffers of a sender are copied into a message, so
/// that it never waits for receivers. Messages are reused.
class InProcessTransfer final : public Transfer {
public:
  InProcessTransfer(GpuDriver &driver, Recorder &recorder, const Program &program, const Step &send,
                    const Step &recv);

  Expected<bool> trySend(Issuer &issuer) override;
  Expected<bool> tryReceive(Issuer &issuer) override;
  std::vector<int64_t> missingFor(int64_t device) const override;
  CollectiveStats stats() const override;

private:
  struct Message {
    std::vector<std::byte *> buffers;  ///< by operand, then source position
    std::vector<Event> sent, received; ///< by position; of the last use
    std::vector<bool> isSent;
    int64_t numSent = 0, numReceived = 0;
  };
  Expected<std::unique_ptr<Message>> makeMessage();
  Message *find(int64_t sequence) const;
  void recycle();

  GpuDriver &driver;
  Recorder &recorder;
  const Step &recv;
  const TransferStep &sending, &receiving;
  const sharding::Mesh &sourceMesh, &targetMesh;
  std::vector<Move> moves;                       ///< by operand
  std::vector<Strides> whole;                    ///< a source's buffer
  std::vector<int64_t> sentBy, receivedBy;       ///< messages, by position
  std::deque<std::unique_ptr<Message>> messages; ///< with sequence numbers first, first + 1, …
  std::vector<std::unique_ptr<Message>> spare;
  int64_t first = 0;
  TrafficCounter counter;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_TRANSFERS_H
