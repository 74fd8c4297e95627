//===- DevicesExecutor.h - Several devices of a process ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_MPI_DEVICESEXECUTOR_H
#define TESSERA_LIB_RUNTIME_MPI_DEVICESEXECUTOR_H

#include "ProcessExecutor.h"

#include <functional>

namespace tessera::runtime {

/// The devices of one process of a job with several devices per process: one ProcessExecutor per
/// device, each in a thread. They treat each other like devices of other processes.
class DevicesExecutor final : public JobExecutor {
public:
  explicit DevicesExecutor(std::vector<std::unique_ptr<ProcessExecutor>> devices)
      : devices(std::move(devices)) {}

  /// Calls an action concurrently for each number below `count`, each in its own thread. Returns
  /// the first error, preferring one that only one thread has.
  static Status onAll(size_t count, const std::function<Status(size_t)> &body);

  Status run() override;
  Status finish() override;
  Status writeSlot(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                   int64_t size) override;
  Expected<std::vector<const std::byte *>> readSlots(int64_t part,
                                                     const std::vector<int64_t> &positions,
                                                     int64_t slot, int64_t size, Readers readers,
                                                     std::vector<Bytes> &staging) override;
  std::byte *slotData(int64_t part, int64_t position, int64_t slot) override;
  bool holds(int64_t part, int64_t position) const override { return holder(part, position); }
  bool reportsResults() const override { return devices.front()->reportsResults(); }
  std::vector<CollectiveStats> stats() const override;
  std::vector<CollectiveRecord> recorded() const override { return devices.front()->recorded(); }
  std::string traceJson() const override;

private:
  ProcessExecutor *holder(int64_t part, int64_t position) const;

  const std::vector<std::unique_ptr<ProcessExecutor>> devices; ///< ascending
  bool isCounted = false; ///< each device has the counts of all
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_DEVICESEXECUTOR_H
