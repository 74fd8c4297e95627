//===- Engine.h - Collective calls of ranks ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective step becomes calls of its ranks (RankPlan.h), which an engine
// executes. There are few kinds of calls, and no barrier:
//
//   call()      all_reduce, all_gather, reduce_scatter, broadcast, reduce
//   exchange()  a group of sends and receives, such as an all-to-all
//   progress()  advances issued calls, and returns errors
//
// `cuda` has NCCL for an engine; that of `stub` matches the calls of its ranks
// and performs them in host memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_ENGINE_H
#define TESSERA_LIB_RUNTIME_RANKS_ENGINE_H

#include "../Execution/Issue.h"
#include "tessera/Runtime/Artifact/Status.h"

namespace tessera::runtime {

/// A collective with equal counts on all ranks. `count` is in elements: the whole buffer for
/// all_reduce, broadcast and reduce, the part sent by a rank for all_gather, the part received by a
/// rank for reduce_scatter. In place: all_gather sends from recv + rank · count, reduce_scatter
/// receives at send + rank · count, the others use one buffer. Otherwise the buffers are disjoint.
struct RankCall {
  sharding::CollectiveKind kind = sharding::CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  sharding::ReduceKind reduction = sharding::ReduceKind::sum;
  double scale = 1; ///< the sum is multiplied by it
  int64_t count = 0;
  int64_t root = 0; ///< rank; for broadcast and reduce
};

/// A message between two ranks of a communicator.
struct RankMessage {
  int64_t peer = 0; ///< rank
  bool send = true;
  std::byte *data = nullptr;
  int64_t bytes = 0;
};

/// Issues the calls of the ranks of this process. A call returns when it is issued, and executes in
/// the order of its stream: its buffers belong to the engine until the stream has passed it.
///
/// Errors are those of this process, in one line with the call, the rank, and the library's
/// message: the call returns errors of arguments, the function that detects it the error of a
/// failed or missing rank. After an error the engine cannot be used.
class RankEngine {
public:
  /// `ordered`: devices order the calls of all their communicators. `concurrent`: calls of this one
  /// may overlap with others, which is safe only because they use few of a device's processors.
  enum class Calls { ordered, concurrent };

  virtual ~RankEngine() = default;

  /// Communicators of disjoint groups of devices, given by ascending process ids; a rank is an
  /// index in its group. Called at load, in the same order by all processes. `here` are the devices
  /// of this process; communicators without one of them must not be used. One result per group.
  virtual Expected<std::vector<int64_t>>
  makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                    const std::vector<int64_t> &here, Calls calls = Calls::ordered) = 0;
  /// Announces the number of concurrent communicators before the first is created: they share some
  /// of the processors.
  virtual void expectConcurrent(int64_t communicators) {}

  /// The part of `rank` in a collective. The n-th call of a rank matches the n-th of all other
  /// ranks; kind, dtype, reduction, scale, count and root agree.
  virtual Status call(Issue issue, int64_t communicator, int64_t rank, const RankCall &call,
                      const std::byte *send, std::byte *receive) = 0;
  /// All messages of a rank at once, without order between them. Messages from one rank to another
  /// are received in the order of their sends, with the same number of bytes.
  virtual Status exchange(Issue issue, int64_t communicator, int64_t rank,
                          std::vector<RankMessage> messages) = 0;
  /// Brackets calls and exchanges of one communicator and stream; engines with groups start them at
  /// once. `what` is for messages.
  virtual Status beginCalls() { return {}; }
  virtual Status endCalls(int64_t communicator, const char *what) { return {}; }
  /// This process has failed and will make no more calls, although others may wait for them.
  virtual void abandon() {}
  /// Called repeatedly while this process waits for a stream; does not wait itself. Engines with
  /// asynchronous calls only check for errors.
  virtual Status progress() { return {}; }

  /// Registers memory that calls of these communicators may use without copies, if the library
  /// supports it. Called at load, by all members with the same number of bytes.
  virtual Status registerBuffer(std::byte *data, int64_t bytes,
                                const std::vector<int64_t> &communicators) {
    return {};
  }
};

/// Whether an engine's calls reduce as the runtime defines it (Reduce.h). Otherwise the plan
/// exchanges all contributions, which each receiver reduces in rank order.
using ReducesExactly = bool (*)(DType, sharding::ReduceKind);

/// For libraries such as NCCL: their max and min of floats lose NaN, and they have no i16.
bool librariesReduceExactly(DType dtype, sharding::ReduceKind kind);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_ENGINE_H
