//===- GridTraffic.h - What devices send in an exchange ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_GRIDTRAFFIC_H
#define TESSERA_LIB_SHARDING_GRIDTRAFFIC_H

#include "tessera/Sharding/Redistribution.h"

#include <optional>

namespace tessera::sharding {

/// `exchangeTraffic` of `redistribute` on one mesh, without the boxes of pairs of devices, of which
/// there may be n^2: in time linear in the devices and in the overlaps of the parts of each
/// dimension. Nothing if contributions are reduced or made, or if the parts before the move are not
/// a grid of disjoint boxes that have whole axes.
std::optional<ExchangeTraffic> gridTraffic(const Mesh &mesh, const Layout &source,
                                           const Layout &target);

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_GRIDTRAFFIC_H
