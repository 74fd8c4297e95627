//===- StubBackend.h - The backend that emulates a GPU ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_STUBBACKEND_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_STUBBACKEND_H

#include "../Executor.h"

namespace tessera::runtime::gpu {

/// An executor whose GPU is host memory. `inProcess`: performs collectives and transfers between
/// meshes like `vdev` instead of like `cuda`.
Expected<std::unique_ptr<GpuExecutor>> makeStub(std::shared_ptr<const Artifact> artifact,
                                                const BackendOptions &options, bool inProcess,
                                                const PlantedFaults &faults = {},
                                                const PlanOptions &plan = {});

Expected<std::unique_ptr<Executor>> openStub(std::shared_ptr<const Artifact> artifact,
                                             const BackendOptions &options, const void *userData);

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_STUBBACKEND_H
