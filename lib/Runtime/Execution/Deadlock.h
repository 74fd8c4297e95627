//===- Deadlock.h - Report of a deadlock ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_DEADLOCK_H
#define TESSERA_LIB_RUNTIME_EXECUTION_DEADLOCK_H

#include "tessera/Runtime/Artifact/Program.h"

namespace tessera::runtime {

/// Describes a deadlock of devices, or of the parts of a program. Names the first four that wait and
/// their waits, the number of others, and those that have finished.
class DeadlockReport {
public:
  /// `unit`: the noun for what is numbered.
  explicit DeadlockReport(std::string unit = "device") : unit(std::move(unit)) {}
  /// `wait`: the device's wait, starting with one of the texts below; empty if it has finished.
  void add(int64_t device, const std::string &wait);
  /// Empty when no device waits.
  std::string text() const;

private:
  std::string unit, waiting, finished;
  int64_t count = 0;
};

/// "waits in collective 3 (all_reduce) at f.mlir:3", "waits in recv 9": of a collective or a
/// transfer.
std::string waitText(const Step &step);
/// "device 2", "devices 2, 3": process ids.
std::string devicesText(const std::vector<int64_t> &devices);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_DEADLOCK_H
