//===- ValuesCApi.cpp - The C interface of values on devices --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SessionObject.h"

#include "CError.h"

#include <cstring>

using namespace tessera::runtime;
using namespace tessera::runtime::capi;

struct tessera_value {
  std::shared_ptr<KeptValue> kept;
};

static tessera_status outOfRange(int64_t index, const char *what, size_t count) {
  return fail(TESSERA_INVALID_ARGUMENT, "there is no " + std::string(what) + " " +
                                            std::to_string(index) + ", of " +
                                            std::to_string(count));
}

static size_t sizeOfWhole(DType dtype, const Shape &shape) {
  return static_cast<size_t>(*elementCount(shape) * sizeOf(dtype));
}

int tessera_session_reads_alone(const tessera_session *session, int64_t index) {
  if (!session || index < 0 || index >= tessera_session_num_results(session))
    return -1;
  return session->session->isReadHere(index);
}

tessera_status tessera_session_keep_result(tessera_session *session, int64_t index,
                                           tessera_value **value) {
  if (!session || !value)
    return nullArgument();
  return guarded([&] {
    size_t count = session->session->program().results.size();
    if (index < 0 || index >= static_cast<int64_t>(count))
      return outOfRange(index, "result", count);
    auto kept = session->session->keepResult(index);
    if (!kept)
      return fail(TESSERA_FAILED, kept.message());
    *value = *kept ? new tessera_value{std::move(*kept)} : nullptr;
    return TESSERA_OK;
  });
}

tessera_status tessera_session_set_argument_value(tessera_session *session, int64_t index,
                                                  const tessera_value *value, int *taken) {
  if (!session || !value || !taken)
    return nullArgument();
  return guarded([&] {
    size_t count = session->session->program().arguments.size();
    if (index < 0 || index >= static_cast<int64_t>(count))
      return outOfRange(index, "argument", count);
    *taken = session->session->setArgument(index, value->kept);
    return TESSERA_OK;
  });
}

tessera_status tessera_session_set_argument_memory(tessera_session *session, int64_t index,
                                                   const void *data, size_t bytes, int64_t device,
                                                   int *taken) {
  if (!session || (!data && bytes > 0) || !taken)
    return nullArgument();
  return guarded([&] {
    const std::vector<Argument> &arguments = session->session->program().arguments;
    if (index < 0 || index >= static_cast<int64_t>(arguments.size()))
      return outOfRange(index, "argument", arguments.size());
    const Argument &argument = arguments[index];
    if (size_t wanted = sizeOfWhole(argument.dtype, argument.globalShape); bytes != wanted)
      return fail(TESSERA_INVALID_ARGUMENT, "'" + argument.name + "' has " +
                                                std::to_string(wanted) + " bytes, not " +
                                                std::to_string(bytes));
    *taken = session->session->setArgument(index, static_cast<const std::byte *>(data), device);
    return TESSERA_OK;
  });
}

tessera_status tessera_value_read(const tessera_value *value, void *data, size_t bytes) {
  if (!value || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    if (size_t wanted = sizeOfWhole(value->kept->dtype(), value->kept->shape()); bytes != wanted)
      return fail(TESSERA_INVALID_ARGUMENT, "the value has " + std::to_string(wanted) +
                                                " bytes, not " + std::to_string(bytes));
    auto read = value->kept->read();
    if (!read)
      return fail(TESSERA_FAILED, read.message());
    if (bytes > 0)
      std::memcpy(data, read->data.data(), bytes);
    return TESSERA_OK;
  });
}

tessera_status tessera_value_memory(const tessera_value *value, uint64_t stream, int64_t *device,
                                    void **data) {
  if (!value || !device || !data)
    return nullArgument();
  return guarded([&] {
    DeviceBuffer *whole = value->kept->whole();
    *device = whole ? whole->ordinal() : -1;
    *data = nullptr;
    if (*device < 0)
      return TESSERA_OK;
    *data = whole->data();
    Status status = whole->handOver(stream);
    return status.ok() ? TESSERA_OK : fail(TESSERA_FAILED, status.message());
  });
}

void tessera_value_free(tessera_value *value) {
  delete value;
}

tessera_status tessera_session_counter(const tessera_session *session, int64_t index, char name[64],
                                       int64_t *count) {
  if (!session || !name || !count)
    return nullArgument();
  return guarded([&] {
    auto counters = session->session->executor().counters();
    if (index < 0 || index >= static_cast<int64_t>(counters.size()))
      return outOfRange(index, "counter", counters.size());
    const auto &[text, number] = counters[static_cast<size_t>(index)];
    std::memcpy(name, text.c_str(), std::min<size_t>(text.size(), 63) + 1);
    name[63] = 0;
    *count = number;
    return TESSERA_OK;
  });
}
