//===- Backoff.h - Pauses between questions ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_BACKOFF_H
#define TESSERA_LIB_RUNTIME_EXECUTION_BACKOFF_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace tessera::runtime {

/// How a thread waits for an answer that it has to ask for. The answer mostly comes within
/// microseconds, less than the shortest sleep takes: the first questions follow each other without
/// a pause. Later ones are farther and farther apart, so that a long wait leaves the core to
/// others.
class Backoff {
public:
  using Pause = std::chrono::microseconds;
  static constexpr int64_t kSpins = 1000;
  static constexpr Pause kShortest{1}, kLongest{200};

  /// The time before the next question.
  Pause next() {
    if (spins < kSpins) {
      ++spins;
      return Pause(0);
    }
    Pause now = pause;
    pause = std::min(2 * pause, kLongest);
    return now;
  }
  /// Sleeps before the next question; false if that takes no time.
  bool sleep() {
    Pause now = next();
    if (now.count() == 0)
      return false;
    std::this_thread::sleep_for(now);
    return true;
  }

private:
  int64_t spins = 0;
  Pause pause = kShortest;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_BACKOFF_H
