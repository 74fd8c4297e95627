//===- StubPrograms.h - Programs opened on the stub -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_GPU_STUBPROGRAMS_H
#define TESSERA_UNITTESTS_RUNTIME_GPU_STUBPROGRAMS_H

#include "Reference.h"

#include "Gpu/Stub/StubBackend.h"

namespace tessera::runtime {

/// Opens the program, with kernels of TEST_KERNELS (four tasks each), on the stub; null, with a
/// failed test, if it is not valid. `inProcess`: with devices in one process as for `vdev`,
/// otherwise as for `cuda`.
inline std::unique_ptr<gpu::GpuExecutor> openOnStub(const Program &program, uint64_t scheduleSeed,
                                                    bool inProcess,
                                                    const gpu::PlantedFaults &faults = {}) {
  auto artifact = std::make_shared<Artifact>();
  artifact->program = program;
  artifact->kernels = {kernelsForTests(program.kernels.size(), /*tasks=*/4)};
  Status status = verify(artifact->program, 0);
  EXPECT_TRUE(status.ok()) << status.message();
  BackendOptions options;
  options.scheduleSeed = scheduleSeed;
  auto executor = gpu::makeStub(artifact, options, inProcess, faults);
  EXPECT_TRUE(executor) << executor.message();
  return executor ? std::move(*executor) : nullptr;
}

/// Whether the message contains one of the texts.
inline bool says(const Status &status, std::initializer_list<const char *> any) {
  for (const char *text : any)
    if (status.message().find(text) != std::string::npos)
      return true;
  return false;
}

/// Runs with the fault planted in one of `devices` devices at a time, over `seeds` schedules; each
/// run must fail with one of the texts. `open`: like `openOnStub`, for one program.
template <typename Open>
void expectFound(int64_t gpu::PlantedFaults::*fault, int64_t devices, uint64_t seeds,
                 std::initializer_list<const char *> texts, Open open) {
  for (int64_t device = 0; device < devices; ++device)
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      gpu::PlantedFaults faults;
      faults.*fault = device;
      Status status = open(seed, /*inProcess=*/false, faults)->run();
      ASSERT_FALSE(status.ok()) << "device " << device << ", seed " << seed;
      EXPECT_TRUE(says(status, texts)) << status.message();
    }
}

} // namespace tessera::runtime

#endif // TESSERA_UNITTESTS_RUNTIME_GPU_STUBPROGRAMS_H
