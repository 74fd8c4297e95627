//===- AlgorithmChoice.h - Choice of a collective's algorithm ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_ALGORITHMCHOICE_H
#define TESSERA_LIB_RUNTIME_RANKS_ALGORITHMCHOICE_H

#include "Algorithm.h"
#include "Transport.h"

namespace tessera::runtime {

/// Costs of messages, in seconds and bytes per second. Those between hosts share their host's link.
struct MessageCosts {
  double perMessage = 1e-6; ///< CPU time at either end
  double localLatency = 2e-6, localBandwidth = 4e9;
  double remoteLatency = 2e-5, remoteBandwidth = 1.25e9; // 10 GbE
  double combineBandwidth = 8e9;                         ///< bytes that are read
};

/// The time of all ranks' plans: round by round, of the busiest rank or link.
double modelledSeconds(const PlanRequest &request, Algorithm algorithm, int64_t elementBytes,
                       const MessageCosts &costs = {});

struct AlgorithmRequest {
  std::optional<Algorithm> forced;
  bool mayReorder = false; ///< contributions may be added in another order than rank order
};

/// The fastest by the model, the same on all ranks; ties go to the first of the enumeration.
/// all_to_all, whose counts only its rank knows, is direct. Fails if the forced one does not apply.
Expected<Algorithm> chooseAlgorithm(const PlanRequest &request, int64_t elementBytes,
                                    const AlgorithmRequest &requested,
                                    const MessageCosts &costs = {});

/// A number for each member's host, in the order of first members: PlanRequest::hosts.
std::vector<int64_t> hostNumbers(const Transport &transport, const std::vector<int64_t> &members);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_ALGORITHMCHOICE_H
