//===- RelayBackend.cpp - A backend from a shared object that executes ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contains its own copy of the runtime behind the C table: the program suite tests it
// like any third-party backend.
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/Backend.h"
#include "tessera/Runtime/tessera_rt.h"

#include <cstdio>

using namespace tessera::runtime;

static tessera_status say(const Status &status, tessera_message *message) {
  if (status.ok())
    return TESSERA_OK;
  std::snprintf(message->text, sizeof(message->text), "%s", status.message().c_str());
  return TESSERA_FAILED;
}

static tessera_status openExecutor(const void *bytes, size_t size, const tessera_open_options *,
                                   void **executor, tessera_message *message) {
  auto artifact = parseArtifact(static_cast<const std::byte *>(bytes), size, "the artifact");
  if (!artifact)
    return say(artifact.status(), message);
  auto threads = findBackend("threads");
  if (!threads)
    return say(threads.status(), message);
  auto opened = threads->open(std::make_shared<Artifact>(std::move(*artifact)), {}, nullptr);
  if (!opened)
    return say(opened.status(), message);
  *executor = opened->release();
  return TESSERA_OK;
}

static Executor &of(void *executor) {
  return *static_cast<Executor *>(executor);
}

static void closeExecutor(void *executor) {
  delete &of(executor);
}

static tessera_status run(void *executor, tessera_message *message) {
  return say(of(executor).run(), message);
}

static tessera_status writeSlot(void *executor, int64_t part, int64_t position, int64_t slot,
                                const void *data, size_t size, tessera_message *message) {
  return say(of(executor).writeSlot(part, position, slot, static_cast<const std::byte *>(data),
                                    static_cast<int64_t>(size)),
             message);
}

static tessera_status readSlot(void *executor, int64_t part, int64_t position, int64_t slot,
                               void *data, size_t size, tessera_message *message) {
  return say(of(executor).readSlot(part, position, slot, static_cast<std::byte *>(data),
                                   static_cast<int64_t>(size)),
             message);
}

extern "C" __attribute__((visibility("default"))) tessera_status
tessera_backend_entry(uint32_t version, tessera_backend *backend, tessera_message *) {
  if (version != TESSERA_RT_VERSION)
    return TESSERA_UNAVAILABLE;
  backend->name = "Relay";
  backend->description = "another copy of threads";
  backend->open = openExecutor;
  backend->close = closeExecutor;
  backend->run = run;
  backend->write_slot = writeSlot;
  backend->read_slot = readSlot;
  return TESSERA_OK;
}
