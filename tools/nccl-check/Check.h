//===- Check.h - What NCCL requires of its callers --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of NCCL's documentation that it does not check itself, or checks by
// hanging. Pure functions of a call's arguments; Order.h compares ranks.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_NCCL_CHECK_CHECK_H
#define TESSERA_TOOLS_NCCL_CHECK_CHECK_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::nccl_check {

enum class Kind : uint32_t {
  allReduce,
  allGather,
  reduceScatter,
  broadcast,
  reduce,
  send,
  recv,
  allToAll,
  gather,
  scatter
};
constexpr uint32_t kNumKinds = 10;
const char *nameOf(Kind kind);

/// A call on a communicator of `ranks`, by `rank`. Counts are as NCCL takes them.
struct Call {
  Kind kind = Kind::allReduce;
  const void *send = nullptr; ///< null for recv
  void *receive = nullptr;    ///< null for send
  uint64_t count = 0;
  int type = 0;
  int operation = 0; ///< of reductions
  int peer = 0;      ///< root, or the other rank
  int rank = 0, ranks = 1;
};

constexpr int kNumTypes = 12;     ///< ncclInt8 … ncclFloat8e5m2
constexpr int kNumOperations = 5; ///< sum … avg; larger ones are made by callers
/// Bytes of an element; 0 for no type.
int64_t sizeOfType(int type);

/// Empty when the arguments are right; else the rule that they break, with the values.
std::string check(const Call &call);
/// "ncclAllReduce of 16 float32 by sum".
std::string describe(const Call &call);

} // namespace tessera::nccl_check

#endif // TESSERA_TOOLS_NCCL_CHECK_CHECK_H
