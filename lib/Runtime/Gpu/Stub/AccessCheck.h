//===- AccessCheck.h - Races within a launch --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds races among the threads of one launch. Two accesses to the same bytes, at least one of them
// a write, need an order:
//
//   threads of different blocks           none exists within a launch
//   different threads of one block        a barrier of the block between the accesses
//   different lanes of one warp           a barrier of the block or of the warp
//   an asynchronous copy and its thread   the end of the wait for the copy
//
// Nothing else orders accesses: shuffles and matrix instructions order the lanes of a warp, but the
// PTX ISA promises nothing of their memory. Writes of equal values are races as well. The check
// does not depend on the order in which the emulator runs blocks and threads, because every access
// is compared with all earlier ones to the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_ACCESSCHECK_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_ACCESSCHECK_H

#include "tessera/Runtime/Artifact/GpuKernels.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::runtime {

enum class AccessKind { read, write, copyBegin, copyEnd };

class AccessCheck {
public:
  /// Of one launch; `pointers`: one for each of `launch.arguments`. Emulated threads have indices
  /// below 65,535 in their block.
  AccessCheck(const GpuLaunch &launch, void *const *pointers);

  /// The next accesses are those of block number `number`, whose shared memory is at `memory`.
  void enterBlock(uint32_t number, const void *memory);
  /// All threads of the block have passed a barrier.
  void passBarrier() { ++epoch; }
  /// All lanes of a warp of the block have passed a barrier of the warp.
  void passWarpBarrier(uint32_t warp) { ++warpEpochs[warp]; }

  /// The least bytes of an access, a power of two: the resolution of the check. Ignored after the
  /// first call.
  void setResolution(uint32_t bytes);

  /// Records an access by thread number `thread` of the block. Returns the sentence's end that
  /// describes a race ("reads byte 0 of the workspace, which ..."), else an empty text. Ignores
  /// memory that is neither shared nor an argument.
  std::string access(uint32_t thread, const void *address, int64_t bytes, AccessKind kind);

private:
  /// The accesses to a few bytes that later ones may race with. Threads are numbers + 1; 0: none.
  struct Cell {
    uint32_t block = 0;        ///< number + 1 of the last block that accessed the bytes
    uint32_t earlierBlock = 0; ///< number + 1 of a block before it that read them
    uint32_t writeEpoch = 0, readEpoch = 0;
    uint32_t writeWarpEpoch = 0, readWarpEpoch = 0; ///< of the warps of writer, last reader
    uint16_t writer = 0, earlierReader = 0;
    /// Of readEpoch: one, and another if there are several, of another warp if there are several
    /// warps. Without those that a barrier of the only warp orders before the last one.
    uint16_t readers[2] = {};
    bool copying = false; ///< an asynchronous copy of `writer` is under way
  };
  /// A range of memory with its cells.
  struct Region {
    uintptr_t begin = 0;
    int64_t bytes = 0;
    std::vector<Cell> cells;
  };

  /// The access that the last one races with.
  struct Other {
    uint16_t thread = 0;
    uint32_t block = 0;
    bool wrote = false;
  };

  static uint32_t warpOf(uint16_t thread) { return (thread - 1u) / kWarp; }
  bool record(Cell &cell, uint16_t thread, AccessKind kind);
  std::string reasonOf(const Cell &cell) const;
  /// "byte 4 of operand 2"
  std::string placeOf(uintptr_t address, bool isShared) const;
  std::string nameOf(uint16_t thread, uint32_t inBlock) const;

  const GpuLaunch &launch;
  void *const *pointers;
  Region shared;
  std::vector<Region> written; ///< the arguments that the launch writes, overlapping ones joined
  Other other;
  int shift = -1;     ///< a cell has 2^shift bytes; negative: not known yet
  uint32_t block = 0; ///< number + 1
  uint32_t epoch = 0; ///< barriers that the block has passed
  static constexpr uint32_t kWarp = 32;
  std::vector<uint32_t> warpEpochs; ///< barriers that each warp of the block has passed
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_ACCESSCHECK_H
