//===- Memory.h - The devices' arenas ---------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_MEMORY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_MEMORY_H

#include "DeviceMemory.h"
#include "Placement.h"
#include "tessera/Runtime/Artifact/Artifact.h"

#include <optional>

namespace tessera::runtime {

/// Zeroed memory for munmap; null if there is too little. Large blocks consist of huge pages where
/// the system has them: look-ups and transposes touch a different page with every row.
std::byte *mapZeroed(size_t size);

/// A zeroed arena for every part and device of this process, and the shared constants.
class Memory {
public:
  Memory() = default;
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory();

  /// `artifact` must outlive this. `only`: the process id of the only device of this process. Fails
  /// if the machine has too little memory. Arenas are on the memory nodes of their devices.
  Status allocate(const Artifact &artifact, const Placement &placement,
                  std::optional<int64_t> only = {});
  /// Whether the device at a position of a part's mesh is in this process.
  bool holds(int64_t part, int64_t position) const { return arenas[part][position].data; }
  /// Start of the arena of a device in this process.
  std::byte *arena(int64_t part, int64_t position) const { return arenas[part][position].data; }
  /// Start of a part's packed operands on a device in this process.
  std::byte *packed(int64_t part, int64_t position) const;
  /// Start of a slot of a device in this process, given by its position in the part's mesh.
  /// Constants are read-only.
  std::byte *slot(int64_t part, int64_t position, int64_t slot) const;

private:
  struct Arena {
    std::byte *data = nullptr;
    size_t size = 0;
  };
  const Artifact *artifact = nullptr;
  std::vector<std::vector<Arena>> arenas; ///< by part and position
  std::vector<MemoryClaim> claims;        ///< of the arenas
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_MEMORY_H
