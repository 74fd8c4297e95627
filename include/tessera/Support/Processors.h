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

/// The number of threads that this process can keep busy, at least 1: the processors of its
/// affinity mask, limited to those that its cgroups grant in full.
int64_t availableProcessors();

/// Processors that the cgroups of this process grant: the minimum over its groups and their
/// ancestors (version 2: cpu.max, version 1: cpu.cfs_quota_us over cpu.cfs_period_us). Empty if
/// none has a limit. Files are read below `root`, "" for those of this machine.
std::optional<double> processorQuota(const std::string &root);

} // namespace tessera

#endif // TESSERA_SUPPORT_PROCESSORS_H
