//===- NcclGroups.cpp - Process groups through NCCL -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NcclGroups.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime::gpu {

using sharding::CollectiveKind;

static bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::reduce_scatter;
}

static std::optional<int> typeOf(ElementType type) {
  return ncclTypeOf(type.dtype, type.isUnsigned);
}

/// NCCL's operation; -1 if it has none. For bool, max and min of bytes.
static int operationOf(ElementType type, GroupReduction reduction) {
  bool isBit = type.dtype == DType::i1;
  switch (reduction) {
  case GroupReduction::sum:
    return isBit ? kNcclMax : kNcclSum;
  case GroupReduction::avg:
    return kNcclAvg;
  case GroupReduction::max:
    return kNcclMax;
  case GroupReduction::min:
    return kNcclMin;
  case GroupReduction::prod:
    return isBit ? kNcclMin : kNcclProd;
  case GroupReduction::band:
    return isBit ? kNcclMin : -1;
  case GroupReduction::bor:
    return isBit ? kNcclMax : -1;
  case GroupReduction::bxor:
    return -1;
  }
  return -1;
}

Expected<std::unique_ptr<DeviceCalls>> NcclGroups::open(int64_t localRank) {
  auto made = std::make_unique<NcclGroups>();
  TESSERA_RETURN_IF_ERROR(made->openDevice(localRank).in("backend nccl"));
  return std::unique_ptr<DeviceCalls>(std::move(made));
}

Status NcclGroups::openDevice(int64_t localRank) {
  TESSERA_RETURN_IF_ERROR(cuda.open());
  int64_t ordinal = cuda.devices == 1 ? 0 : localRank; // each process may see only its own GPU
  if (ordinal >= cuda.devices)
    return Status::error("GPU " + std::to_string(ordinal) + " is needed, this machine has " +
                         std::to_string(cuda.devices) +
                         " (a process takes the GPU of its local rank)");
  CuDevice device = 0;
  TESSERA_RETURN_IF_ERROR(
      cuda.check(cuda.deviceGet(&device, static_cast<int>(ordinal)), "cannot open a GPU"));
  TESSERA_RETURN_IF_ERROR(
      cuda.check(cuda.primaryCtxRetain(&context, device), "cannot use the context of a GPU"));
  TESSERA_RETURN_IF_ERROR(enter());
  TESSERA_RETURN_IF_ERROR(
      cuda.check(cuda.streamCreate(&copies, kCuStreamNonBlocking), "cannot create a stream"));
  TESSERA_RETURN_IF_ERROR(
      cuda.check(cuda.eventCreate(&ready, kCuEventDisableTiming), "cannot create an event"));
  return openLibrary();
}

NcclGroups::~NcclGroups() {
  abort(); // destruction waits for peers, which may be lost
}

void NcclGroups::abort() {
  for (Communicator &each : communicators)
    if (each.comm)
      (void)abortFn(std::exchange(each.comm, nullptr));
}

Status NcclGroups::supports(const GroupCall &call) const {
  if (!reduces(call.kind))
    return {};
  if (!typeOf(call.type))
    return Status::error("NCCL does not support reductions of " + call.type.text() +
                         "; expected a float, or an integer of 8, 32 or 64 bits");
  if (operationOf(call.type, call.reduction) < 0)
    return Status::error("NCCL has no reduction '" + std::string(toString(call.reduction)) +
                         "' of " + call.type.text() + "; expected sum, avg, max, min or prod");
  return {};
}

Expected<std::string> NcclGroups::makeId() {
  static_assert(sizeof(NcclUniqueId) == kIdBytes);
  TESSERA_RETURN_IF_ERROR(enter());
  NcclUniqueId id{};
  if (int result = getUniqueIdFn(&id); result != kNcclSuccess)
    return Status::error("cannot create a unique id: " + describe(result));
  return std::string(id.bytes, sizeof(id.bytes));
}

Expected<int64_t> NcclGroups::join(const std::string &id, int64_t place, int64_t size) {
  TESSERA_RETURN_IF_ERROR(enter());
  NcclUniqueId unique{};
  std::memcpy(unique.bytes, id.data(), sizeof(unique.bytes));
  NcclConfig options = config();
  Communicator made;
  made.place = place;
  made.size = size;
  made.what = "communicator of " + std::to_string(size) + " ranks";
  int result =
      initRankFn(&made.comm, static_cast<int>(size), unique, static_cast<int>(place), &options);
  if (result != kNcclSuccess && result != kNcclInProgress)
    return Status::error(made.what + ": " + describe(result));
  TESSERA_RETURN_IF_ERROR(
      cuda.check(cuda.streamCreate(&made.stream, kCuStreamNonBlocking), "cannot create a stream"));
  for (CuEvent *each : {&made.before, &made.done})
    TESSERA_RETURN_IF_ERROR(
        cuda.check(cuda.eventCreate(each, kCuEventDisableTiming), "cannot create an event"));
  communicators.push_back(made);
  return static_cast<int64_t>(communicators.size()) - 1;
}

/// False while a call is in progress.
Expected<bool> NcclGroups::isHealthy(Communicator &each) {
  if (!each.comm)
    return Status::error(each.what + ": the communicator was aborted");
  int state = kNcclSuccess, asked = asyncErrorFn(each.comm, &state);
  if (asked != kNcclSuccess)
    state = asked;
  if (state != kNcclSuccess && state != kNcclInProgress)
    return Status::error(each.what + ": " + describe(state));
  return state == kNcclSuccess;
}

Expected<bool> NcclGroups::isJoined(int64_t communicator) {
  return isHealthy(communicators[communicator]);
}

/// The addresses of the parts of each rank.
struct NcclGroups::Parts {
  std::vector<const std::byte *> inputs;
  std::vector<std::byte *> outputs;

  Parts(const GroupCall &call, int64_t size) : inputs(call.inputs), outputs(call.outputs) {
    bool isPairs = call.kind == CollectiveKind::all_to_all;
    int64_t element = sizeOf(call.type.dtype), from = 0, to = 0;
    for (int64_t place = 0; place < size; ++place) {
      if (call.inputs.empty())
        inputs.push_back(call.input + from);
      if (call.outputs.empty())
        outputs.push_back(call.output + to);
      from += call.counts[place] * element;
      to += (isPairs ? call.receives : call.counts)[place] * element;
    }
  }
};

Status NcclGroups::begin(int64_t communicator, const GroupCall &call, int64_t rootPlace) {
  TESSERA_RETURN_IF_ERROR(enter());
  Communicator &each = communicators[communicator];
  each.isRecorded = false;
  each.what = std::string(toString(call.kind)) + " through NCCL";
  auto *stream = static_cast<CuStream>(call.stream);
  TESSERA_RETURN_IF_ERROR(cuda.check(cuda.eventRecord(each.before, stream), each.what));
  TESSERA_RETURN_IF_ERROR(cuda.check(cuda.streamWaitEvent(each.stream, each.before, 0), each.what));
  int result = issue(each, call, static_cast<int>(rootPlace));
  if (result == kNcclSuccess || result == kNcclInProgress)
    return {};
  return Status::error(each.what + ": " + describe(result));
}

int NcclGroups::issue(const Communicator &each, const GroupCall &call, int root) {
  auto *stream = reinterpret_cast<Stream>(each.stream);
  std::optional<int> known = typeOf(call.type);
  int type = known.value_or(kNcclInt8), operation = operationOf(call.type, call.reduction);
  auto count = static_cast<size_t>(call.counts[0]);
  if (!known) // only moved
    count *= static_cast<size_t>(sizeOf(call.type.dtype));
  bool isEven = std::all_of(call.counts.begin(), call.counts.end(),
                            [&](int64_t other) { return other == call.counts[0]; }) &&
                call.inputs.empty() && call.outputs.empty();
  switch (call.kind) {
  case CollectiveKind::all_reduce:
    return allReduceFn(call.input, call.output, count, type, operation, each.comm, stream);
  case CollectiveKind::reduce:
    return reduceFn(call.input, call.output, count, type, operation, root, each.comm, stream);
  case CollectiveKind::broadcast:
    return broadcastFn(call.input, call.output, count, type, root, each.comm, stream);
  case CollectiveKind::all_gather:
    if (isEven)
      return allGatherFn(call.input, call.output, count, type, each.comm, stream);
    break;
  case CollectiveKind::reduce_scatter:
    if (isEven)
      return reduceScatterFn(call.input, call.output, count, type, operation, each.comm, stream);
    break;
  default:
    break;
  }
  int begun = groupStartFn();
  if (begun != kNcclSuccess)
    return begun;
  int result = issueParts(each, call, Parts(call, each.size), root), ended = groupEndFn();
  return result == kNcclSuccess || result == kNcclInProgress ? ended : result;
}

int NcclGroups::issueParts(const Communicator &each, const GroupCall &call, const Parts &parts,
                           int root) {
  auto *stream = reinterpret_cast<Stream>(each.stream);
  auto bytesOf = [&](int64_t count) {
    return static_cast<size_t>(count * sizeOf(call.type.dtype));
  };
  int self = static_cast<int>(each.place), size = static_cast<int>(each.size);
  int failed = kNcclSuccess;
  auto note = [&](int result) {
    if (failed == kNcclSuccess && result != kNcclInProgress)
      failed = result;
  };
  auto send = [&](const std::byte *data, int64_t count, int peer) {
    note(sendFn(data, bytesOf(count), kNcclInt8, peer, each.comm, stream));
  };
  auto receive = [&](std::byte *data, int64_t count, int peer) {
    note(receiveFn(data, bytesOf(count), kNcclInt8, peer, each.comm, stream));
  };
  for (int peer = 0; peer < size; ++peer)
    switch (call.kind) {
    case CollectiveKind::all_gather: {
      const std::byte *from = peer == self ? call.input : parts.outputs[peer];
      note(broadcastFn(from, parts.outputs[peer], bytesOf(call.counts[peer]), kNcclInt8, peer,
                       each.comm, stream));
      break;
    }
    case CollectiveKind::reduce_scatter:
      note(reduceFn(parts.inputs[peer], call.output, static_cast<size_t>(call.counts[peer]),
                    *typeOf(call.type), operationOf(call.type, call.reduction), peer, each.comm,
                    stream));
      break;
    case CollectiveKind::gather:
      if (peer == 0)
        send(call.input, call.counts[self], root);
      if (self == root)
        receive(parts.outputs[peer], call.counts[peer], peer);
      break;
    case CollectiveKind::scatter:
      if (self == root)
        send(parts.inputs[peer], call.counts[peer], peer);
      if (peer == root)
        receive(call.output, call.counts[self], root);
      break;
    default:
      send(parts.inputs[peer], call.counts[peer], peer);
      receive(parts.outputs[peer], call.receives[peer], peer);
      break;
    }
  return failed;
}

Expected<bool> NcclGroups::isDone(int64_t communicator) {
  TESSERA_RETURN_IF_ERROR(enter());
  Communicator &each = communicators[communicator];
  auto well = isHealthy(each);
  if (!well || !*well)
    return well; // a call in progress may not be in the stream yet
  if (!each.isRecorded)
    TESSERA_RETURN_IF_ERROR(cuda.check(cuda.eventRecord(each.done, each.stream), each.what));
  each.isRecorded = true;
  CuResult result = cuda.eventQuery(each.done);
  if (result == kCuNotReady)
    return false;
  TESSERA_RETURN_IF_ERROR(cuda.check(result, each.what));
  return true;
}

Status NcclGroups::read(std::byte *to, const std::byte *from, int64_t bytes, void *stream) {
  TESSERA_RETURN_IF_ERROR(enter());
  TESSERA_RETURN_IF_ERROR(
      cuda.check(cuda.eventRecord(ready, static_cast<CuStream>(stream)), "cannot copy a message"));
  TESSERA_RETURN_IF_ERROR(
      cuda.check(cuda.streamWaitEvent(copies, ready, 0), "cannot copy a message"));
  TESSERA_RETURN_IF_ERROR(cuda.check(cuda.streamSynchronize(copies), "cannot copy a message"));
  if (bytes == 0)
    return {};
  return cuda.check(
      cuda.memcpyDtoH(to, reinterpret_cast<CuPointer>(from), static_cast<size_t>(bytes)),
      "cannot copy a message");
}

Status NcclGroups::write(std::byte *to, const std::byte *from, int64_t bytes) {
  TESSERA_RETURN_IF_ERROR(enter());
  if (bytes == 0)
    return {};
  TESSERA_RETURN_IF_ERROR(
      cuda.check(cuda.memcpyHtoD(reinterpret_cast<CuPointer>(to), from, static_cast<size_t>(bytes)),
                 "cannot copy a message"));
  // The copy has been staged, but may not have arrived.
  return cuda.check(cuda.streamSynchronize(nullptr), "cannot copy a message");
}

} // namespace tessera::runtime::gpu
