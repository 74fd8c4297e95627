//===- DeviceCalls.h - Collectives in memory of a device --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a library such as NCCL does for a group: the data moves by it, and the
// group's transport carries the rest, what ranks compare before a call and who
// is alive.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_DEVICECALLS_H
#define TESSERA_LIB_RUNTIME_GROUPS_DEVICECALLS_H

#include "GroupCall.h"

#include <functional>
#include <memory>

namespace tessera::runtime {

/// The device of this process. Used by the job's thread, but for `supports`. No function waits for
/// other ranks. Errors are one line that names the call and what the library says; after one, only
/// `abort` is called.
class DeviceCalls {
public:
  static constexpr int64_t kIdBytes = 128;

  virtual ~DeviceCalls() = default;

  /// Why the library cannot make this call. All ranks come to the same answer.
  virtual Status supports(const GroupCall &call) const = 0;
  /// By which the ranks of a communicator find each other; made by one of them, `kIdBytes` long.
  virtual Expected<std::string> makeId() = 0;
  /// A communicator, which all of its ranks join. It is used when `isJoined` says so.
  virtual Expected<int64_t> join(const std::string &id, int64_t place, int64_t size) = 0;
  virtual Expected<bool> isJoined(int64_t communicator) = 0;
  /// Issues a call, whose root is `rootPlace`. The next one of the communicator follows its end.
  virtual Status begin(int64_t communicator, const GroupCall &call, int64_t rootPlace) = 0;
  virtual Expected<bool> isDone(int64_t communicator) = 0;
  /// Copies between memory of the device, when `stream` has come to this point, and of the host.
  virtual Status read(std::byte *to, const std::byte *from, int64_t bytes, void *stream) = 0;
  virtual Status write(std::byte *to, const std::byte *from, int64_t bytes) = 0;
  /// Ends what is under way, where ranks are gone.
  virtual void abort() = 0;
};

/// Opens the device of a local rank.
using OpenDeviceCalls = std::function<Expected<std::unique_ptr<DeviceCalls>>(int64_t localRank)>;

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_DEVICECALLS_H
