//===- Overlaps.h - Held and needed elements of a tensor --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes of a move on one mesh, in time linear in the devices and without the boxes of
// pairs of devices, of which there may be n^2.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_OVERLAPS_H
#define TESSERA_LIB_SHARDING_OVERLAPS_H

#include "tessera/Sharding/Layout.h"

#include <cstdint>
#include <vector>

namespace tessera::sharding {

/// The numbers of elements that `devices` devices each hold before a move and need after it, and
/// the number of parts before the move (windows count as 1) that contain the needed ones.
struct Overlap {
  int64_t wanted = 1, held = 1, both = 1, parts = 1, devices = 1;
};

/// The overlaps of a move between layouts of one tensor, ignoring partial axes.
std::vector<Overlap> overlapsOf(const Mesh &mesh, const Layout &source, const Layout &target);

/// The size of an exchange, in elements per device.
struct ExchangeSize {
  int64_t received = 0; ///< by the device that lacks the most
  int64_t elements = 0; ///< sent or received by the busiest; senders are assumed to share equally
  int64_t messages = 0; ///< sent by a device on average
};
/// `held`: elements of the largest part before the move.
ExchangeSize exchangeSizeOf(const Mesh &mesh, const std::vector<Overlap> &overlaps, int64_t held);

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_OVERLAPS_H
