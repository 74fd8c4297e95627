//===- ThreadsBackend.h - Virtual devices in one process --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_THREADS_THREADSBACKEND_H
#define TESSERA_LIB_RUNTIME_THREADS_THREADSBACKEND_H

#include "tessera/Runtime/Execution/Executor.h"

namespace tessera::runtime {

/// Backend::open of `threads`.
Expected<std::unique_ptr<Executor>> openThreads(std::shared_ptr<const Artifact> artifact,
                                                const BackendOptions &options,
                                                const void *userData);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_THREADS_THREADSBACKEND_H
