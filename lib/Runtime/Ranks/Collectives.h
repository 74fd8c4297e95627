//===- Collectives.h - The calls that ranks make together -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The subset of NCCL that collective steps are made of. `cuda` opens libnccl,
// `stub` matches the calls of its ranks and performs them on the host.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_COLLECTIVES_H
#define TESSERA_LIB_RUNTIME_RANKS_COLLECTIVES_H

#include "../Gpu/Driver.h"

namespace tessera::runtime::gpu {

/// A call with equal counts on all ranks. `count` is in elements: of all_reduce, broadcast and
/// reduce the whole buffer, of all_gather what a rank sends, of reduce_scatter what a rank
/// receives. In place: all_gather sends from recv + rank · count, reduce_scatter receives at send +
/// rank · count, the others use one buffer.
struct NativeCall {
  sharding::CollectiveKind kind = sharding::CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  sharding::ReduceKind reduction = sharding::ReduceKind::sum;
  double scale = 1; ///< the sum is multiplied by it
  int64_t count = 0;
  int64_t root = 0; ///< rank; of broadcast and reduce
};

/// One message of a group of sends and receives.
struct PeerCopy {
  int64_t peer = 0; ///< rank
  bool send = true;
  std::byte *data = nullptr;
  int64_t bytes = 0;
};

class Collectives {
public:
  /// `ordered`: devices order the calls of all their communicators. `concurrent`: those of this one
  /// may run beside others, which is safe only because they use few of a GPU's processors.
  enum class Calls { ordered, concurrent };

  virtual ~Collectives() = default;
  /// Communicators of disjoint groups of devices, given by ascending process ids; a rank is a place
  /// in its group. Called at load, in the same order by all processes. `here` are the devices of
  /// this process; communicators without one of them are not to be used. One result a group.
  virtual Expected<std::vector<int64_t>>
  makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                    const std::vector<int64_t> &here, Calls calls = Calls::ordered) = 0;
  /// How many concurrent communicators there will be, before the first of them is made: they share
  /// some of the processors.
  virtual void expectConcurrent(int64_t communicators) {}
  virtual Status call(Issue issue, int64_t communicator, int64_t rank, const NativeCall &call,
                      const std::byte *send, std::byte *receive) = 0;
  /// All messages of a rank at once, in the order that pairs them with their peers'.
  virtual Status exchange(Issue issue, int64_t communicator, int64_t rank,
                          std::vector<PeerCopy> messages) = 0;
  /// Memory that calls of these communicators may use without copies, where the library can. Called
  /// at load, by all members with as many bytes.
  virtual Status registerBuffer(std::byte *data, int64_t bytes,
                                const std::vector<int64_t> &communicators) {
    return {};
  }
};

/// Whether a library call reduces this as the runtime defines it: max and min of floats lose NaN
/// there, and there is no i16.
bool hasNativeReduction(DType dtype, sharding::ReduceKind kind);

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_RANKS_COLLECTIVES_H
