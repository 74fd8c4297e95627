//===- DeviceMemory.h - What programs keep on devices, counted --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every block of memory that a backend takes for a device of this process is
// claimed here: arenas, staging buffers, workspaces. Constants are shared by
// devices, and counted for none.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_DEVICEMEMORY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_DEVICEMEMORY_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::runtime {

/// Bytes of a device, now and at most since the peaks were reset.
struct MemoryUse {
  int64_t allocated = 0; ///< used: pages of host memory that steps have touched
  int64_t reserved = 0;  ///< taken from the system or the driver
  int64_t peakAllocated = 0, peakReserved = 0;
};

/// Counts one block until it goes, which must be before the memory itself does.
class MemoryClaim {
public:
  /// `data`: pages of host memory, of which those that are resident are counted as used. Null: all
  /// of the block is used.
  MemoryClaim(int64_t device, const std::byte *data, int64_t bytes);
  MemoryClaim(MemoryClaim &&other) noexcept;
  MemoryClaim &operator=(MemoryClaim &&) = delete;
  ~MemoryClaim();

private:
  uint64_t id = 0; ///< 0: moved away
};

/// Zeros for a device that has no program here. Thread-safe.
MemoryUse memoryUse(int64_t device);
/// The devices that have had memory in this process, ascending.
std::vector<int64_t> devicesWithMemory();
/// Peaks are from now on what there is now.
void resetPeakMemory(int64_t device);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_DEVICEMEMORY_H
