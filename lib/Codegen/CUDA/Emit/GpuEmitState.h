//===- GpuEmitState.h - State of the emission of a launch -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The data structures of GpuEmitter: chunks of an index, facts about elements, rows and tiles in
// shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUEMITSTATE_H
#define TESSERA_CODEGEN_CUDA_GPUEMITSTATE_H

#include "../GpuLimits.h"
#include "../Groups/GpuGroup.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace tessera::codegen {

/// The grid of a group.
struct GpuShape {
  int64_t blocks = 1, threads = 1;
  int64_t resident = 1; ///< blocks of a multiprocessor, for which registers must suffice
  /// In a nest of loops: the number of iterations and of owners of indices. Each combination is a
  /// thread.
  int64_t iterations = 1, owners = 1;
};

struct GpuEmitState {
  using Values = llvm::SmallVector<mlir::Value>;

  /// The address of an element relative to a chunk. Accesses to the same addresses have equal keys.
  struct Key {
    void *root, *view;
    int64_t base, volume, chunk;
    bool vector;
    llvm::SmallVector<FlatAccess::Dim> outer, inner;
    bool operator<(const Key &o) const {
      return std::tie(root, view, base, volume, chunk, vector, outer, inner) <
             std::tie(o.root, o.view, o.base, o.volume, o.chunk, o.vector, o.outer, o.inner);
    }
  };
  /// A chunk of consecutive iterations along the vector lanes.
  struct Chunk {
    mlir::Value at;    ///< its first iteration; null for members without own loops
    mlir::Value valid; ///< whether it is within the range; null: always
    int64_t number = 0;
    int64_t lanes = 0; ///< 0: one iteration, as a scalar
    int64_t volume = 1;
    /// Rows only: chunks begin at aligned addresses, so the first and last one of a row extend
    /// beyond it. `full`: whether this chunk is entirely within the row; null: always. `clamped`:
    /// lanes outside the row are possible; they use the nearest element inside.
    bool shifted = false, clamped = false;
    mlir::Value full;
    mlir::Value slot; ///< its number among the thread's chunks, in rows processed by a loop
  };
  struct Pending {
    const GpuMember *member;
    const GpuAccess *access;
    Chunk chunk;
    mlir::Value value;
  };
  /// A flat index over own loops of `volume` iterations in total, distributed over a team.
  struct Space {
    int64_t lanes = 0, chunks = 1;
    bool unrolled = true;
    /// If rows begin at unaligned addresses, but many operands with the same offset modulo 16
    /// bytes: chunks begin `lead` elements before the row. This access determines `lead`.
    const GpuMember *leader = nullptr;
    const GpuAccess *leading = nullptr;
    mlir::Value lead;
  };
  /// The live range of an element of a row: its first and last accesses by members.
  struct Range {
    unsigned first = 0, last = 0;
    size_t number = 0; ///< in program order, since keys have none
    mlir::Type element;
    bool computed = false; ///< a result of the first member, not an argument of it
  };
  /// A row in shared memory. Each chunk is accessed only by its own thread.
  struct Slot {
    size_t place = 0; ///< index into `placed`
    mlir::Value memory;
    bool filled = false;
  };
  /// A sum of exponentials that is computed in the walk of a maximum over the same row.
  struct OnlineSum {
    const GpuMember *maximum, *sum;
    Key shift;                   ///< of the value that the sum's exponents subtract, one per row
    mlir::Value part, reference; ///< after the walk: the sum relative to `reference`
  };
  /// An operand in shared memory, tile[last][across].
  struct Staged {
    mlir::Value memory;
    int64_t pitch = 0;
  };
  /// The two loops of a tile, and the threads that share it.
  struct Tile {
    int64_t last = 1, across = 1; ///< extents
    int64_t threads = 1;
    mlir::Value lastAt, acrossAt; ///< its origin
    mlir::Value rest;             ///< the flat index of the other loops
  };
  /// A thread's part of a sum over rows.
  struct Sums {
    const GpuMember *member;
    const GpuAccess *access;
    int64_t volume;
    Slot memory; ///< its shared memory; none: registers, or the memory of `access`
  };
  /// The storage of sums over rows.
  enum class SumsIn { registers, shared, memory };
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUEMITSTATE_H
