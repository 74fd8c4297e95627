//===- Segments.h - Parts of segments on devices ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_SEGMENTS_H
#define TESSERA_SHARDING_SEGMENTS_H

#include "tessera/Sharding/ShardingRule.h"

namespace tessera::sharding {

/// The elements of a segment that a device needs for its part of the result's dimension, numbered
/// from 0 to `count`: those i with to + i * toStep in its buffer.
///   4 parts, every second element from 1 is written: step 4, offset -1, length 4, divisor 2
DimLayout partOf(const Segment &segment, const DimLayout &result);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_SEGMENTS_H
