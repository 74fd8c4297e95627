//===- Address.h - Addresses in memory not yet allocated --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_ADDRESS_H
#define TESSERA_LIB_RUNTIME_RANKS_ADDRESS_H

#include "tessera/Runtime/Artifact/Program.h"

namespace tessera::runtime {

/// An address is a byte offset into one of these, distinguished by its upper bits. The same on all
/// devices of a part: plans are made once and resolved by each device.
inline constexpr int64_t kArena = 0;
inline constexpr int64_t kStaging = int64_t(1) << 58;   ///< of the operation's stream
inline constexpr int64_t kConstants = int64_t(2) << 58; ///< read-only
inline constexpr int64_t kWorkspace = int64_t(3) << 58; ///< of kernels and products
/// Not memory: a location that all collectives of a device "write", so that they are ordered.
inline constexpr int64_t kLaunchOrder = int64_t(4) << 58;

inline int64_t spaceOf(int64_t address) {
  return address >> 58 << 58;
}
inline int64_t addressOf(const Slot &slot) {
  return (slot.space == Slot::Space::constant ? kConstants : kArena) + slot.offset;
}

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_ADDRESS_H
