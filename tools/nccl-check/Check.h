//===- Check.h - NCCL's requirements on callers -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of NCCL's documentation that NCCL does not check itself, or whose violation
// makes it hang. Pure functions of a call's arguments; Order.h compares ranks.
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

/// A call on a communicator of `ranks`, by `rank`. Counts are those passed to NCCL.
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
constexpr int kNumOperations = 5; ///< sum … avg; callers define larger ones
/// Bytes of an element; 0 for an invalid type.
int64_t sizeOfType(int type);

/// Empty if the arguments are valid; else the violated rule, with the values.
std::string check(const Call &call);
/// "ncclAllReduce of 16 float32 by sum".
std::string describe(const Call &call);

} // namespace tessera::nccl_check

#endif // TESSERA_TOOLS_NCCL_CHECK_CHECK_H
