//===- Rhythm.h - How far senders run ahead ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_RHYTHM_H
#define TESSERA_LIB_RUNTIME_RANKS_RHYTHM_H

#include "../Execution/Code.h"

#include <map>

namespace tessera::runtime {

/// A library's send ends when its receive is there. A program may send several messages of a
/// transfer before the first is received (loops of different rhythm); then the sender needs room
/// for so many, or parts come to wait for each other.
struct Rhythm {
  /// False where control flow depends on data: nothing can be said before.
  bool isKnown = true;
  std::map<int64_t, int64_t> messages; ///< by id of the transfer: the room that it needs, from 1
};

/// Plays a step of the parts, one actor each, with as little room as lets all come to their ends.
/// Fails when none does, or when a message is left over, naming the transfer.
Expected<Rhythm> rhythmOf(const std::vector<const Code *> &parts);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_RHYTHM_H
