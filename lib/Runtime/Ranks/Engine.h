//===- Engine.h - The calls that ranks make together ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective step becomes calls of its ranks (RankPlan.h), and an engine
// executes calls. There are few of them, and no barrier:
//
//   call()      all_reduce, all_gather, reduce_scatter, broadcast, reduce
//   exchange()  a group of sends and receives, which all-to-all is one of
//   progress()  lets what was issued go on, and says what went wrong
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

/// A collective with equal counts on all ranks. `count` is in elements: of all_reduce, broadcast
/// and reduce the whole buffer, of all_gather what a rank sends, of reduce_scatter what a rank
/// receives. In place: all_gather sends from recv + rank · count, reduce_scatter receives at send +
/// rank · count, the others use one buffer. Otherwise the buffers are disjoint.
struct RankCall {
  sharding::CollectiveKind kind = sharding::CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  sharding::ReduceKind reduction = sharding::ReduceKind::sum;
  double scale = 1; ///< the sum is multiplied by it
  int64_t count = 0;
  int64_t root = 0; ///< rank; of broadcast and reduce
};

/// A message between two ranks of a communicator.
struct RankMessage {
  int64_t peer = 0; ///< rank
  bool send = true;
  std::byte *data = nullptr;
  int64_t bytes = 0;
};

/// Issues the calls of the ranks of this process. A call returns when it is issued, and happens in
/// the order of its stream: its buffers belong to the engine until the stream has passed it.
///
/// Errors are those of this process, in one line that names the call, the rank, and what the
/// library says: wrong arguments at once, from the call; a rank that failed or did not come from
/// whichever function notices it. After an error the engine is of no more use.
class RankEngine {
public:
  /// `ordered`: devices order the calls of all their communicators. `concurrent`: those of this one
  /// may run beside others, which is safe only because they use few of a device's processors.
  enum class Calls { ordered, concurrent };

  virtual ~RankEngine() = default;

  /// Communicators of disjoint groups of devices, given by ascending process ids; a rank is a place
  /// in its group. Called at load, in the same order by all processes. `here` are the devices of
  /// this process; communicators without one of them are not to be used. One result a group.
  virtual Expected<std::vector<int64_t>>
  makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                    const std::vector<int64_t> &here, Calls calls = Calls::ordered) = 0;
  /// How many concurrent communicators there will be, before the first of them is made: they share
  /// some of the processors.
  virtual void expectConcurrent(int64_t communicators) {}

  /// The part of `rank` in a collective. The n-th of a rank meets the n-th of all other ranks;
  /// kind, dtype, reduction, scale, count and root agree.
  virtual Status call(Issue issue, int64_t communicator, int64_t rank, const RankCall &call,
                      const std::byte *send, std::byte *receive) = 0;
  /// All messages of a rank at once, none of which waits for another. Messages from one rank to
  /// another are received in the order in which they are sent, with as many bytes.
  virtual Status exchange(Issue issue, int64_t communicator, int64_t rank,
                          std::vector<RankMessage> messages) = 0;
  /// Around calls and exchanges of one communicator and stream that are issued together; engines
  /// that know groups start them at once. `what` is for messages.
  virtual Status beginCalls() { return {}; }
  virtual Status endCalls(int64_t communicator, const char *what) { return {}; }
  /// This process will make no more calls, though others may wait for them: it has failed.
  virtual void abandon() {}
  /// Called again and again while this process waits for a stream; does not wait itself. Engines
  /// whose calls go on by themselves only look after them.
  virtual Status progress() { return {}; }

  /// Memory that calls of these communicators may use without copies, where the library can. Called
  /// at load, by all members with as many bytes.
  virtual Status registerBuffer(std::byte *data, int64_t bytes,
                                const std::vector<int64_t> &communicators) {
    return {};
  }
};

/// Whether an engine's calls reduce as the runtime defines it (Reduce.h). Where they do not, the
/// plan is an exchange of all contributions, which each receiver reduces in the order of ranks.
using ReducesExactly = bool (*)(DType, sharding::ReduceKind);

/// What libraries such as NCCL do: max and min of floats lose NaN there, and there is no i16.
bool librariesReduceExactly(DType dtype, sharding::ReduceKind kind);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_ENGINE_H
