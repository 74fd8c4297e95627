//===- Fiber.h - Functions that suspend and resume --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_FIBER_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_FIBER_H

#include <cstddef>
#include <memory>

namespace tessera::runtime {

/// A stack for functions that suspend. A fiber belongs to the CPU thread that resumes it.
class Fiber {
public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Prepares `entry(argument)` and discards the previous function. `entry` must not return: it
  /// ends with a last `stop`.
  void begin(void (*entry)(void *), void *argument);
  /// Runs until the fiber calls `stop`.
  void resume();
  /// Called in the fiber: returns to its `resume`.
  void stop();

private:
  struct Context;
  std::unique_ptr<Context> context;
  void *stack = nullptr;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_FIBER_H
