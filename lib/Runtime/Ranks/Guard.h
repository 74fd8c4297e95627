//===- Guard.h - Whether all ranks make the same call -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_GUARD_H
#define TESSERA_LIB_RUNTIME_RANKS_GUARD_H

#include "Transport.h"

#include <list>
#include <memory>
#include <vector>

namespace tessera::runtime {

/// What a rank calls. Ranks must have equal `text`, and each rank's `sends[i]` is what rank i
/// `receives` from it, where it says so. `where` is for messages: ranks may call from different
/// lines.
struct CallDescription {
  std::string text;                     ///< "all_reduce of 16 f32 by sum"
  std::string isRefused;                ///< why this rank cannot make the call; empty where it can
  std::vector<int64_t> sends, receives; ///< by place in the group, or empty
  std::string dtype = {};               ///< for the record
  int64_t count = 0;
  std::string where = {}; ///< "train.py:12"; may be empty
};

/// Before data moves, the ranks of a group tell each other what they call, n - 1 small messages
/// each. All of them come to the same verdict.
class Guard {
public:
  /// `members`: ranks of the transport, as the calls of a group name them.
  Guard(Transport &transport, int64_t channel, const std::vector<int64_t> &members,
        const CallDescription &mine);

  /// True when all have reported; not called after that. Errors are the transport's.
  Expected<bool> advance();
  /// Why the calls do not fit each other, naming what each rank called; after advance is true.
  Status verdict() const;
  /// Ranks that have not reported yet.
  std::vector<int64_t> missing() const;

private:
  struct Head;
  const std::byte *headOf(size_t place) const { return heads.data() + place * bytes; }
  const Head &at(size_t place) const;
  int64_t numberOf(size_t place, size_t index) const;

  Transport &transport;
  const int64_t channel;
  const std::vector<int64_t> members;
  const size_t bytes; ///< of a head with its numbers
  size_t self = 0;
  std::vector<std::byte> heads; ///< by place
  bool isPosted = false;
  std::vector<Transport::Request> receives; ///< by place; 0: has come
  std::list<Transport::Request> sends;
};

/// "all_reduce of 4 f32, at train.py:12".
std::string callAt(const std::string &text, const std::string &where);
/// "rank 2", "ranks 0, 2".
std::string ranksText(const std::vector<int64_t> &ranks);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_GUARD_H
