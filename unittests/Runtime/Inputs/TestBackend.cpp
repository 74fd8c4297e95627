//===- TestBackend.cpp - A backend from a shared object -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keeps one buffer per slot and position and executes nothing: enough to test that
// values pass through the table.
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/tessera_rt.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

namespace {

struct Executor {
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<char>> slots;
  int runs = 0;
};

tessera_status openExecutor(const void *artifact, size_t size, const tessera_open_options *options,
                            void **executor, tessera_message *message) {
  if (size < 8 || std::memcmp(artifact, "TESSERA\n", 8) != 0)
    return TESSERA_INVALID_ARTIFACT;
  *executor = new Executor;
  return TESSERA_OK;
}

void closeExecutor(void *executor) {
  delete static_cast<Executor *>(executor);
}

tessera_status run(void *executor, tessera_message *message) {
  if (++static_cast<Executor *>(executor)->runs < 3)
    return TESSERA_OK;
  std::snprintf(message->text, sizeof(message->text), "device 0 caught fire");
  return TESSERA_FAILED;
}

tessera_status writeSlot(void *executor, int64_t part, int64_t position, int64_t slot,
                         const void *data, size_t size, tessera_message *) {
  const char *bytes = static_cast<const char *>(data);
  static_cast<Executor *>(executor)->slots[{part, position, slot}].assign(bytes, bytes + size);
  return TESSERA_OK;
}

tessera_status readSlot(void *executor, int64_t part, int64_t position, int64_t slot, void *data,
                        size_t size, tessera_message *) {
  std::vector<char> &held = static_cast<Executor *>(executor)->slots[{part, position, slot}];
  held.resize(std::max(held.size(), size));
  std::memcpy(data, held.data(), size);
  return TESSERA_OK;
}

} // namespace

extern "C" __attribute__((visibility("default"))) tessera_status
tessera_backend_entry(uint32_t version, tessera_backend *backend, tessera_message *message) {
  if (version != TESSERA_RT_VERSION)
    return TESSERA_UNAVAILABLE;
  backend->name = "Toy";
  backend->description = "keeps buffers, runs nothing";
  backend->open = openExecutor;
  backend->close = closeExecutor;
  backend->run = run;
  backend->write_slot = writeSlot;
  backend->read_slot = readSlot;
  return TESSERA_OK;
}
