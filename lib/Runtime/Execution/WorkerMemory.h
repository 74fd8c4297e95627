//===- WorkerMemory.h - Memory that a worker keeps --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_WORKERMEMORY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_WORKERMEMORY_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace tessera::runtime {

/// Memory for packed operands that a worker keeps between calls, aligned to pages.
class WorkerMemory {
public:
  /// At least this many elements; zero at first use.
  template <typename Element = float> Element *get(int64_t elements) {
    const auto bytes = static_cast<size_t>(elements) * sizeof(Element);
    if (bytes > size) {
      size = (bytes + 4095) / 4096 * 4096;
      memory.reset(std::aligned_alloc(4096, size));
      std::memset(memory.get(), 0, size);
    }
    return static_cast<Element *>(memory.get());
  }

private:
  struct Free {
    void operator()(void *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<void, Free> memory;
  size_t size = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_WORKERMEMORY_H
