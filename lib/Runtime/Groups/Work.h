//===- Work.h - A call of a group, under way ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_WORK_H
#define TESSERA_LIB_RUNTIME_GROUPS_WORK_H

#include "../Ranks/Sockets.h"
#include "tessera/Runtime/Artifact/Status.h"

#include <condition_variable>
#include <memory>
#include <mutex>

namespace tessera::runtime {

/// A call under way. Its buffers belong to it until it is done. The job's thread advances it; any
/// thread may ask for it and wait for it.
class Work {
public:
  Work(std::string what, Deadline deadline) : what(std::move(what)), deadline(deadline) {}
  virtual ~Work() = default;

  /// Done, or failed.
  bool isCompleted() const;
  /// Waits for the end, and says how it was.
  Status wait() const;
  /// Waits for the end or as long as said; whether it has ended.
  bool waitFor(double seconds) const;

  /// In the job's thread: does what can be done without waiting; true at the end.
  virtual Expected<bool> advance() = 0;
  /// Who is awaited, for the message of a call that takes too long.
  virtual std::string awaited() const = 0;
  void complete(const Status &status);

  const std::string what; ///< "all_reduce of 4 f32 by sum"
  const Deadline deadline;

private:
  mutable std::mutex mutex;
  mutable std::condition_variable completed;
  bool isDone = false;
  Status result;
};

using WorkPtr = std::shared_ptr<Work>;

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_WORK_H
