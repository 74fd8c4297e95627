//===- RemoteTransfer.h - Moves between parts, as messages ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_REMOTETRANSFER_H
#define TESSERA_LIB_RUNTIME_GPU_REMOTETRANSFER_H

#include "Collectives.h"
#include "Transfers.h"

namespace tessera::runtime::gpu {

/// Between devices of any processes, by the sends and receives of a communicator of its own. Each
/// device packs what others need into staging and goes on; the messages run on streams of their
/// own. One message is in flight: a sender that is ahead by more waits on its stream, so programs
/// that send in another rhythm than they receive may come to a deadlock, which `stub` reports.
class RemoteTransfer final : public Transfer {
public:
  RemoteTransfer(GpuDriver &driver, Collectives &collectives, const Program &program,
                 const Step &send, const Step &recv);
  /// `here` are the devices of this process. Called by all processes in the same order.
  Status open(const std::vector<int64_t> &here);

  Status send(Issuer &issuer) override;
  Expected<bool> tryReceive(Issuer &issuer) override;
  std::vector<int64_t> missingFor(int64_t device) const override { return {device}; }
  CollectiveStats stats() const override;

private:
  /// A box that one device gets, of one operand.
  struct Box {
    size_t operand;
    const MovePiece *piece;
    Strides pack, unpack;
    int64_t bytes;
    std::vector<int64_t> sent, received; ///< offsets in staging, by source of the piece
  };
  /// All boxes from a device to another: one message.
  struct Route {
    int64_t source, target; ///< process ids
    int64_t sendAt = 0, receiveAt = 0, bytes = 0;
  };
  struct Side { ///< a device that sends, or one that receives
    int64_t device = 0, stagingBytes = 0;
    std::byte *staging = nullptr;
    Stream stream = nullptr;
    Event ready = nullptr, done = nullptr;
    int64_t count = 0; ///< messages issued
    bool isHere = false;
  };
  void layOut();
  Route &routeOf(int64_t source, int64_t target);
  int64_t rankOf(int64_t device) const;
  Status openSide(Side &side, const char *name);
  Status exchange(const Side &side, Issuer &issuer, bool sends);
  Side *find(std::vector<Side> &sides, int64_t device) const;

  GpuDriver &driver;
  Collectives &collectives;
  const Step &recv;
  const TransferStep &sending, &receiving;
  std::vector<Move> moves;
  std::vector<Box> boxes;
  std::vector<Route> routes;
  std::vector<Side> senders, receivers;
  std::vector<int64_t> members; ///< of the communicator
  int64_t communicator = -1;
  std::vector<int64_t> sentBytes, receivedBytes; ///< of one message, by process id
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_REMOTETRANSFER_H
