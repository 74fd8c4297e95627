//===- Routes.h - Who sends how much to whom --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What processes send for a program, known before it runs: the messages of
// HostEngine's plans, counted.
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
  /// Of its calls, each once, in their order: "direct"; "exchange" of single messages. Empty where
  /// nothing is sent.
  std::vector<std::string> algorithms;
  std::map<std::pair<int64_t, int64_t>, int64_t> bytes; ///< by process ids, from and to
};

/// Of all collectives of a program in the order of their ids, as the backends `mpi` and `tcp` run
/// them. `hosts`: a number for each process id's host; empty: all share one.
Expected<std::vector<CollectiveRoutes>> routesOf(const Program &program,
                                                 const std::vector<int64_t> &hosts = {});

/// The same without the bytes, which take longer.
Expected<std::vector<CollectiveRoutes>> algorithmsOf(const Program &program,
                                                     const std::vector<int64_t> &hosts = {});

/// The request that a call of ranks is. `hosts` as PlanRequest::hosts.
PlanRequest requestOf(const RankCall &call, int64_t rank, int64_t ranks,
                      std::vector<int64_t> hosts);

/// Bytes that the plan's rank sends, by place of the group.
std::vector<int64_t> bytesSentTo(const MessagePlan &plan, int64_t ranks, int64_t elementBytes);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_ROUTES_H
