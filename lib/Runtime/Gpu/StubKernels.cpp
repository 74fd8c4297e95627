//===- StubKernels.cpp - Kernels without a GPU ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StubKernels.h"

namespace tessera::runtime::gpu {

Status StubKernels::open(const Artifact &loaded) {
  artifact = &loaded;
  return host.open(loaded.kernels, loaded.program.kernels);
}

Status StubKernels::run(const LaunchStep &step, void **slots, std::byte *) const {
  host.kernel(step.kernel)(slots, 0, step.tasks);
  return {};
}

} // namespace tessera::runtime::gpu
