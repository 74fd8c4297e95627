//===- DeviceMemory.h - Memory use of programs on devices -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Backends register every block of memory for a device of this process: arenas,
// staging buffers, workspaces. Constants are shared by devices and not counted.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_DEVICEMEMORY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_DEVICEMEMORY_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::runtime {

/// Bytes of a device, current and peak since the last reset.
struct MemoryUse {
  int64_t allocated = 0; ///< in use: pages of host memory that steps have touched
  int64_t reserved = 0;  ///< allocated from the system or the driver
  int64_t peakAllocated = 0, peakReserved = 0;
};

/// Counts one block for its lifetime, which must end before that of the memory.
class MemoryClaim {
public:
  /// `data`: pages of host memory, of which resident ones count as in use. Null: the whole block is
  /// in use.
  MemoryClaim(int64_t device, const std::byte *data, int64_t bytes);
  MemoryClaim(MemoryClaim &&other) noexcept;
  MemoryClaim &operator=(MemoryClaim &&) = delete;
  ~MemoryClaim();

private:
  uint64_t id = 0; ///< 0: moved away
};

/// Zeros for a device without a program in this process. Thread-safe.
MemoryUse memoryUse(int64_t device);
/// The devices that have had memory in this process, ascending.
std::vector<int64_t> devicesWithMemory();
/// Resets peaks to the current values.
void resetPeakMemory(int64_t device);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_DEVICEMEMORY_H
