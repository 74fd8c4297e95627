//===- TransferPlan.h - A transfer between parts as messages ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_TRANSFERPLAN_H
#define TESSERA_LIB_RUNTIME_RANKS_TRANSFERPLAN_H

#include "../Execution/Move.h"

namespace tessera::runtime {

/// A send step and its recv step as one message per pair of devices: the boxes of all operands,
/// packed in one order. The same on all ranks.
struct TransferPlan {
  /// A box of one operand that one device receives.
  struct Box {
    size_t operand;
    const MovePiece *piece;
    Strides pack, unpack;
    int64_t bytes;                       ///< of one contribution, with padding
    std::vector<int64_t> sent, received; ///< offsets in staging, by source of the piece
  };
  /// All boxes from a device to another: one message.
  struct Route {
    int64_t source, target; ///< process ids
    int64_t sendAt = 0, receiveAt = 0, bytes = 0;
  };
  struct Side { ///< a device that sends, or one that receives
    int64_t device = 0, stagingBytes = 0;
  };

  TransferPlan(const Program &program, const TransferStep &send, const TransferStep &recv);
  TransferPlan(const TransferPlan &) = delete;
  TransferPlan &operator=(const TransferPlan &) = delete;

  /// Place of a device in `members`: its rank in the communicator.
  int64_t rankOf(int64_t device) const;

  std::vector<Move> moves; ///< by operand
  std::vector<Box> boxes;
  std::vector<Route> routes;
  std::vector<Side> senders, receivers;          ///< by position of the meshes
  std::vector<int64_t> members;                  ///< process ids of both sides, ascending
  std::vector<int64_t> sentBytes, receivedBytes; ///< of one message, by process id

private:
  Route &routeOf(int64_t source, int64_t target);
  void layOut();
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_TRANSFERPLAN_H
