//===- Memory.h - The devices' arenas ---------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_THREADS_MEMORY_H
#define TESSERA_LIB_RUNTIME_THREADS_MEMORY_H

#include "tessera/Runtime/Artifact/Artifact.h"

namespace tessera::runtime {

/// An arena for every device of every part, zeroed at first, and the shared constants.
class Memory {
public:
  Memory() = default;
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory();

  /// `artifact` must outlive this. Fails when the machine has not enough memory.
  Status allocate(const Artifact &artifact);
  /// Start of a slot of a device, given by its position in the part's mesh. Constants are only
  /// read.
  std::byte *slot(int64_t part, int64_t position, int64_t slot) const;

private:
  struct Arena {
    std::byte *data;
    size_t size;
  };
  const Artifact *artifact = nullptr;
  std::vector<std::vector<Arena>> arenas; ///< by part and position
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_THREADS_MEMORY_H
