//===- MessagePlan.h - A rank's part in a collective ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sends, receives and additions of one rank in a collective, as data that can
// be printed, counted and executed (PlanRun.h). The algorithms (Algorithm.h) build
// the plans of all ranks from the same request.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_MESSAGEPLAN_H
#define TESSERA_LIB_RUNTIME_RANKS_MESSAGEPLAN_H

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::runtime {

/// A range of elements of one of a rank's buffers.
struct Slice {
  enum class Buffer : uint8_t { input, output, scratch };
  Buffer buffer = Buffer::input;
  int64_t begin = 0, count = 0;

  int64_t end() const { return begin + count; }
  bool operator==(const Slice &) const = default;
};

/// A sequence of rounds. In a round the copies come first, then all messages at once, and each
/// combination as soon as its operands have arrived. A round does not write the data that it sends.
///
/// Messages from one rank to another are received in the order of their sends, in the round of the
/// same number. Peers are places in the group. No slice is empty.
struct MessagePlan {
  struct Copy {
    Slice from, to;
  };
  struct Message {
    int64_t peer;
    bool send;
    Slice slice;
  };
  /// Adds (or multiplies, …) the sources, in their order, and writes the result to `target`, which
  /// may be one of them. The last combination of an element also applies the scale.
  struct Combination {
    std::vector<Slice> sources;
    Slice target;
    bool isLast;
  };
  struct Round {
    std::vector<Copy> copies;
    std::vector<Message> messages;
    std::vector<Combination> combinations;
  };

  std::vector<Round> rounds;
  int64_t scratch = 0; ///< elements

  int64_t messagesSent() const;
  int64_t elementsSent() const;
  /// One line per nonempty round: `1: send input[4:8] to 1, receive scratch[0:4] from 1,
  /// output[0:4] = input[0:4] + scratch[0:4]`
  std::string text() const;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_MESSAGEPLAN_H
