//===- WorkerMemory.h - Memory that a worker keeps --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_WORKERMEMORY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_WORKERMEMORY_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace tessera::runtime {

/// Memory for packed operands that a worker keeps between calls, aligned to pages.
class WorkerMemory {
public:
  /// At least this many floats; zero at first use.
  float *get(int64_t elements) {
    if (elements > size) {
      memory.reset(static_cast<float *>(
          std::aligned_alloc(4096, static_cast<size_t>((elements * 4 + 4095) / 4096 * 4096))));
      std::fill_n(memory.get(), elements, 0.0f);
      size = elements;
    }
    return memory.get();
  }

private:
  struct Free {
    void operator()(float *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<float, Free> memory;
  int64_t size = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_WORKERMEMORY_H
