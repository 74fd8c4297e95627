//===- Backend.cpp - The registry of backends -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/Backend.h"

#include "../Gpu/Cuda/CudaBackend.h"
#include "../Gpu/Stub/StubBackend.h"
#include "../Mpi/MpiBackend.h"
#include "../Threads/ThreadsBackend.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

namespace tessera::runtime {

namespace {
struct Registry {
  std::mutex mutex;
  std::map<std::string, Backend> backends;
};
} // namespace

static std::vector<Backend> builtinBackends() {
  return {
      {.name = "threads", .description = "virtual devices in one process", .open = openThreads},
      {.name = "mpi",
       .description = "one process per device, through MPI",
       .open = openMpi,
       .hasProcesses = true},
      {.name = "tcp",
       .description = "one process per device, over TCP",
       .open = openTcp,
       .hasProcesses = true},
      {.name = "stub",
       .description = "GPU programs in host memory, in random legal orders",
       .open = gpu::openStub,
       .target = "stub",
       .readsScheduleSeed = true},
      {.name = "vdev",
       .description = "virtual devices on one GPU",
       .open = gpu::openVdev,
       .target = "cuda"},
      {.name = "cuda",
       .description = "one process per GPU, through NCCL",
       .open = gpu::openCuda,
       .target = "cuda",
       .hasProcesses = true},
  };
}

static Registry &registry() {
  static Registry *instance = [] {
    auto *made = new Registry; // never destroyed: a plugin's functions may be called late
    for (Backend &backend : builtinBackends())
      made->backends[backend.name] = backend;
    return made;
  }();
  return *instance;
}

static std::string lower(std::string_view text) {
  std::string result(text);
  for (char &c : result)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

Status registerBackend(Backend backend) {
  backend.name = lower(backend.name);
  std::lock_guard lock(registry().mutex);
  if (backend.name.empty() || !registry().backends.emplace(backend.name, backend).second)
    return Status::error("a backend called '" + backend.name + "' is already registered");
  return {};
}

std::vector<std::string> backendNames() {
  std::lock_guard lock(registry().mutex);
  std::vector<std::string> names;
  for (auto &[name, backend] : registry().backends)
    names.push_back(name);
  return names;
}

Expected<Backend> findBackend(std::string_view name) {
  {
    std::lock_guard lock(registry().mutex);
    auto it = registry().backends.find(lower(name));
    if (it != registry().backends.end())
      return it->second;
  }
  std::string known;
  for (const std::string &each : backendNames())
    known += (known.empty() ? "" : ", ") + each;
  return Status::error("there is no backend '" + std::string(name) + "'; registered: " + known);
}

} // namespace tessera::runtime
