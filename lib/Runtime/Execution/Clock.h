//===- Clock.h - Time since a start -----------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_CLOCK_H
#define TESSERA_LIB_RUNTIME_EXECUTION_CLOCK_H

#include <chrono>
#include <cstdint>

namespace tessera::runtime {

/// Nanoseconds since construction.
class Clock {
public:
  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                origin)
        .count();
  }

private:
  std::chrono::steady_clock::time_point origin = std::chrono::steady_clock::now();
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_CLOCK_H
