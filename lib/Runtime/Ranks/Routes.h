//===- Routes.h - Bytes sent between processes ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes that processes send for a program, before it runs: counts of the
// messages of HostEngine's plans.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_ROUTES_H
#define TESSERA_LIB_RUNTIME_RANKS_ROUTES_H

#include "Algorithm.h"
#include "Engine.h"
#include "tessera/Runtime/Artifact/Program.h"

#include <map>

namespace tessera::runtime {

/// A collective of a program, in one execution.
struct CollectiveRoutes {
  int64_t id = 0;
  std::string kind, loc; ///< "all_reduce"
  /// Algorithms of its calls, without duplicates, in order: "direct"; "exchange" for single
  /// messages. Empty if nothing is sent.
  std::vector<std::string> algorithms;
  std::map<std::pair<int64_t, int64_t>, int64_t> bytes; ///< by process ids, from and to
};

/// The routes of all collectives of a program in the order of their ids, on the backends `mpi` and
/// `tcp`. `hosts`: a number for each process id's host; empty: all share one.
Expected<std::vector<CollectiveRoutes>> routesOf(const Program &program,
                                                 const std::vector<int64_t> &hosts = {});

/// The same without the bytes, which is faster.
Expected<std::vector<CollectiveRoutes>> algorithmsOf(const Program &program,
                                                     const std::vector<int64_t> &hosts = {});

/// The plan request of a call. `hosts` as PlanRequest::hosts.
PlanRequest requestOf(const RankCall &call, int64_t rank, int64_t ranks,
                      std::vector<int64_t> hosts);

/// Bytes that the plan's rank sends, by place of the group.
std::vector<int64_t> bytesSentTo(const MessagePlan &plan, int64_t ranks, int64_t elementBytes);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_ROUTES_H
