//===- StubBackend.cpp - The backend that emulates a GPU ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StubBackend.h"

#include "StubCollectives.h"

namespace tessera::runtime::gpu {

/// Records each operation after it is done, one track per device.
static void traceInto(GpuExecutor &executor, StubDriver &driver) {
  auto tracks = std::make_shared<std::vector<Track>>(executor.program().numDevices());
  auto last = std::make_shared<int64_t>(0);
  driver.finished = [&executor, tracks, last](const StubWork &work) {
    int64_t now = executor.clock.now();
    if (work.step)
      (*tracks)[work.device].add({work.step, work.what, *last, now});
    *last = now;
  };
  executor.trace = [&executor, tracks] {
    std::vector<const Track *> list;
    std::vector<std::string> names;
    for (size_t i = 0; i < tracks->size(); ++i) {
      list.push_back(&(*tracks)[i]);
      names.push_back("device " + std::to_string(i));
    }
    return runtime::traceJson(list, names, executor.program());
  };
}

Expected<std::unique_ptr<GpuExecutor>> makeStub(std::shared_ptr<const Artifact> artifact,
                                                const BackendOptions &options, bool inProcess,
                                                const PlantedFaults &faults,
                                                const PlanOptions &plan) {
  auto driver = std::make_unique<StubDriver>(options.scheduleSeed);
  StubDriver &stub = *driver;
  if (options.precision == "high")
    stub.useTf32();
  stub.multiplyAsHost(artifact->program);
  ExecutorOptions made;
  made.driver = std::move(driver);
  if (!inProcess)
    made.engine = std::make_unique<StubCollectives>(stub);
  made.faults = faults;
  made.plan = plan;
  made.messages = !inProcess;
  auto executor = std::make_unique<GpuExecutor>(std::move(artifact), std::move(made));
  TESSERA_RETURN_IF_ERROR(executor->open());
  if (options.trace)
    traceInto(*executor, stub);
  return executor;
}

Expected<std::unique_ptr<Executor>> openStub(std::shared_ptr<const Artifact> artifact,
                                             const BackendOptions &options, const void *) {
  auto made = makeStub(std::move(artifact), options, false);
  if (!made)
    return made.status();
  return std::unique_ptr<Executor>(std::move(*made));
}

} // namespace tessera::runtime::gpu
