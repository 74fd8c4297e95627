//===- CudaBackend.cpp - The backends for GPUs ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaBackend.h"
#include "../../Artifact/Steps.h"
#include "../../Execution/RankTracks.h"
#include "../Executor.h"
#include "CudaDriver.h"
#include "Nccl.h"

#include <cstring>
#include <unistd.h>

namespace tessera::runtime::gpu {

/// The data that ranks exchange before they begin.
struct RankInfo {
  uint64_t fingerprint = 0;
  CuUuid gpu{}; ///< identifies a GPU in a cluster
  char hostName[64] = {};
  char gpuName[64] = {};
};

static std::string text(const RankInfo &card) {
  return std::string(reinterpret_cast<const char *>(&card), sizeof(card));
}

Status compareCards(const std::vector<std::string> &texts, int ncclVersion,
                    const std::string &ncclText) {
  std::vector<RankInfo> cards(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() != sizeof(RankInfo))
      return Status::error("rank " + std::to_string(i) + " runs another version of Tessera");
    std::memcpy(&cards[i], texts[i].data(), sizeof(RankInfo));
    if (cards[i].fingerprint != cards[0].fingerprint)
      return Status::error("rank " + std::to_string(i) + " (" + cards[i].hostName +
                           ") runs another program, " + hexText(cards[i].fingerprint) +
                           ", than rank 0, " + hexText(cards[0].fingerprint) +
                           "; give all ranks the same artifact");
    for (size_t j = 0; j < i; ++j)
      if (std::memcmp(&cards[i].gpu, &cards[j].gpu, sizeof(CuUuid)) == 0 &&
          ncclVersion < Nccl::kManyRanksAGpu)
        return Status::error(
            "ranks " + std::to_string(j) + " and " + std::to_string(i) + " are both on the " +
            cards[i].gpuName + " of " + cards[i].hostName + ", NCCL " + ncclText +
            " supports one rank per GPU; give each rank its own GPU, or use NCCL >= "
            "2.30 with NCCL_MULTI_RANK_GPU_ENABLE=1, or the backend 'vdev'");
  }
  return {};
}

static RankInfo rankInfoOf(const Artifact &artifact, const CudaDriver &driver) {
  RankInfo card;
  card.fingerprint = artifact.fingerprint();
  card.gpu = driver.uuid();
  (void)::gethostname(card.hostName, sizeof(card.hostName) - 1);
  std::strncpy(card.gpuName, driver.gpuName().c_str(), sizeof(card.gpuName) - 1);
  return card;
}

/// Collects the tracks of all devices. Each process has those of its own devices and sends them to
/// the others.
static Expected<std::string> traceOf(GpuExecutor &executor, CudaTrace &trace,
                                     const GatherTexts &gather) {
  auto tracks = trace.tracks(executor.program().numDevices());
  if (!tracks)
    return tracks.status();
  return traceOfRanks(executor.program(), *tracks, executor.options.devices.front(), gather);
}

static Expected<std::unique_ptr<Executor>> finish(std::shared_ptr<const Artifact> artifact,
                                                  ExecutorOptions options, CudaDriver &driver,
                                                  bool traces, const GatherTexts &gather) {
  options.capture = !traces;
  auto executor = std::make_unique<GpuExecutor>(std::move(artifact), std::move(options));
  TESSERA_RETURN_IF_ERROR(executor->open());
  if (traces) {
    if (gather) // synchronizes, so that time 0 is nearly the same for all
      if (auto met = gather(""); !met)
        return met.status();
    TESSERA_RETURN_IF_ERROR(driver.startTrace());
    executor->trace = [made = executor.get(), &driver, gather]() -> std::string {
      auto text = traceOf(*made, *driver.trace(), gather);
      if (text)
        return *text;
      std::vector<std::string> titles = {"no trace: " + text.message()};
      const Track none;
      return runtime::traceJson({&none}, titles, made->program());
    };
  }
  return std::unique_ptr<Executor>(std::move(executor));
}

Expected<std::unique_ptr<Executor>> openVdev(std::shared_ptr<const Artifact> artifact,
                                             const BackendOptions &given, const void *) {
  auto driver = std::make_unique<CudaDriver>();
  TESSERA_RETURN_IF_ERROR(driver->open(0));
  if (given.precision == "high")
    driver->useTf32();
  CudaDriver &cuda = *driver;
  ExecutorOptions options;
  options.driver = std::move(driver);
  return finish(std::move(artifact), std::move(options), cuda, given.trace, nullptr);
}

Expected<std::unique_ptr<Executor>> openCuda(std::shared_ptr<const Artifact> artifact,
                                             const BackendOptions &given, const void *) {
  const Program &program = artifact->program;
  auto rank = launchedRank();
  if (!rank)
    return rank.status();
  if (program.numDevices() != rank->size)
    return Status::error("the program has " + std::to_string(program.numDevices()) +
                         " devices and " + std::to_string(rank->size) +
                         (rank->size == 1 ? " process runs" : " processes run") +
                         "; start one process per GPU, " + std::to_string(program.numDevices()) +
                         " of them, with a launcher that sets rank variables (mpirun, srun, "
                         "torchrun, or TESSERA_RANK, TESSERA_SIZE and TESSERA_LOCAL_RANK)");
  // The limit on waits of ranks for each other, and for NCCL.
  auto seconds = timeoutOf(given);
  if (!seconds)
    return seconds.status();
  auto driver = std::make_unique<CudaDriver>();
  auto nccl = std::make_unique<Nccl>(*rank, *seconds);
  bool needsNccl =
      rank->size > 1 && (hasStep<CollectiveStep>(program) || hasStep<TransferStep>(program));
  auto openHere = [&]() -> Status {
    TESSERA_RETURN_IF_ERROR(driver->open(rank->local));
    if (given.precision == "high")
      driver->useTf32();
    return needsNccl ? nccl->open() : Status();
  };
  Status opened = openHere();
  if (rank->size == 1) {
    TESSERA_RETURN_IF_ERROR(opened);
    TESSERA_RETURN_IF_ERROR(driver->load(rank->rank, *artifact));
  }

  ExecutorOptions options;
  options.devices = {rank->rank};
  options.messages = true;
  GatherTexts gather;
  if (rank->size > 1) {
    auto rendezvous = Rendezvous::open(*rank, *seconds);
    if (!rendezvous)
      return opened.ok() ? rendezvous.status() : opened;
    TESSERA_RETURN_IF_ERROR((*rendezvous)->agree(opened, Rendezvous::Wait::whileOpening));
    // The driver may take long to compile PTX, and longer on one node than on another.
    TESSERA_RETURN_IF_ERROR(
        (*rendezvous)->agree(driver->load(rank->rank, *artifact), Rendezvous::Wait::whileRunning));
    auto cards = (*rendezvous)->allGather(text(rankInfoOf(*artifact, *driver)));
    if (!cards)
      return cards.status();
    TESSERA_RETURN_IF_ERROR(
        compareCards(*cards, needsNccl ? nccl->version() : INT32_MAX, nccl->versionText()));
    if (needsNccl) {
      nccl->peersRun = [peers = rendezvous->get()] { return peers->checkPeers(); };
      TESSERA_RETURN_IF_ERROR(nccl->join(**rendezvous));
      driver->allocateElsewhere = [library = nccl.get()](size_t size) {
        return library->allocate(size);
      };
    }
    // Results are whole tensors on every rank: each device sends its part to all ranks.
    std::shared_ptr<Rendezvous> shared = std::move(*rendezvous);
    driver->whileWaiting = [shared, library = nccl.get()]() -> Status {
      Status peers = shared->checkPeers();
      if (!peers.ok())
        library->abortAll();
      return peers.ok() ? library->progress() : peers;
    };
    gather = [shared](const std::string &text) {
      return shared->allGather(text, Rendezvous::Wait::whileRunning);
    };
    options.leave = [shared] { shared->leave(); };
    options.share = [shared](int64_t owner, bool, std::byte *data, int64_t size) {
      return shared->broadcast(owner, data, size, Rendezvous::Wait::whileRunning);
    };
  }
  CudaDriver &cuda = *driver;
  options.driver = std::move(driver);
  options.engine = std::move(nccl);
  return finish(std::move(artifact), std::move(options), cuda, given.trace, gather);
}

} // namespace tessera::runtime::gpu
