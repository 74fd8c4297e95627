//===- ThreadedProcesses.h - Processes that are threads ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_MPI_THREADEDPROCESSES_H
#define TESSERA_UNITTESTS_RUNTIME_MPI_THREADEDPROCESSES_H

#include "tessera/Runtime/Execution/Executor.h"

namespace tessera::runtime {

/// Backend::open of a backend for the suite of Main.cpp: the executor that `mpi` has in each
/// process, here in one thread each, over queues instead of MPI.
Expected<std::unique_ptr<Executor>> openThreadedProcesses(std::shared_ptr<const Artifact> artifact,
                                                          const BackendOptions &options,
                                                          const void *);

} // namespace tessera::runtime

#endif // TESSERA_UNITTESTS_RUNTIME_MPI_THREADEDPROCESSES_H
