//===- HostCalls.h - Calls of ranks in host memory --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_HOSTCALLS_H
#define TESSERA_LIB_RUNTIME_RANKS_HOSTCALLS_H

#include "Engine.h"

namespace tessera::runtime {

/// The bytes that a rank sends and receives in a call.
std::pair<int64_t, int64_t> callBytes(const RankCall &call, int64_t rank, int64_t ranks);
/// Whether the buffers are disjoint, or overlap as the call allows; the error describes the
/// overlap.
Status checkInPlace(const RankCall &call, int64_t rank, int64_t ranks, const std::byte *send,
                    const std::byte *receive);
/// Executes a call in host memory; buffers by rank. Contributions are combined in rank order.
void performCall(const RankCall &call, const std::vector<const std::byte *> &send,
                 const std::vector<std::byte *> &receive);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_HOSTCALLS_H
