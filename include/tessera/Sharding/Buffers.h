//===- Buffers.h - Traffic of collectives in closed form --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_BUFFERS_H
#define TESSERA_SHARDING_BUFFERS_H

#include "tessera/Sharding/Collective.h"

namespace tessera::sharding {

/// Whether the traffic of a kind depends on the intersections of boxes of pairs of devices.
bool isByBoxes(CollectiveKind kind);

/// The buffers of a device, in elements.
struct Buffers {
  int64_t bytesPerElement = 0;
  int64_t operand = 0, result = 0; ///< the largest of any device, valid elements only
  int64_t gathered = 0; ///< of an all-gather: the largest excess of a result over its operand
  std::span<const int64_t> sourceShape, targetShape; ///< for the copies of a Traffic
  bool makesPartial = false; ///< the move turns the values of devices into contributions
};

/// The traffic of kinds that do not depend on boxes; the formulas are in Collective.h.
Traffic trafficOf(CollectiveKind kind, int64_t groupSize, const Buffers &buffers);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_BUFFERS_H
