//===- Lane.h - A queue of operations of a rank -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_MPI_LANE_H
#define TESSERA_LIB_RUNTIME_MPI_LANE_H

#include "../Ranks/HostEngine.h"

#include <deque>

namespace tessera::runtime {

/// A stream of operations that progress while the rank computes, by calls of `advance`.
class Lane {
public:
  void push(HostStreams::Start start) { queue.push_back(std::move(start)); }
  /// An operation that does not wait.
  void pushLocal(std::function<void()> action) {
    queue.push_back([action = std::move(action)]() -> Expected<std::unique_ptr<HostWork>> {
      action();
      return std::unique_ptr<HostWork>();
    });
  }
  bool idle() const { return !work && queue.empty(); }
  /// Advances without waiting; returns whether an operation ended.
  Expected<bool> advance() {
    bool went = false;
    while (!idle()) {
      if (!work) {
        auto begun = queue.front()();
        if (!begun)
          return begun.status();
        queue.pop_front();
        work = std::move(*begun);
      }
      if (work) {
        auto done = work->advance();
        if (!done)
          return done.status();
        if (!*done)
          return went;
        work.reset();
      }
      went = true;
    }
    return went;
  }
  /// Ranks whose messages the current operation waits for.
  std::vector<int64_t> awaited() const { return work ? work->awaited() : std::vector<int64_t>(); }
  /// The handle for engines.
  StreamObject *stream() { return reinterpret_cast<StreamObject *>(this); }
  static Lane &of(StreamObject *stream) { return *reinterpret_cast<Lane *>(stream); }

private:
  std::deque<HostStreams::Start> queue;
  std::unique_ptr<HostWork> work; ///< of the current operation, which has left the queue
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_LANE_H
