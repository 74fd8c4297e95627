//===- StubKernels.h - Run kernels without a GPU ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_STUBKERNELS_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_STUBKERNELS_H

#include "../Driver.h"
#include "Emulator.h"

#include <functional>

namespace tessera::runtime::gpu {

/// Runs the launches of an artifact on the host: the grid launches of its GPU kernels in the
/// emulator, or, for an artifact compiled for the CPU, the CPU kernel as one operation.
class StubKernels {
public:
  /// `seed` chooses the order in which blocks and threads run, `precisionIsHigh` which launches
  /// of a kernel do.
  Status open(const Artifact &artifact, uint64_t seed, bool precisionIsHigh);
  int64_t workspaceBytes() const;

  struct Operation {
    std::function<Status()> run;
    std::vector<Touch> touches; ///< empty: all of the step's slots
  };
  /// The operations of a launch step, in order. `slots` are the pointers of its slots.
  std::vector<Operation> operations(const LaunchStep &step, const std::vector<void *> &slots,
                                    std::byte *workspace) const;

private:
  const Artifact *artifact = nullptr;
  KernelLibrary host;
  StubKernelLibrary emulated;
  LaunchOrder order;
  bool tf32 = false;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_STUBKERNELS_H
