//===- CpuTopology.h - Cores and memory nodes of a machine ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_CPUTOPOLOGY_H
#define TESSERA_SUPPORT_CPUTOPOLOGY_H

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// A logical processor, by Linux's numbers.
struct LogicalProcessor {
  int64_t id = 0;
  int64_t core = 0; ///< the least id of the logical processors of its core
  int64_t package = 0;
  int64_t node = 0; ///< of memory (NUMA)
};

/// The logical processors that are online, in ascending order.
using CpuTopology = std::vector<LogicalProcessor>;

/// Of the machine whose sysfs is below `root`, "" for this one. What sysfs does not say is as on a
/// machine with one node and a logical processor a core. Empty without sysfs.
CpuTopology readCpuTopology(const std::string &root);

/// The logical processors that this process may run on, ascending: its affinity, which its cpuset
/// limits. Empty if unknown.
std::vector<int64_t> processAffinity();

/// "0-3,8" as 0, 1, 2, 3, 8; Linux's format of sets. Empty if malformed.
std::vector<int64_t> parseProcessorList(const std::string &text);

} // namespace tessera

#endif // TESSERA_SUPPORT_CPUTOPOLOGY_H
