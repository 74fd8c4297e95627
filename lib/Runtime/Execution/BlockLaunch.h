//===- BlockLaunch.h - Kernels on blocks of a product's result --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch by blocks calls its kernel once for each block of its slots. If it joins
// the product before it, the worker that completes a block of the product's result
// calls the kernel while the block is in its cache.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_BLOCKLAUNCH_H
#define TESSERA_LIB_RUNTIME_EXECUTION_BLOCKLAUNCH_H

#include "KernelLibrary.h"
#include "tessera/Runtime/Artifact/Program.h"

#include <atomic>
#include <memory>
#include <vector>

namespace tessera::runtime {

/// A launch with the pointers of its slots; calls of different blocks may run at once.
class BlockLaunch {
public:
  BlockLaunch(const Program &program, const LaunchStep &step, Kernel kernel, int64_t tasks,
              std::vector<void *> slots);
  int64_t size() const { return blocks; }
  void run(int64_t block) const { run(block, 0, tasks); }
  /// Tasks [begin, end) of the kernel, of `numTasks`.
  void run(int64_t block, int64_t begin, int64_t end) const;
  int64_t numTasks() const { return tasks; }

private:
  Kernel kernel;
  int64_t tasks, blocks;
  std::vector<void *> slots;
  std::vector<int64_t> steps; ///< bytes from one block to the next; 0 of slots that are not cut
};

/// First and last element of a result that a piece of a product may write.
using ElementRange = std::pair<int64_t, int64_t>;

/// Which blocks of a result are complete when pieces of the product are.
class BlockProgress {
public:
  /// `written` has a range for each piece, `elements` those of the result.
  BlockProgress(const std::vector<ElementRange> &written, int64_t elements, int64_t blocks);

  /// Before the pieces of a product start.
  void begin();
  /// After a piece was computed: calls `run(block)` for blocks that are complete. Those that the
  /// last `workers` pieces complete are left, so that all workers share them. Called by any worker.
  /// Every block is run or left exactly once.
  template <typename Run> void finish(int64_t piece, int64_t workers, const Run &run) {
    bool isLast = workers > 1 && piece >= static_cast<int64_t>(ranges.size()) - workers;
    for (int64_t block = ranges[piece].first; block <= ranges[piece].second; ++block) {
      if (pending[block].fetch_sub(1, std::memory_order_acq_rel) != 1)
        continue;
      if (isLast)
        isLeft[block] = true;
      else
        run(block);
    }
  }
  /// The blocks that are left when all pieces are finished.
  std::vector<int64_t> left() const;

private:
  std::vector<std::pair<int64_t, int64_t>> ranges; ///< first and last block of each piece
  std::vector<int32_t> counts;                     ///< pieces of each block
  std::unique_ptr<std::atomic<int32_t>[]> pending;
  std::vector<char> isLeft; ///< each written by the worker that completes the block
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_BLOCKLAUNCH_H
