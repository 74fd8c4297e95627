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

static Registry &registry() {
  static Registry *instance = [] {
    auto *made = new Registry; // never destroyed: a plugin's functions may be called late
    made->backends["threads"] = {"threads", "virtual devices in one process", openThreads, nullptr};
    made->backends["mpi"] = {"mpi", "one process per device, through MPI", openMpi, nullptr};
    made->backends["tcp"] = {"tcp", "one process per device, over TCP", openTcp, nullptr};
    made->backends["stub"] = {"stub", "GPU programs in host memory, in random legal orders",
                              gpu::openStub, nullptr};
    made->backends["vdev"] = {"vdev", "virtual devices on one GPU", gpu::openVdev, nullptr};
    made->backends["cuda"] = {"cuda", "one process per GPU, through NCCL", gpu::openCuda, nullptr};
    for (auto &[name, backend] : made->backends)
      backend.readsScheduleSeed = name == "stub";
    made->backends["stub"].target = "stub";
    for (const char *name : {"vdev", "cuda"})
      made->backends[name].target = "cuda";
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
