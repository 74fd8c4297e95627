//===- Check.cpp - NCCL's requirements on callers -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

namespace tessera::nccl_check {

struct Type {
  const char *name;
  int64_t size;
};
constexpr Type kTypes[kNumTypes] = {{"int8", 1},     {"uint8", 1},      {"int32", 4},
                                    {"uint32", 4},   {"int64", 8},      {"uint64", 8},
                                    {"float16", 2},  {"float32", 4},    {"float64", 8},
                                    {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}};
constexpr const char *kOperations[kNumOperations] = {"sum", "prod", "max", "min", "avg"};
constexpr const char *kNames[kNumKinds] = {
    "ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclReduce",
    "ncclSend",      "ncclRecv",      "ncclAlltoAll",      "ncclGather",    "ncclScatter"};

const char *nameOf(Kind kind) {
  return kNames[static_cast<uint32_t>(kind)];
}

int64_t sizeOfType(int type) {
  return type >= 0 && type < kNumTypes ? kTypes[type].size : 0;
}

static bool reduces(Kind kind) {
  return kind == Kind::allReduce || kind == Kind::reduceScatter || kind == Kind::reduce;
}

static bool hasRoot(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather ||
         kind == Kind::scatter;
}

std::string describe(const Call &call) {
  std::string text =
      nameOf(call.kind) + std::string(" of ") + std::to_string(call.count) + " " +
      (sizeOfType(call.type) ? kTypes[call.type].name : "elements of an invalid type");
  if (reduces(call.kind))
    text += std::string(" by ") + (call.operation >= 0 && call.operation < kNumOperations
                                       ? kOperations[call.operation]
                                       : "a custom operation");
  if (hasRoot(call.kind))
    text += ", root " + std::to_string(call.peer);
  return text;
}

/// Bytes that a rank sends and receives; false if they overflow.
static bool bytesOf(const Call &call, uint64_t &sent, uint64_t &received) {
  uint64_t bytes = 0, all = 0;
  if (__builtin_mul_overflow(call.count, static_cast<uint64_t>(sizeOfType(call.type)), &bytes) ||
      __builtin_mul_overflow(bytes, static_cast<uint64_t>(call.ranks), &all) || all >> 62)
    return false;
  bool isAllToAll = call.kind == Kind::allToAll;
  sent = isAllToAll || call.kind == Kind::reduceScatter || call.kind == Kind::scatter ? all : bytes;
  received = isAllToAll || call.kind == Kind::allGather || call.kind == Kind::gather ? all : bytes;
  if ((call.kind == Kind::reduce || call.kind == Kind::gather) && call.rank != call.peer)
    received = 0;
  if ((call.kind == Kind::broadcast || call.kind == Kind::scatter) && call.rank != call.peer)
    sent = 0;
  if (call.kind == Kind::recv)
    sent = 0;
  if (call.kind == Kind::send)
    received = 0;
  return true;
}

std::string check(const Call &call) {
  bool hasPeer = hasRoot(call.kind) || call.kind == Kind::send || call.kind == Kind::recv;
  if (!sizeOfType(call.type))
    return "type " + std::to_string(call.type) + " is not a valid type; expected 0 to " +
           std::to_string(kNumTypes - 1);
  if (reduces(call.kind) && call.operation < 0)
    return "operation " + std::to_string(call.operation) + " is not a valid operation";
  if (hasPeer && (call.peer < 0 || call.peer >= call.ranks))
    return "rank " + std::to_string(call.peer) + " is not in the communicator of " +
           std::to_string(call.ranks);
  uint64_t sent = 0, received = 0;
  if (!bytesOf(call, sent, received))
    return std::to_string(call.count) + " elements exceed the address space";
  if (sent && !call.send)
    return "it sends " + std::to_string(sent) + " bytes from a null pointer";
  if (received && !call.receive)
    return "it receives " + std::to_string(received) + " bytes at a null pointer";
  auto from = reinterpret_cast<uintptr_t>(call.send);
  auto to = reinterpret_cast<uintptr_t>(call.receive);
  auto size = static_cast<uintptr_t>(sizeOfType(call.type));
  if ((sent && from % size) || (received && to % size))
    return "a buffer does not start at a multiple of its element's " + std::to_string(size) +
           " bytes";
  if (!sent || !received || from + sent <= to || to + received <= from)
    return "";
  uintptr_t offset = static_cast<uintptr_t>(call.rank) * call.count * size;
  if (call.kind == Kind::allGather || call.kind == Kind::gather)
    return from == to + offset ? ""
                               : "its buffers overlap; in place it sends from receive + rank * "
                                 "count, here at " +
                                     std::to_string(static_cast<intptr_t>(from - to)) +
                                     " bytes instead of " + std::to_string(offset);
  if (call.kind == Kind::reduceScatter || call.kind == Kind::scatter)
    return to == from + offset ? ""
                               : "its buffers overlap; in place it receives at send + rank * "
                                 "count, here at " +
                                     std::to_string(static_cast<intptr_t>(to - from)) +
                                     " bytes instead of " + std::to_string(offset);
  if (call.kind == Kind::allToAll)
    return "its buffers overlap; this call cannot work in place";
  return from == to ? "" : "its buffers overlap but are not the same";
}

} // namespace tessera::nccl_check
