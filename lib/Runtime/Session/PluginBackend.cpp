//===- PluginBackend.cpp - Backends from shared objects -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/Backend.h"
#include "tessera/Runtime/tessera_rt.h"

#include <dlfcn.h>

namespace tessera::runtime {

namespace {

Status toStatus(tessera_status status, const tessera_message &message) {
  if (status == TESSERA_OK)
    return {};
  return Status::error(message.text[0] ? message.text
                                       : "failed with status " + std::to_string(status));
}

/// An executor behind a C table.
class PluginExecutor final : public Executor {
public:
  PluginExecutor(const tessera_backend &table, Bytes bytes)
      : table(table), artifact(std::move(bytes)) {}
  ~PluginExecutor() override {
    if (handle)
      table.close(handle);
  }
  Status open(const BackendOptions &options) {
    tessera_open_options plain{};
    plain.struct_size = sizeof(plain);
    plain.backend = table.name;
    plain.devices = options.devices;
    plain.cores = options.cores;
    plain.precision = options.precision.empty() ? nullptr : options.precision.c_str();
    plain.pins = options.pins;
    tessera_message message{};
    return toStatus(table.open(artifact.data(), artifact.size(), &plain, &handle, &message),
                    message);
  }
  Status run() override {
    tessera_message message{};
    return toStatus(table.run(handle, &message), message);
  }
  Status writeSlot(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                   int64_t size) override {
    tessera_message message{};
    return toStatus(
        table.write_slot(handle, part, position, slot, data, static_cast<size_t>(size), &message),
        message);
  }
  Status readSlot(int64_t part, int64_t position, int64_t slot, std::byte *data,
                  int64_t size) override {
    tessera_message message{};
    return toStatus(
        table.read_slot(handle, part, position, slot, data, static_cast<size_t>(size), &message),
        message);
  }

private:
  const tessera_backend &table;
  Bytes artifact;
  void *handle = nullptr;
};

Expected<std::unique_ptr<Executor>> openPlugin(std::shared_ptr<const Artifact> artifact,
                                               const BackendOptions &options,
                                               const void *userData) {
  auto executor = std::make_unique<PluginExecutor>(*static_cast<const tessera_backend *>(userData),
                                                   serialize(*artifact));
  TESSERA_RETURN_IF_ERROR(executor->open(options));
  return std::unique_ptr<Executor>(std::move(executor));
}

} // namespace

Status loadBackend(const std::string &path) {
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status::error(std::string("backend ") + ::dlerror());
  auto entry =
      reinterpret_cast<tessera_backend_entry_fn>(::dlsym(library, "tessera_backend_entry"));
  if (!entry) {
    ::dlclose(library);
    return Status::error("backend " + path + ": there is no symbol 'tessera_backend_entry'");
  }
  // Registered tables stay for the life of the process, and so does the library.
  auto *table = new tessera_backend{};
  table->struct_size = sizeof(*table);
  tessera_message message{};
  Status status = toStatus(entry(TESSERA_RT_VERSION, table, &message), message);
  if (status.ok() && !(table->name && table->open && table->close && table->run &&
                       table->write_slot && table->read_slot))
    status = Status::error("its table is not complete");
  if (status.ok())
    status = registerBackend({.name = table->name,
                              .description = table->description ? table->description : "",
                              .open = openPlugin,
                              .userData = table,
                              .target = table->target ? table->target : "cpu",
                              .readsScheduleSeed = true});
  if (status.ok())
    return {};
  delete table;
  ::dlclose(library);
  return status.in("backend " + path);
}

} // namespace tessera::runtime
