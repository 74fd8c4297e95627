//===- Emulator.h - GPU kernels run by the CPU ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs grid launches of a "stub" image: blocks one after the other, the threads of a block as
// fibers of the calling CPU thread, switched at barriers and shuffles only. A block whose threads
// never wait is a plain loop.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_EMULATOR_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_EMULATOR_H

#include "tessera/Runtime/Artifact/GpuKernels.h"
#include "tessera/Runtime/Gpu/StubKernel.h"

#include "../../Execution/KernelLibrary.h"

#include <map>
#include <memory>

namespace tessera::runtime {

/// The "stub" images of a module, opened with dlopen for as long as this lives.
class StubKernelLibrary {
public:
  /// Opens every image of architecture "stub" and finds its symbols. Fails when there is none
  /// though some kernel launches, or with what the loader says.
  Status open(const GpuModule &module);
  /// Null when there is no such kernel.
  tessera_stub_kernel find(const std::string &symbol) const;

private:
  std::vector<std::unique_ptr<KernelLibrary>> opened;
  std::map<std::string, tessera_stub_kernel> kernels;
};

/// Runs one launch to its end. `pointers`: one for each of `launch.arguments`. Safe beside launches
/// on other CPU threads. Fails, naming block and thread, when some threads of a block wait at a
/// barrier (or lanes of a warp at a shuffle) that others never reach, and when a thread accesses
/// memory beyond an argument's bytes.
Status launch(const StubKernelLibrary &library, const GpuLaunch &launch, void *const *pointers);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_EMULATOR_H
