//===- MpiBackend.cpp - One process per device, through MPI ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MpiBackend.h"

#include "../Ranks/TcpTransport.h"
#include "DevicesExecutor.h"
#include "MpiTransport.h"

#include <algorithm>

namespace tessera::runtime {

constexpr int64_t kMaxCores = 1024;

/// Each process of the job is a device: their numbers must be equal. `start`: the command that
/// starts them.
static Status checkWorld(const Program &program, int64_t processes, const std::string &start) {
  int64_t devices = program.numDevices();
  if (processes == devices)
    return {};
  // The mesh with the largest process id determines the number of devices.
  std::string who = "the program";
  for (const sharding::Mesh &mesh : program.meshes)
    for (int64_t id : mesh.processIds)
      if (id == devices - 1)
        who = "mesh '" + mesh.name + "'";
  return Status::error(
      who + " needs " + std::to_string(devices) + (devices == 1 ? " process" : " processes") +
      ", one per device, but " + std::to_string(processes) + (processes == 1 ? " runs" : " run") +
      "; start " + std::to_string(devices) + " (" + start + std::to_string(devices) + ")");
}
constexpr char kStartMpi[] = "mpirun -np ", kStart[] = "tessera launch --nproc_per_node ";

static Status checkCores(const BackendOptions &options) {
  if (options.cores <= kMaxCores)
    return {};
  return Status::error(std::to_string(options.cores) + " cores; there are at most " +
                       std::to_string(kMaxCores) + " workers");
}

static Expected<std::unique_ptr<ProcessExecutor>> openOver(std::unique_ptr<Transport> transport,
                                                           std::shared_ptr<const Artifact> artifact,
                                                           const BackendOptions &options,
                                                           double seconds) {
  // The ranks of a host share its cores.
  int64_t neighbours = 0, before = 0;
  for (int64_t rank = 0; rank < transport->size(); ++rank)
    if (transport->hostOf(rank) == transport->hostOf(transport->rank())) {
      ++neighbours;
      before += rank < transport->rank();
    }
  Placement placement = place(requestOfProcess(options.cores, options.pins, before, neighbours));
  if (placement.workers > kMaxCores)
    placement = place(requestOfProcess(kMaxCores, options.pins, before, neighbours));
  auto executor = std::make_unique<ProcessExecutor>(std::move(artifact), std::move(transport),
                                                    seconds, hold(std::move(placement)), options);
  TESSERA_RETURN_IF_ERROR(executor->open());
  return executor;
}

static Expected<std::unique_ptr<Executor>>
asExecutor(Expected<std::unique_ptr<ProcessExecutor>> opened) {
  if (!opened)
    return opened.status();
  return std::unique_ptr<Executor>(std::move(*opened));
}

Expected<std::unique_ptr<Executor>> openMpi(std::shared_ptr<const Artifact> artifact,
                                            const BackendOptions &options, const void *) {
  TESSERA_RETURN_IF_ERROR(checkCores(options));
  auto seconds = timeoutOf(options);
  if (!seconds)
    return seconds.status();
  if (!MpiLibrary::isLaunched())
    TESSERA_RETURN_IF_ERROR(checkWorld(artifact->program, 1, kStartMpi));
  auto transport = MpiTransport::open(*seconds);
  if (!transport)
    return transport.status();
  if (Status fits = checkWorld(artifact->program, (*transport)->size(), kStartMpi); !fits.ok())
    return (*transport)->rank() == 0 ? fits : fits.asReportedElsewhere();
  return asExecutor(openOver(std::move(*transport), std::move(artifact), options, *seconds));
}

/// Process p of the job has devices [p * each, (p + 1) * each), each with a transport.
static Expected<std::unique_ptr<Executor>> openDevices(const LaunchedRank &process, int64_t each,
                                                       std::shared_ptr<const Artifact> artifact,
                                                       const BackendOptions &options,
                                                       double seconds, const MeetingPlace &place) {
  int64_t needed = artifact->program.numDevices();
  if (process.size * each != needed) {
    Status status = Status::error(
        "the program needs " + std::to_string(needed) + " devices, and " +
        std::to_string(process.size) + (process.size == 1 ? " process" : " processes") + " with " +
        std::to_string(each) + " each " + (process.size == 1 ? "runs" : "run") +
        (needed % each == 0 ? "; start " + std::to_string(needed / each) + " (" + kStart +
                                  std::to_string(needed / each) + ")"
                            : ""));
    return process.rank == 0 ? status : status.asReportedElsewhere();
  }
  std::vector<std::unique_ptr<ProcessExecutor>> devices(static_cast<size_t>(each));
  Status opened = DevicesExecutor::onAll(devices.size(), [&](size_t i) -> Status {
    auto index = static_cast<int64_t>(i);
    auto transport = openTcpTransport(
        {process.rank * each + index, needed, process.local * each + index}, seconds, place);
    if (!transport)
      return transport.status();
    auto device = openOver(std::move(*transport), artifact, options, seconds);
    if (!device)
      return device.status();
    devices[i] = std::move(*device);
    return {};
  });
  if (!opened.ok())
    return opened;
  return std::unique_ptr<Executor>(new DevicesExecutor(std::move(devices)));
}

Expected<std::unique_ptr<Executor>> openTcp(std::shared_ptr<const Artifact> artifact,
                                            const BackendOptions &options, const void *) {
  TESSERA_RETURN_IF_ERROR(checkCores(options));
  auto seconds = timeoutOf(options);
  auto rank = launchedRank();
  if (!seconds || !rank)
    return seconds ? rank.status() : seconds.status();
  // Decided before the rendezvous. Fewer devices than the program has are those per process.
  bool hasSeveral = options.devices > 1 && options.devices < artifact->program.numDevices();
  if (Status fits = checkWorld(artifact->program, rank->size, kStart); !fits.ok() && !hasSeveral)
    return rank->rank == 0 ? fits : fits.asReportedElsewhere();
  MeetingPlace place;
  if (rank->size > 1 || hasSeveral) {
    auto found = MeetingPlace::fromEnvironment();
    if (!found)
      return found.status();
    place = *found;
  }
  if (hasSeveral)
    return openDevices(*rank, options.devices, std::move(artifact), options, *seconds, place);
  auto transport = openTcpTransport(*rank, *seconds, place);
  if (!transport)
    return transport.status();
  return asExecutor(openOver(std::move(*transport), std::move(artifact), options, *seconds));
}

} // namespace tessera::runtime
