//===- ThreadedProcesses.cpp - Processes that are threads -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadedProcesses.h"

#include "Mpi/ProcessExecutor.h"
#include "Ranks/ThreadTransport.h"

#include <functional>
#include <thread>

namespace tessera::runtime {

namespace {

class ThreadedProcesses final : public Executor {
public:
  ThreadedProcesses(std::shared_ptr<const Artifact> loaded, const BackendOptions &options)
      : artifact(std::move(loaded)) {
    int64_t size = artifact->program.numDevices();
    for (auto &transport : makeThreadTransports(size))
      ranks.push_back(std::make_unique<ProcessExecutor>(
          artifact, std::move(transport),
          options.timeoutSeconds > 0 ? options.timeoutSeconds : kDefaultTimeout,
          HeldPlacement{{std::max<int64_t>(options.cores, 1), {}, {}, {}, true}, nullptr},
          options));
  }

  Status onAll(const std::function<Status(ProcessExecutor &)> &body) {
    std::vector<Status> said(ranks.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([&, rank] { said[rank] = body(*ranks[rank]); });
    for (std::thread &each : threads)
      each.join();
    for (const Status &each : said)
      if (!each.ok() && !each.isReportedElsewhere())
        return each;
    return {};
  }
  Status open() {
    return onAll([](ProcessExecutor &rank) { return rank.open(); });
  }

  Status run() override {
    return onAll([](ProcessExecutor &rank) { return rank.run(); });
  }
  Status finish() override {
    return onAll([](ProcessExecutor &rank) { return rank.finish(); });
  }
  Status writeSlot(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                   int64_t size) override {
    return at(part, position).writeSlot(part, position, slot, data, size);
  }
  Status readSlot(int64_t part, int64_t position, int64_t slot, std::byte *data,
                  int64_t size) override {
    std::copy_n(slotData(part, position, slot), size, data);
    return {};
  }
  std::byte *slotData(int64_t part, int64_t position, int64_t slot) override {
    return at(part, position).slotData(part, position, slot);
  }
  /// Each rank's own counts.
  std::vector<CollectiveStats> stats() const override {
    std::vector<CollectiveStats> all = ranks.front()->stats();
    for (size_t rank = 1; rank < ranks.size(); ++rank) {
      std::vector<CollectiveStats> theirs = ranks[rank]->stats();
      for (size_t i = 0; i < all.size(); ++i) {
        all[i].executions = std::max(all[i].executions, theirs[i].executions);
        for (size_t d = 0; d < all[i].sentBytes.size(); ++d) {
          all[i].sentBytes[d] += theirs[i].sentBytes[d];
          all[i].receivedBytes[d] += theirs[i].receivedBytes[d];
        }
      }
    }
    return all;
  }
  /// Once per group, from its first device.
  std::vector<CollectiveRecord> recorded() const override {
    std::vector<CollectiveRecord> all;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      for (const CollectiveRecord &each : ranks[rank]->recorded())
        if (each.firstDevice == static_cast<int64_t>(rank))
          all.push_back(each);
    return all;
  }
  std::string traceJson() const override {
    std::vector<std::string> texts(ranks.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([&, rank] { texts[rank] = ranks[rank]->traceJson(); });
    for (std::thread &each : threads)
      each.join();
    return texts.front();
  }

private:
  ProcessExecutor &at(int64_t part, int64_t position) {
    const Program &program = artifact->program;
    return *ranks[program.meshes[program.parts[part].mesh].processIds[position]];
  }

  std::shared_ptr<const Artifact> artifact;
  std::vector<std::unique_ptr<ProcessExecutor>> ranks;
};

} // namespace

Expected<std::unique_ptr<Executor>> openThreadedProcesses(std::shared_ptr<const Artifact> artifact,
                                                          const BackendOptions &options,
                                                          const void *) {
  auto made = std::make_unique<ThreadedProcesses>(std::move(artifact), options);
  TESSERA_RETURN_IF_ERROR(made->open());
  return std::unique_ptr<Executor>(std::move(made));
}

} // namespace tessera::runtime
