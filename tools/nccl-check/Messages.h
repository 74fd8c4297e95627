//===- Messages.h - Sends and their receives --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_NCCL_CHECK_MESSAGES_H
#define TESSERA_TOOLS_NCCL_CHECK_MESSAGES_H

#include "Order.h"

#include <map>

namespace tessera::nccl_check {

/// The messages of one rank of a communicator. The n-th send of a rank to another pairs with the
/// n-th receive there, and must have the same count and type. As in Order, each side writes its
/// notes to a file that the other reads, and the later side detects a difference.
class Messages {
public:
  Messages(std::string folder, std::string name, int rank, int ranks);
  ~Messages();
  Messages(const Messages &) = delete;
  Messages &operator=(const Messages &) = delete;
  /// Empty, or the difference to the other side. `call` is a send or a recv.
  std::string add(const Call &call);
  /// This rank makes no more calls. Empty, or the first message that this rank has not received
  /// although it was sent, or has not sent although a peer waits for it.
  std::string close();

private:
  struct Side {
    int mine = -1, theirs = -1; ///< descriptors
    uint64_t sequence = 0;      ///< of the last one
  };
  std::string pathOf(int from, int to, bool sends) const;
  std::string pathOfEnd(int of) const;
  Side &sideOf(int peer, bool sends);
  bool read(Side &side, int peer, bool sends, uint64_t sequence, Note &note);

  std::string folder, name;
  int rank, ranks;
  std::map<std::pair<int, bool>, Side> sides; ///< by peer, and whether this rank sends
};

} // namespace tessera::nccl_check

#endif // TESSERA_TOOLS_NCCL_CHECK_MESSAGES_H
