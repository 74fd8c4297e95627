//===- CudaBackend.h - The backends for GPUs --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_CUDABACKEND_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_CUDABACKEND_H

#include "tessera/Runtime/Execution/Executor.h"

namespace tessera::runtime::gpu {

/// Backend::open of `vdev`: all devices on one GPU, in one process.
Expected<std::unique_ptr<Executor>> openVdev(std::shared_ptr<const Artifact> artifact,
                                             const BackendOptions &options, const void *userData);
/// Backend::open of `cuda`: one process per GPU, of a job started by a launcher.
Expected<std::unique_ptr<Executor>> openCuda(std::shared_ptr<const Artifact> artifact,
                                             const BackendOptions &options, const void *userData);

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_CUDABACKEND_H
