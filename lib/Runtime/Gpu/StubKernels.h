//===- StubKernels.h - Kernels without a GPU --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUBKERNELS_H
#define TESSERA_LIB_RUNTIME_GPU_STUBKERNELS_H

#include "../KernelLibrary.h"
#include "tessera/Runtime/Artifact.h"

namespace tessera::runtime::gpu {

/// Runs the launches of an artifact on the host: those of its GPU kernels, or, where it was
/// compiled for the CPU, that kernel as one operation.
class StubKernels {
public:
  Status open(const Artifact &artifact);
  /// `slots` are the pointers of the step's slots.
  Status run(const LaunchStep &step, void **slots, std::byte *workspace) const;

private:
  const Artifact *artifact = nullptr;
  KernelLibrary host;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_STUBKERNELS_H
