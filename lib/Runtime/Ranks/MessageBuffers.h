//===- MessageBuffers.h - How far senders run ahead -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_MESSAGEBUFFERS_H
#define TESSERA_LIB_RUNTIME_RANKS_MESSAGEBUFFERS_H

#include "../Execution/Code.h"

#include <map>

namespace tessera::runtime {

/// A library's send ends when its receive starts. A program may send several messages of a transfer
/// before the first is received (loops of different buffers); then the sender needs that many
/// buffers, or parts deadlock.
struct MessageBuffers {
  /// False if control flow depends on data.
  bool isKnown = true;
  std::map<int64_t, int64_t> messages; ///< by id of the transfer: its number of buffers, from 1
};

/// Simulates a step of the parts, one actor each, with the fewest buffers that let all finish.
/// Fails if they cannot finish, or if a message is left over, naming the transfer.
Expected<MessageBuffers> messageBuffersOf(const std::vector<const Code *> &parts);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_MESSAGEBUFFERS_H
