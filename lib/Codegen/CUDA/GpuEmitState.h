//===- GpuEmitState.h - What a launch is emitted from -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pieces that GpuEmitter describes the work of a thread by: chunks of an index, what is known
// of an element, rows and tiles in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUEMITSTATE_H
#define TESSERA_CODEGEN_CUDA_GPUEMITSTATE_H

#include "GpuGroup.h"
#include "GpuLimits.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace tessera::codegen {

/// How a group is spread over a grid.
struct GpuShape {
  int64_t blocks = 1, threads = 1;
  /// Of a nest of loops: iterations and owners of places, each a thread of its own.
  int64_t iterations = 1, owners = 1;
};

struct GpuEmitState {
  using Values = llvm::SmallVector<mlir::Value>;

  /// Where an element is, seen from one chunk: the same for accesses of the same addresses.
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
  /// A chunk of the index that lanes lie along.
  struct Chunk {
    mlir::Value at;    ///< its first iteration; null: no index (a member without own loops)
    mlir::Value valid; ///< whether it is within the range; null: it is
    int64_t number = 0;
    int64_t lanes = 0; ///< 0: one iteration, as a scalar
    int64_t volume = 1;
    /// Rows only: the chunk begins at a whole address, so that the row's first and last ones reach
    /// beyond it. `full`: whether this one lies within; null: it does. `clamped`: `at` counts
    /// lanes that may lie outside; they take the place of the nearest that does not.
    bool shifted = false, clamped = false;
    mlir::Value full;
    mlir::Value slot; ///< its place among the thread's chunks, in a row that is walked by a loop
  };
  struct Pending {
    const GpuMember *member;
    const GpuAccess *access;
    Chunk chunk;
    mlir::Value value;
  };
  /// A flat index over own loops of `volume` iterations in all, spread over a team.
  struct Space {
    int64_t lanes = 0, chunks = 1;
    bool unrolled = true;
    /// When rows begin at any address, but many operands at the same one within 16 bytes: chunks
    /// begin `lead` elements before the row. It follows from this access.
    const GpuMember *leader = nullptr;
    const GpuAccess *leading = nullptr;
    mlir::Value lead;
  };
  /// From the first to the last member that accesses an element of a row.
  struct Range {
    unsigned first = 0, last = 0;
    size_t number = 0; ///< in the order of the program, which keys do not have
    mlir::Type element;
    bool computed = false; ///< by the first, and no argument of it
  };
  /// A row in shared memory, each chunk where its thread alone looks for it.
  struct Slot {
    size_t place = 0; ///< of `placed`
    mlir::Value memory;
    bool filled = false;
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
    mlir::Value lastAt, acrossAt; ///< where it begins
    mlir::Value rest;             ///< the flat index of the other loops
  };
  /// A sum over rows, the part of it that is a thread's.
  struct Sums {
    const GpuMember *member;
    const GpuAccess *access;
    int64_t volume;
    Slot memory; ///< where it is kept in shared memory; none: in registers or behind `access`
  };
  /// Where sums over rows are kept.
  enum class SumsIn { registers, shared, memory };
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUEMITSTATE_H
