//===- Backend.h - Backends that execute programs ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A backend turns an artifact into an executor: N devices with their arenas, which
// run the steps. Backends are registered by name; a shared object can add others
// (tessera_backend_entry in tessera_rt.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_SESSION_BACKEND_H
#define TESSERA_RUNTIME_SESSION_BACKEND_H

#include "tessera/Runtime/Execution/Executor.h"

namespace tessera::runtime {

/// A backend as a table of functions.
struct Backend {
  std::string name; ///< lower case
  std::string description;
  Expected<std::unique_ptr<Executor>> (*open)(std::shared_ptr<const Artifact> artifact,
                                              const BackendOptions &options, const void *userData);
  const void *userData = nullptr; ///< passed to `open`
  std::string target = "cpu";     ///< of `tessera compile`, whose code it executes
  bool hasProcesses = false;      ///< whether the devices are those of several processes
  bool readsScheduleSeed = false; ///< whether BackendOptions::scheduleSeed has an effect
};

/// Adds a backend; fails for a duplicate name. Names are case-insensitive.
Status registerBackend(Backend backend);
/// Opens a shared object and registers the backend of its `tessera_backend_entry`.
Status loadBackend(const std::string &path);
/// The backend of that name; the error lists all backends.
Expected<Backend> findBackend(std::string_view name);
/// Sorted.
std::vector<std::string> backendNames();

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_SESSION_BACKEND_H
