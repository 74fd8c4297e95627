//===- ReshardChain.h - The moves of a reshard ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_RESHARDCHAIN_H
#define TESSERA_SHARDING_RESHARDCHAIN_H

#include "tessera/Sharding/ReshardPlanner.h"

namespace tessera::sharding {

/// The moves that implement a reshard: those of the planner, except for windows. A window around
/// the own part of each device takes one halo exchange per dimension, and one whose elements every
/// device has an exchange that sends nothing.
///
/// The moves may be none where source and target are equal. If windows are `filled` beyond the
/// tensor, the last move that makes them is a halo exchange or an exchange.
ReshardPlan chainOf(const ReshardProblem &problem, bool isFilled, ReshardPlanner &planner);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_RESHARDCHAIN_H
