//===- Guard.h - Compare the calls of ranks ---------------------*- C++ -*-===//
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

/// The call of a rank. Ranks must have equal `text`, and each rank's `sends[i]` must equal what
/// rank i `receives` from it, if given. `where` is for messages: ranks may call from different
/// lines.
struct CallDescription {
  std::string text;                     ///< "all_reduce of 16 f32 by sum"
  std::string isRefused;                ///< why this rank rejects the call; empty if it does not
  std::vector<int64_t> sends, receives; ///< by place in the group, or empty
  std::string dtype = {};               ///< for the record
  int64_t count = 0;
  std::string where = {}; ///< "train.py:12"; may be empty
};

/// Before data moves, the ranks of a group exchange their calls, n - 1 small messages each. All of
/// them reach the same verdict.
class Guard {
public:
  /// `members`: ranks of the transport, in the order of the group.
  Guard(Transport &transport, int64_t channel, const std::vector<int64_t> &members,
        const CallDescription &mine);

  /// True once all have reported; not called after that. Errors are the transport's.
  Expected<bool> advance();
  /// The mismatch of the calls, with the call of each rank; after advance is true.
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
  std::vector<Transport::Request> receives; ///< by place; 0: has arrived
  std::list<Transport::Request> sends;
};

/// "all_reduce of 4 f32, at train.py:12".
std::string callAt(const std::string &text, const std::string &where);
/// "rank 2", "ranks 0, 2".
std::string ranksText(const std::vector<int64_t> &ranks);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_GUARD_H
