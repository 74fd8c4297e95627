//===- CApi.cpp - The runtime's C interface -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Execution/DeviceMemory.h"
#include "CError.h"
#include "SessionObject.h"

#include <algorithm>
#include <cstring>

using namespace tessera::runtime;
using namespace tessera::runtime::capi;

namespace {

SessionOptions optionsFrom(const tessera_open_options *options) {
  SessionOptions result;
  if (!options)
    return result;
  if (options->backend)
    result.backend = options->backend;
  result.devices.devices = options->devices;
  result.devices.cores = options->cores;
  result.seed = options->seed;
  // A caller that was compiled before the option existed has a smaller struct.
  auto has = [&](size_t end) { return options->struct_size >= end; };
  if (has(offsetof(tessera_open_options, pins)) && options->precision)
    result.devices.precision = options->precision;
  result.devices.pins = has(sizeof(tessera_open_options)) && options->pins;
  return result;
}

tessera_status openSession(Expected<Artifact> artifact, const tessera_open_options *options,
                           tessera_session **session) {
  if (!artifact)
    return fail(TESSERA_INVALID_ARTIFACT, artifact.message());
  if (options && options->struct_size < offsetof(tessera_open_options, precision))
    return fail(TESSERA_INVALID_ARGUMENT, "tessera_open_options: struct_size is not set");
  SessionOptions given = optionsFrom(options);
  given.devices.ownsConstants = true;
  auto opened = Session::open(std::make_shared<const Artifact>(std::move(*artifact)), given);
  if (!opened)
    return fail(TESSERA_UNAVAILABLE, opened.message());
  auto made = std::make_unique<tessera_session>();
  const Program &program = (*opened)->program();
  for (const Argument &argument : program.arguments)
    made->argumentHomes.push_back(argument.homes.empty() ? ""
                                                         : toJson(program, argument.homes.front()));
  for (const Result &result : program.results)
    made->resultHomes.push_back(toJson(program, result.home));
  made->session = std::move(*opened);
  *session = made.release();
  return TESSERA_OK;
}

template <typename Tensor>
tessera_status describe(const std::vector<Tensor> &list, const std::vector<std::string> &homes,
                        int64_t index, tessera_tensor_info *info) {
  if (index < 0 || index >= static_cast<int64_t>(list.size()))
    return fail(TESSERA_INVALID_ARGUMENT,
                "index " + std::to_string(index) + " of " + std::to_string(list.size()));
  if (!info || info->struct_size < sizeof(tessera_tensor_info))
    return fail(TESSERA_INVALID_ARGUMENT, "tessera_tensor_info: null, or struct_size is not set");
  const Tensor &tensor = list[index];
  info->name = tensor.name.c_str();
  info->dtype = static_cast<tessera_dtype>(tensor.dtype);
  info->rank = static_cast<int64_t>(tensor.globalShape.size());
  info->shape = tensor.globalShape.data();
  info->bytes = static_cast<size_t>(*elementCount(tensor.globalShape) * sizeOf(tensor.dtype));
  info->feeds = -1;
  info->home = homes[index].c_str();
  return TESSERA_OK;
}

tessera_status checkBytes(const std::string &name, DType dtype, const Shape &shape, size_t bytes) {
  auto wanted = static_cast<size_t>(*elementCount(shape) * sizeOf(dtype));
  if (bytes == wanted)
    return TESSERA_OK;
  return fail(TESSERA_INVALID_ARGUMENT, "'" + name + "' is " + typeText(dtype, shape) + ", " +
                                            std::to_string(wanted) + " bytes, not " +
                                            std::to_string(bytes));
}

} // namespace

static_assert(static_cast<int>(DType::index) == TESSERA_INDEX &&
                  static_cast<int>(DType::i1) == TESSERA_I1 &&
                  static_cast<int>(DType::bf16) == TESSERA_BF16,
              "the C enumeration follows DType");

uint32_t tessera_rt_version(void) {
  return TESSERA_RT_VERSION;
}

const char *tessera_last_error(void) {
  return capi::lastError().c_str();
}

tessera_status tessera_session_open(const char *path, const tessera_open_options *options,
                                    tessera_session **session) {
  if (!path || !session)
    return nullArgument();
  return guarded([&] { return openSession(readArtifact(path), options, session); });
}

tessera_status tessera_session_open_memory(const void *data, size_t size,
                                           const tessera_open_options *options,
                                           tessera_session **session) {
  if (!data || !session)
    return nullArgument();
  return guarded([&] {
    return openSession(parseArtifact(static_cast<const std::byte *>(data), size, "artifact"),
                       options, session);
  });
}

void tessera_session_close(tessera_session *session) {
  delete session;
}

int64_t tessera_session_num_arguments(const tessera_session *session) {
  return session ? static_cast<int64_t>(session->session->program().arguments.size()) : 0;
}

int64_t tessera_session_num_results(const tessera_session *session) {
  return session ? static_cast<int64_t>(session->session->program().results.size()) : 0;
}

tessera_status tessera_session_argument(const tessera_session *session, int64_t index,
                                        tessera_tensor_info *info) {
  if (!session)
    return nullArgument();
  return guarded([&] {
    return describe(session->session->program().arguments, session->argumentHomes, index, info);
  });
}

tessera_status tessera_session_result(const tessera_session *session, int64_t index,
                                      tessera_tensor_info *info) {
  if (!session)
    return nullArgument();
  return guarded([&] {
    const std::vector<Result> &results = session->session->program().results;
    tessera_status status = describe(results, session->resultHomes, index, info);
    if (status == TESSERA_OK)
      info->feeds = results[index].feeds.value_or(-1);
    return status;
  });
}

tessera_status tessera_session_set_argument(tessera_session *session, int64_t index,
                                            const void *data, size_t bytes) {
  if (!session || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    const std::vector<Argument> &arguments = session->session->program().arguments;
    if (index < 0 || index >= static_cast<int64_t>(arguments.size()))
      return fail(TESSERA_INVALID_ARGUMENT,
                  "argument " + std::to_string(index) + " of " + std::to_string(arguments.size()));
    const Argument &argument = arguments[index];
    if (checkBytes(argument.name, argument.dtype, argument.globalShape, bytes) != TESSERA_OK)
      return TESSERA_INVALID_ARGUMENT;
    Status status = session->session->setArgument(index, static_cast<const std::byte *>(data));
    return status.ok() ? TESSERA_OK : fail(TESSERA_INVALID_ARGUMENT, status.message());
  });
}

tessera_status tessera_session_run(tessera_session *session, int64_t steps) {
  if (!session)
    return nullArgument();
  return guarded([&] {
    for (int64_t i = 0; i < steps; ++i)
      if (Status status = session->session->step(); !status.ok())
        return fail(TESSERA_FAILED, status.message());
    return TESSERA_OK;
  });
}

tessera_status tessera_session_read_result(tessera_session *session, int64_t index, void *data,
                                           size_t bytes) {
  if (!session || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    const std::vector<Result> &results = session->session->program().results;
    if (index < 0 || index >= static_cast<int64_t>(results.size()))
      return fail(TESSERA_INVALID_ARGUMENT,
                  "result " + std::to_string(index) + " of " + std::to_string(results.size()));
    const Result &result = results[index];
    if (checkBytes(result.name, result.dtype, result.globalShape, bytes) != TESSERA_OK)
      return TESSERA_INVALID_ARGUMENT;
    Status status = session->session->readResult(index, static_cast<std::byte *>(data));
    return status.ok() ? TESSERA_OK : fail(TESSERA_FAILED, status.message());
  });
}

/// The bounds of a box, and the number of boxes.
static tessera_status describeHeld(const Session::Held &held, int64_t *box, int *count) {
  *count = held ? static_cast<int>(held->size()) : -1;
  if (held && !held->empty())
    for (size_t d = 0; d < held->front().size.size(); ++d) {
      box[2 * d] = held->front().offset[d];
      box[2 * d + 1] = held->front().offset[d] + held->front().size[d];
    }
  return TESSERA_OK;
}

/// Whether an index is one of a list, and `bytes` those of the box that this process holds.
template <typename Tensor>
static tessera_status checkBox(const std::vector<Tensor> &list, int64_t index,
                               Session::Held (Session::*heldOf)(int64_t) const,
                               const Session &session, size_t bytes) {
  if (index < 0 || index >= static_cast<int64_t>(list.size()))
    return fail(TESSERA_INVALID_ARGUMENT,
                "index " + std::to_string(index) + " of " + std::to_string(list.size()));
  Session::Held held = (session.*heldOf)(index);
  if (!held)
    return fail(TESSERA_INVALID_ARGUMENT, "'" + list[index].name +
                                              "' is given and read as a whole: this process does "
                                              "not hold one box of it");
  auto wanted = held->empty()
                    ? size_t(0)
                    : static_cast<size_t>(held->front().numElements() * sizeOf(list[index].dtype));
  return bytes == wanted ? TESSERA_OK
                         : fail(TESSERA_INVALID_ARGUMENT,
                                "this process holds " + std::to_string(wanted) + " bytes of '" +
                                    list[index].name + "', not " + std::to_string(bytes));
}

tessera_status tessera_session_argument_box(const tessera_session *session, int64_t index,
                                            int64_t *box, int *count) {
  if (!session || !box || !count)
    return nullArgument();
  return guarded([&] {
    if (index < 0 || index >= tessera_session_num_arguments(session))
      return fail(TESSERA_INVALID_ARGUMENT, "there is no argument " + std::to_string(index));
    return describeHeld(session->session->heldOfArgument(index), box, count);
  });
}

tessera_status tessera_session_result_box(const tessera_session *session, int64_t index,
                                          int64_t *box, int *count) {
  if (!session || !box || !count)
    return nullArgument();
  return guarded([&] {
    if (index < 0 || index >= tessera_session_num_results(session))
      return fail(TESSERA_INVALID_ARGUMENT, "there is no result " + std::to_string(index));
    return describeHeld(session->session->heldOfResult(index), box, count);
  });
}

tessera_status tessera_session_set_argument_box(tessera_session *session, int64_t index,
                                                const void *data, size_t bytes) {
  if (!session || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    Session &opened = *session->session;
    tessera_status status =
        checkBox(opened.program().arguments, index, &Session::heldOfArgument, opened, bytes);
    if (status != TESSERA_OK)
      return status;
    Bytes box(bytes);
    if (bytes > 0)
      std::memcpy(box.data(), data, bytes);
    Status set = opened.setArgumentBox(index, std::move(box));
    return set.ok() ? TESSERA_OK : fail(TESSERA_INVALID_ARGUMENT, set.message());
  });
}

tessera_status tessera_session_read_result_box(tessera_session *session, int64_t index, void *data,
                                               size_t bytes) {
  if (!session || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    Session &opened = *session->session;
    tessera_status status =
        checkBox(opened.program().results, index, &Session::heldOfResult, opened, bytes);
    if (status != TESSERA_OK)
      return status;
    Status read = opened.readResultBox(index, static_cast<std::byte *>(data));
    return read.ok() ? TESSERA_OK : fail(TESSERA_FAILED, read.message());
  });
}

int64_t tessera_session_wire_bytes(const tessera_session *session) {
  int64_t sum = 0;
  if (session)
    for (const CollectiveStats &stats : session->session->executor().stats())
      sum += stats.countedWireBytes();
  return sum;
}

int tessera_session_keeps_on_devices(const tessera_session *session) {
  return session && session->session->executor().keepsOnDevices();
}

const char *tessera_backend_target(const char *name) {
  thread_local std::string target;
  if (!name) {
    nullArgument();
    return nullptr;
  }
  tessera_status status = guarded([&] {
    auto found = findBackend(name);
    if (!found)
      return fail(TESSERA_INVALID_ARGUMENT, found.status().message());
    target = found->target;
    return TESSERA_OK;
  });
  return status == TESSERA_OK ? target.c_str() : nullptr;
}

tessera_status tessera_load_backend(const char *path) {
  if (!path)
    return nullArgument();
  return guarded([&] {
    Status status = loadBackend(path);
    return status.ok() ? TESSERA_OK : fail(TESSERA_UNAVAILABLE, status.message());
  });
}

tessera_status tessera_device_memory(int64_t device, tessera_memory_use *use) {
  if (!use || use->struct_size < sizeof(tessera_memory_use))
    return fail(TESSERA_INVALID_ARGUMENT, "tessera_memory_use: null, or struct_size is not set");
  return guarded([&] {
    MemoryUse found = memoryUse(device);
    use->allocated = found.allocated;
    use->reserved = found.reserved;
    use->peak_allocated = found.peakAllocated;
    use->peak_reserved = found.peakReserved;
    return TESSERA_OK;
  });
}

tessera_status tessera_device_reset_peak_memory(int64_t device) {
  return guarded([&] {
    resetPeakMemory(device);
    return TESSERA_OK;
  });
}

int64_t tessera_devices_with_memory(int64_t *devices, int64_t room) {
  std::vector<int64_t> found = devicesWithMemory();
  for (int64_t i = 0; devices && i < std::min(room, static_cast<int64_t>(found.size())); ++i)
    devices[i] = found[static_cast<size_t>(i)];
  return static_cast<int64_t>(found.size());
}
