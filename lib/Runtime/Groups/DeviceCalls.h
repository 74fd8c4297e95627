//===- DeviceCalls.h - Collectives in device memory -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface of a library such as NCCL for a group: the library moves the data;
// the group's transport carries the comparison of calls and the state of the ranks.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_DEVICECALLS_H
#define TESSERA_LIB_RUNTIME_GROUPS_DEVICECALLS_H

#include "GroupCall.h"

#include <functional>
#include <memory>

namespace tessera::runtime {

/// The device of this process. Used by the job's thread, except `supports`. No function waits for
/// other ranks. Errors are one line with the call and the library's message; after one, only
/// `abort` is called.
class DeviceCalls {
public:
  static constexpr int64_t kIdBytes = 128;

  virtual ~DeviceCalls() = default;

  /// An error if the library cannot make this call. All ranks get the same result.
  virtual Status supports(const GroupCall &call) const = 0;
  /// The id by which the ranks of a communicator find each other, created by one of them,
  /// `kIdBytes` long.
  virtual Expected<std::string> makeId() = 0;
  /// Joins a communicator, as do all of its ranks. It may be used once `isJoined`.
  virtual Expected<int64_t> join(const std::string &id, int64_t place, int64_t size) = 0;
  virtual Expected<bool> isJoined(int64_t communicator) = 0;
  /// Issues a call, whose root is `rootPlace`. The next call of the communicator comes after its
  /// end.
  virtual Status begin(int64_t communicator, const GroupCall &call, int64_t rootPlace) = 0;
  virtual Expected<bool> isDone(int64_t communicator) = 0;
  /// Copies between device memory, in the order of `stream`, and host memory.
  virtual Status read(std::byte *to, const std::byte *from, int64_t bytes, void *stream) = 0;
  virtual Status write(std::byte *to, const std::byte *from, int64_t bytes) = 0;
  /// Aborts pending calls after the loss of ranks.
  virtual void abort() = 0;
};

/// Opens the device of a local rank.
using OpenDeviceCalls = std::function<Expected<std::unique_ptr<DeviceCalls>>(int64_t localRank)>;

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_DEVICECALLS_H
