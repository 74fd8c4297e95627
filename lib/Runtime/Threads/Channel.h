//===- Channel.h - Transfers between two parts ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_THREADS_CHANNEL_H
#define TESSERA_LIB_RUNTIME_THREADS_CHANNEL_H

#include "CollectiveOperation.h"

namespace tessera::runtime {

/// A send step and its recv step. Sends are buffered and never wait, so that a device in both
/// parts, or loops that send and receive at different rates, cannot block themselves; the n-th recv
/// matches the n-th send.
class Channel {
public:
  Channel(Context &context, const Step &sendStep, int64_t sendPart, const Step &recvStep,
          int64_t recvPart);

  /// Adds the part of device `device` of the source mesh to message `sequence`.
  void send(int64_t device, int64_t sequence);
  /// Moves a device's part of message `sequence` into its slots; false until it is complete.
  bool tryReceive(int64_t device, int64_t sequence);
  /// Process ids that have not sent message `sequence`.
  std::vector<int64_t> missingSenders(int64_t sequence) const;
  const TransferStep &definition() const { return receiving; }
  const std::string &loc() const { return recvStep.loc; }
  CollectiveStats stats() const;

private:
  struct Message {
    std::vector<std::vector<Bytes>> buffers; ///< by operand and source position
    std::vector<std::vector<const std::byte *>> sources;
    std::vector<bool> sent; ///< by source position
    int64_t arrived = 0, received = 0;
    std::vector<MemoryClaim> claims; ///< of the buffers
  };
  struct Route {
    std::unique_ptr<Move> move;
    std::vector<std::byte *> sources, targets;            ///< slots by position
    std::vector<std::vector<const MovePiece *>> piecesOf; ///< by target position
    int64_t sourceBytes = 0;                              ///< of one device's buffer
  };
  std::unique_ptr<Message> makeMessage() const;
  Message *find(int64_t sequence);

  Context &context;
  const Step &recvStep;
  const TransferStep &sending, &receiving;
  const sharding::Mesh &sourceMesh, &targetMesh;
  std::vector<Route> routes;
  TrafficCounter counter;

  mutable std::mutex mutex;
  std::deque<std::unique_ptr<Message>> messages; ///< of sequence first, first + 1, …
  std::vector<std::unique_ptr<Message>> spare;   ///< kept, so that a steady state allocates nothing
  int64_t first = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_THREADS_CHANNEL_H
