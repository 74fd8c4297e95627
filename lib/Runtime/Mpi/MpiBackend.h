//===- MpiBackend.h - One process per device, through MPI -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_MPI_MPIBACKEND_H
#define TESSERA_LIB_RUNTIME_MPI_MPIBACKEND_H

#include "tessera/Runtime/Execution/Executor.h"

namespace tessera::runtime {

/// Backend::open of `mpi`.
Expected<std::unique_ptr<Executor>> openMpi(std::shared_ptr<const Artifact> artifact,
                                            const BackendOptions &options, const void *);
/// Backend::open of `tcp`: the same over TCP connections, with any launcher.
Expected<std::unique_ptr<Executor>> openTcp(std::shared_ptr<const Artifact> artifact,
                                            const BackendOptions &options, const void *);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_MPIBACKEND_H
