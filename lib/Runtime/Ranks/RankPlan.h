//===- RankPlan.h - A collective step as library calls ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the boxes of a move into library calls: one call if counts are equal and boxes
// contiguous, otherwise the same call over packed (and padded) staging, or a group of
// sends and receives. Reductions that the library does not support become messages from
// all contributors, reduced in rank order. All ranks derive the same plan from the same
// boxes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_RANKPLAN_H
#define TESSERA_LIB_RUNTIME_RANKS_RANKPLAN_H

#include "../Execution/Move.h"
#include "Address.h"
#include "Engine.h"

namespace tessera::runtime {

/// An action of one device in a collective.
struct RankAction {
  enum class Kind { move, call, exchange };
  struct Message {
    int64_t peer; ///< rank in the communicator
    bool send;
    int64_t address, bytes;
  };
  Kind kind = Kind::move;
  const char *what = "";
  // A move within the device.
  Strides strides;
  DType dtype = DType::f32;
  sharding::ReduceKind reduction = sharding::ReduceKind::sum;
  double scale = 1;
  ElementBytes value{};
  std::vector<int64_t> sources; ///< addresses
  int64_t target = 0;
  // A call.
  RankCall call;
  int64_t send = 0, receive = 0; ///< addresses
  std::vector<Message> messages;
};

struct RankPlan {
  /// Addresses of each operand's buffers: those of the slots, except that `staged` first copies a
  /// source that a target may overwrite to staging (the same on all devices).
  std::vector<int64_t> sources, targets;
  std::vector<RankAction> staged;
  /// Process ids of each communicator, ascending. Groups of one need none.
  std::vector<std::vector<int64_t>> groups;
  std::vector<std::vector<RankAction>> actions; ///< by position of the part's mesh
  int64_t stagingBytes = 0;                     ///< on every device
  bool communicates = false;                    ///< whether any device calls the library
  std::vector<int64_t> groupOf;                 ///< by position of the part's mesh: index or -1
  std::vector<int64_t> sent, received;          ///< bytes by process id, as Move counts them
};

/// `part` and the step are of a verified program.
RankPlan planRanks(const Program &program, const Part &part, const CollectiveStep &step,
                   ReducesExactly reducesExactly = librariesReduceExactly);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_RANKPLAN_H
