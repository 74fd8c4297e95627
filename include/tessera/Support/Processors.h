//===- Processors.h - Processors that a process may use ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_PROCESSORS_H
#define TESSERA_SUPPORT_PROCESSORS_H

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// Threads that this process can keep busy, at least 1: the processors of its affinity mask, but no
/// more than its cgroups grant it in full.
int64_t availableProcessors();

/// Processors that the cgroups of this process grant it, the least of all its groups and those
/// around them (version 2: cpu.max, version 1: cpu.cfs_quota_us over cpu.cfs_period_us). Nothing
/// where none has a limit. Files are read below `root`, "" for those of this machine.
std::optional<double> processorQuota(const std::string &root);

} // namespace tessera

#endif // TESSERA_SUPPORT_PROCESSORS_H
