//===- ThreadsBackend.cpp - Virtual devices in one process ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadsBackend.h"

#include "../Execution/Deadlock.h"
#include "Device.h"

#include <algorithm>

namespace tessera::runtime {

namespace {

static constexpr int64_t kMaxCores = 1024;

/// N virtual devices over a pool of workers.
class ThreadsExecutor final : public Executor {
public:
  ThreadsExecutor(std::shared_ptr<const Artifact> loaded, const BackendOptions &options,
                  HeldPlacement placement)
      : artifact(std::move(loaded)), pool(std::move(placement)),
        context{artifact->program, memory, pool, recorder, clock, {}},
        machine{context, {kernels, packed, pool, clock, false}, {}, options.trace, {}, {}, {}},
        mayDropConstants(options.ownsConstants) {}

  Status open() {
    const int64_t workers = pool.placement().workers;
    if (pool.size() < workers)
      return Status::error("this machine starts " + std::to_string(pool.size()) +
                           " workers, not the " + std::to_string(workers) + " of --cores");
    TESSERA_RETURN_IF_ERROR(memory.allocate(*artifact, pool.placement()));
    if (artifact->kernels.empty() && !artifact->gpu.empty())
      return Status::error("the artifact was compiled for a GPU (" +
                           artifact->gpu.architecturesText() +
                           "); the backend 'threads' needs one compiled with --target=cpu");
    TESSERA_RETURN_IF_ERROR(kernels.open(artifact->kernels, artifact->program.kernels));
    TESSERA_RETURN_IF_ERROR(packed.load(*artifact, pool, mayDropConstants));
    loadParts();
    loadChannels();
    makeDevices();
    return {};
  }

  Status run() override {
    if (machine.failed)
      return Status::error("an earlier step failed: " + machine.failure);
    for (auto &device : devices)
      if (device)
        device->prepare();
    pool.run(jobs);
    // Only a running device wakes another: unfinished devices are deadlocked.
    if (!machine.failed)
      reportDeadlock();
    return machine.failed ? Status::error(machine.failure) : Status();
  }

  Status writeSlot(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                   int64_t size) override {
    std::copy_n(data, size, memory.slot(part, position, slot));
    return {};
  }
  Status readSlot(int64_t part, int64_t position, int64_t slot, std::byte *data,
                  int64_t size) override {
    std::copy_n(memory.slot(part, position, slot), size, data);
    return {};
  }
  std::byte *slotData(int64_t part, int64_t position, int64_t slot) override {
    return memory.slot(part, position, slot);
  }

  void parallelFor(int64_t count, const std::function<void(int64_t)> &body) override {
    pool.parallelFor(count, body);
  }

  std::vector<CollectiveStats> stats() const override {
    std::vector<CollectiveStats> all;
    for (auto &part : parts)
      for (auto &operation : part->collectives)
        all.push_back(operation->stats());
    for (auto &[id, channel] : machine.channels)
      all.push_back(channel->stats());
    std::sort(all.begin(), all.end(), [](auto &a, auto &b) { return a.id < b.id; });
    return all;
  }
  std::vector<CollectiveRecord> recorded() const override { return recorder.last(); }
  std::string traceJson() const override {
    std::vector<const Track *> tracks;
    std::vector<std::string> names;
    for (auto &device : devices) {
      if (!device)
        continue;
      tracks.push_back(&device->track);
      names.push_back("device " + std::to_string(device->id));
    }
    return machine.trace ? runtime::traceJson(tracks, names, artifact->program) : "";
  }

private:
  void loadParts() {
    const Program &program = artifact->program;
    for (size_t i = 0; i < program.parts.size(); ++i) {
      auto loaded = std::make_unique<LoadedPart>();
      loaded->index = static_cast<int64_t>(i);
      loaded->part = &program.parts[i];
      loaded->code = flatten(program.parts[i]);
      for (const Step *step : loaded->code.collectives)
        loaded->collectives.push_back(
            std::make_unique<CollectiveOperation>(context, loaded->index, *step));
      parts.push_back(std::move(loaded));
    }
  }

  void loadChannels() {
    struct Place {
      const Step *step;
      int64_t part;
    };
    std::map<int64_t, Place> sends, recvs;
    for (auto &part : parts)
      for (const Instruction &instruction : part->code.instructions) {
        if (instruction.op == Instruction::Op::send)
          sends[instruction.index] = {instruction.step, part->index};
        else if (instruction.op == Instruction::Op::recv)
          recvs[instruction.index] = {instruction.step, part->index};
      }
    for (auto &[id, send] : sends) {
      const Place &recv = recvs.at(id); // the verifier has paired them
      machine.channels[id] =
          std::make_unique<Channel>(context, *send.step, send.part, *recv.step, recv.part);
    }
  }

  void makeDevices() {
    devices.resize(artifact->program.numDevices());
    context.waiters.resize(devices.size());
    int64_t count = 0;
    for (auto &part : parts)
      for (int64_t id : artifact->program.meshes[part->part->mesh].processIds) {
        if (!devices[id]) {
          devices[id] = std::make_unique<Device>(machine, id);
          if (auto nodes = pool.placement().nodesOfDevice(id, artifact->program.numDevices());
              nodes.size() == 1)
            devices[id]->node = nodes.front();
          context.waiters[id] = devices[id].get();
          ++count;
        }
        devices[id]->addStream(*part);
      }
    for (auto &device : devices)
      if (device)
        jobs.push_back(device.get());
    machine.processor.splits = count < pool.size();
  }

  void reportDeadlock() {
    DeadlockReport report;
    for (auto &device : devices)
      if (device)
        report.add(device->id, device->describeWait());
    if (std::string text = report.text(); !text.empty())
      machine.fail(std::move(text));
  }

  // In order of dependence: workers must stop before their data is destroyed.
  std::shared_ptr<const Artifact> artifact;
  Memory memory;
  KernelLibrary kernels;
  PackedWeights packed;
  Recorder recorder;
  Clock clock;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Job *> jobs; ///< the devices that there are
  std::vector<std::unique_ptr<LoadedPart>> parts;
  WorkerPool pool;
  Context context;
  Machine machine;
  const bool mayDropConstants;
};

} // namespace

Expected<std::unique_ptr<Executor>> openThreads(std::shared_ptr<const Artifact> artifact,
                                                const BackendOptions &options, const void *) {
  if (options.cores > kMaxCores)
    return Status::error(std::to_string(options.cores) + " cores; there are at most " +
                         std::to_string(kMaxCores) + " workers");
  Placement placement = place(requestOfProcess(options.cores, options.pins, 0, 1));
  if (placement.workers > kMaxCores)
    placement = place(requestOfProcess(kMaxCores, options.pins, 0, 1));
  auto executor =
      std::make_unique<ThreadsExecutor>(std::move(artifact), options, hold(std::move(placement)));
  TESSERA_RETURN_IF_ERROR(executor->open());
  return std::unique_ptr<Executor>(std::move(executor));
}

} // namespace tessera::runtime
