//===- StubKernels.cpp - Run kernels without a GPU ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StubKernels.h"

#include "../../Execution/BlockLaunch.h"

#include <algorithm>

namespace tessera::runtime::gpu {

/// Seed 0 is the order of a loop.
static LaunchOrder orderOf(uint64_t seed) {
  using Kind = LaunchOrder::Kind;
  return {seed == 0 ? Kind::ascending : seed % 2 ? Kind::descending : Kind::shuffled, seed};
}

Status StubKernels::open(const Artifact &loaded, uint64_t seed, bool precisionIsHigh) {
  artifact = &loaded;
  tf32 = precisionIsHigh;
  order = orderOf(seed);
  if (!loaded.gpu.empty())
    return emulated.open(loaded.gpu);
  return host.open(loaded.kernels, loaded.program.kernels);
}

int64_t StubKernels::workspaceBytes() const {
  int64_t most = 0;
  for (const GpuKernel &kernel : artifact->gpu.kernels)
    most = std::max(most, kernel.workspaceBytes);
  return most;
}

std::vector<StubKernels::Operation> StubKernels::operations(const LaunchStep &step,
                                                            const std::vector<void *> &slots,
                                                            std::byte *workspace) const {
  std::vector<Operation> result;
  if (artifact->gpu.empty()) {
    BlockLaunch blocks(artifact->program, step, host.kernel(step.kernel), host.tasks(step.kernel),
                       slots);
    result.push_back({[blocks] {
                        for (int64_t block = 0; block < blocks.size(); ++block)
                          blocks.run(block);
                        return Status();
                      },
                      {}});
    return result;
  }
  for (const GpuLaunch &each : artifact->gpu.kernels[step.kernel].launches) {
    if (!each.runs(tf32))
      continue;
    Operation operation;
    std::vector<void *> pointers;
    for (const GpuArgument &argument : each.arguments) {
      auto *base = argument.slot < 0 ? workspace : static_cast<std::byte *>(slots[argument.slot]);
      pointers.push_back(base + argument.offset);
      operation.touches.push_back({base + argument.offset, argument.bytes, argument.writes});
    }
    operation.run = [this, &each, pointers]() -> Status {
      for (size_t i = 0; i < pointers.size(); ++i) // what the compiler assumes of all arguments
        if (reinterpret_cast<uintptr_t>(pointers[i]) % kAlignment != 0)
          return Status::error("kernel '" + each.symbol + "': argument " + std::to_string(i) +
                               " is not at a multiple of " + std::to_string(kAlignment) + " bytes");
      return runtime::launch(emulated, each, pointers.data(), order);
    };
    result.push_back(std::move(operation));
  }
  return result;
}

} // namespace tessera::runtime::gpu
