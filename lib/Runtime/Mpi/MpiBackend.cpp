//===- MpiBackend.cpp - One process a device, through MPI -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MpiBackend.h"

#include "../Ranks/LaunchedRank.h"
#include "MpiTransport.h"
#include "ProcessExecutor.h"

#include <algorithm>

namespace tessera::runtime {

constexpr int64_t kMaxCores = 1024;

/// Each process of the job is a device: none may be missing, and none left over.
static Status checkWorld(const Program &program, int64_t processes) {
  int64_t devices = program.numDevices();
  if (processes == devices)
    return {};
  // The mesh that has the last device asks for the most.
  std::string who = "the program";
  for (const sharding::Mesh &mesh : program.meshes)
    for (int64_t id : mesh.processIds)
      if (id == devices - 1)
        who = "mesh '" + mesh.name + "'";
  return Status::error(who + " needs " + std::to_string(devices) +
                       (devices == 1 ? " process" : " processes") + ", one a device, and " +
                       std::to_string(processes) + (processes == 1 ? " runs" : " run") +
                       "; start " + std::to_string(devices) + " (mpirun -np " +
                       std::to_string(devices) + ")");
}

Expected<std::unique_ptr<Executor>> openMpi(std::shared_ptr<const Artifact> artifact,
                                            const BackendOptions &options, const void *) {
  if (options.cores > kMaxCores)
    return Status::error(std::to_string(options.cores) + " cores; there are at most " +
                         std::to_string(kMaxCores) + " workers");
  if (!MpiLibrary::isLaunched())
    TESSERA_RETURN_IF_ERROR(checkWorld(artifact->program, 1));
  auto seconds = timeoutOf(options);
  if (!seconds)
    return seconds.status();
  auto transport = MpiTransport::open(*seconds);
  if (!transport)
    return transport.status();
  MpiTransport &mpi = **transport;
  if (Status fits = checkWorld(artifact->program, mpi.size()); !fits.ok())
    return mpi.rank() == 0 ? fits : fits.saidElsewhere();
  // The ranks of a host share its cores.
  int64_t cores = options.cores;
  if (cores <= 0) {
    int64_t neighbours = 0;
    for (int64_t rank = 0; rank < mpi.size(); ++rank)
      neighbours += mpi.hostOf(rank) == mpi.hostOf(mpi.rank());
    cores = std::clamp<int64_t>(std::thread::hardware_concurrency() / neighbours, 1, kMaxCores);
  }
  auto executor = std::make_unique<ProcessExecutor>(std::move(artifact), std::move(*transport),
                                                    *seconds, cores, options.trace);
  TESSERA_RETURN_IF_ERROR(executor->open());
  return std::unique_ptr<Executor>(std::move(executor));
}

} // namespace tessera::runtime
