//===- Work.h - A pending call of a group -----------------------*- C++ -*-===//
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

/// A pending call. Its buffers belong to it until it is done. The job's thread advances it; any
/// thread may query it and wait for it.
class Work {
public:
  Work(std::string what, Deadline deadline) : what(std::move(what)), deadline(deadline) {}
  virtual ~Work() = default;

  /// Done, or failed.
  bool isCompleted() const;
  /// Waits for the end and returns the result.
  Status wait() const;
  /// Waits for the end, at most `seconds`; returns whether it has ended.
  bool waitFor(double seconds) const;

  /// In the job's thread: advances without waiting; true at the end.
  virtual Expected<bool> advance() = 0;
  /// The awaited ranks, for the message of a timeout.
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
