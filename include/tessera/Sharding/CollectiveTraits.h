//===- CollectiveTraits.h - Properties of collectives -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_COLLECTIVETRAITS_H
#define TESSERA_SHARDING_COLLECTIVETRAITS_H

#include "tessera/Sharding/Collective.h"

namespace tessera::sharding {

/// The properties of a kind, except its traffic (`trafficOf`).
struct CollectiveTraits {
  std::string_view name;
  /// Attributes of an op and fields of a move, by name; empty if the kind has none.
  std::string_view dim = {}, splitDim = {};
  bool reduces = false;
  /// Whether devices forward data of others, so that a byte is sent more than once.
  bool isRelayed = false;
  /// Rounds of ceil(log2(n)) messages among n devices; -1: one round per message.
  int rounds = -1;
  /// With B the larger of a device's buffers: how often B (n - 1) / n bytes are sent; 0: B bytes.
  int shares = 0;
};

/// The row of a kind in the one table of properties (Collective.cpp).
const CollectiveTraits &traitsOf(CollectiveKind kind);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_COLLECTIVETRAITS_H
