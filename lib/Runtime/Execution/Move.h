//===- Move.h - A redistribution compiled to strided copies -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All movement of tensors between buffers goes through here: collectives,
// transfers, and the host's scattering of inputs and assembling of results. The
// pieces of `sharding::redistribute` become strided runs once, at load.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_MOVE_H
#define TESSERA_LIB_RUNTIME_EXECUTION_MOVE_H

#include "Reduce.h"
#include "tessera/Runtime/Artifact/Program.h"

#include <atomic>
#include <memory>

namespace tessera::runtime {

/// Bytes sent and received by each device, counted by the routines that move them.
class TrafficCounter {
public:
  explicit TrafficCounter(int64_t devices) : sent(devices), received(devices) {}
  void add(int64_t from, int64_t to, int64_t bytes) {
    sent[from].fetch_add(bytes, std::memory_order_relaxed);
    received[to].fetch_add(bytes, std::memory_order_relaxed);
  }
  std::vector<int64_t> sentBytes() const { return {sent.begin(), sent.end()}; }
  std::vector<int64_t> receivedBytes() const { return {received.begin(), received.end()}; }

private:
  std::vector<std::atomic<int64_t>> sent, received; ///< by process id
};

/// The sender of a value that several devices receive. `direct`: its source. `relayed`: each
/// receiver forwards it to the next, as in rings and trees. In shared memory this is a convention,
/// so that the counted bytes are those of the algorithms in sharding::Traffic.
enum class Attribution { direct, relayed };
Attribution attributionOf(sharding::CollectiveKind kind);

/// A box as runs of contiguous elements, the same in every source and every target.
struct Strides {
  std::vector<int64_t> extents;        ///< of the outer loops, slowest first
  std::vector<int64_t> source, target; ///< stride of each loop, in elements
  int64_t run = 1;                     ///< contiguous elements in both
  int64_t elements = 0;                ///< in all
};

/// Strides of the outer loops, in elements, for a dense box.
std::vector<int64_t> denseStrides(const Strides &strides);

/// A position of a mesh with the offset of the box in its buffer, in elements.
struct End {
  int64_t position = 0;
  int64_t device = 0; ///< process id
  int64_t offset = 0;
};

/// A box with its sources (reduced in order) and targets; without sources it is filled.
struct MovePiece {
  Strides strides;
  std::vector<End> sources, targets;
  ElementBytes value{}; ///< of a fill

  bool isFill() const { return sources.empty(); }
};

/// The move of one tensor between the buffers of two layouts. Immutable once built; any number of
/// threads may run disjoint parts of it.
class Move {
public:
  struct Options {
    std::optional<double> fill;   ///< written to the padding of the targets
    bool separateTargets = false; ///< each piece has one target, whose device executes it
    Attribution attribution = Attribution::direct;
  };
  Move(DType dtype, const sharding::Mesh &sourceMesh, const sharding::Layout &source,
       const sharding::Mesh &targetMesh, const sharding::Layout &target, const Options &options);

  const std::vector<MovePiece> &pieces() const { return list; }
  int64_t elementBytes() const { return elementSize; }

  /// Moves elements [begin, end) of a piece. Buffers are found by mesh position. Within a chunk all
  /// sources are read before a target is written, so a target may be a source of the same elements.
  void run(const MovePiece &piece, int64_t begin, int64_t end, const std::byte *const *sources,
           std::byte *const *targets, TrafficCounter *counter) const;
  /// Runs the whole move on the calling thread.
  void runAll(const std::byte *const *sources, std::byte *const *targets,
              TrafficCounter *counter) const;

  /// Counts the bytes of one execution without executing it.
  void countAll(TrafficCounter &counter) const;
  /// The reduction of several sources of a piece, and the factor of each value.
  sharding::ReduceKind reduction() const { return kind; }
  double resultScale() const { return scale; }

  /// Whether targets may share the memory of the sources exactly (the same slot): no element is
  /// written before another piece has read it.
  bool inPlaceSafe() const { return safeInPlace; }

private:
  /// The two sides of the move; needed only while it is built.
  struct Sides {
    const sharding::Mesh &sourceMesh;
    const sharding::Layout &source;
    const sharding::Mesh &targetMesh;
    const sharding::Layout &target;
  };
  void addPiece(const Sides &sides, const sharding::Box &box, const std::vector<int64_t> &sources,
                const std::vector<int64_t> &targets);
  void addFill(const Sides &sides, int64_t position, const sharding::Box &box, ElementBytes value);
  static bool computeInPlaceSafe(const Sides &sides, const sharding::Redistribution &move);
  void copyRun(const MovePiece &piece, int64_t sourceAt, int64_t targetAt, int64_t count,
               const std::byte *const *sources, std::byte *const *targets) const;
  void reduceRun(const MovePiece &piece, int64_t sourceAt, int64_t targetAt, int64_t count,
                 const std::byte *const *sources, std::byte *const *targets) const;
  void fillRun(const MovePiece &piece, int64_t targetAt, int64_t count,
               std::byte *const *targets) const;
  void count(const MovePiece &piece, int64_t begin, int64_t end, TrafficCounter &counter) const;

  int64_t elementSize;
  double scale = 1.0;
  sharding::ReduceKind kind = sharding::ReduceKind::sum;
  Attribution attribution;
  ReduceFunction reduce;
  bool safeInPlace = false;
  bool streams = false; ///< bypasses the cache
  std::vector<MovePiece> list;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_MOVE_H
