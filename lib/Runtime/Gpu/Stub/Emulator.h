//===- Emulator.h - GPU kernels run by the CPU ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs grid launches of a "stub" image: blocks sequentially, the threads of a block as fibers of
// the calling CPU thread, which switch only at barriers and warp instructions. A block whose
// threads never wait is a plain loop.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_EMULATOR_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_EMULATOR_H

#include "tessera/Runtime/Artifact/GpuKernels.h"
#include "tessera/Runtime/Gpu/StubKernel.h"

#include "../../Execution/KernelLibrary.h"
#include "Warpgroups.h"

#include <map>
#include <memory>

namespace tessera::runtime {

/// The "stub" images of a module, opened with dlopen during its lifetime.
class StubKernelLibrary {
public:
  /// Opens every image of architecture "stub" and finds its symbols. Fails with the loader's error,
  /// or if there is no image but a kernel with launches.
  Status open(const GpuModule &module);
  /// Null if there is no such kernel.
  tessera_stub_kernel find(const std::string &symbol) const;

private:
  std::vector<std::unique_ptr<KernelLibrary>> opened;
  std::map<std::string, tessera_stub_kernel> kernels;
};

/// The order in which a launch runs its blocks, the warps of a block up to the next barrier, and
/// the lanes of a warp up to the next warp instruction. A GPU promises none, so a result that
/// depends on it lacks a barrier, or reads what another block of the launch writes.
struct LaunchOrder {
  enum class Kind { ascending, descending, shuffled };
  Kind kind = Kind::ascending;
  uint64_t seed = 0;        ///< of `shuffled`; each launch and seed has one order
  int64_t dropBarrier = -1; ///< a planted fault: threads pass their n-th barrier without waiting
  /// A planted fault: words 1 and 2 of the left operands of matrix products are exchanged, as if
  /// the kernel had another layout of fragments.
  bool exchangeWords = false;
  /// A planted fault of products of warpgroups.
  WarpgroupFault warpgroupFault = WarpgroupFault::none;
  /// Find races (AccessCheck.h), in code that reports its accesses (GpuOptions::reportAccesses).
  bool checkAccesses = false;
};
std::string toString(const LaunchOrder &order);

/// Runs one launch to completion. `pointers`: one for each of `launch.arguments`. Safe concurrently
/// with launches on other CPU threads. Fails, with block and thread in the message, if some threads
/// of a block wait at a barrier (or lanes of a warp at a shuffle) that others never reach, or if a
/// thread accesses memory beyond the bytes of an argument, or several elements at once at an
/// address that is not aligned, or if its accesses are checked and race with another thread's, or
/// if a product of warpgroups breaks a rule (Warpgroups.h).
Status launch(const StubKernelLibrary &library, const GpuLaunch &launch, void *const *pointers,
              const LaunchOrder &order = {});

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_EMULATOR_H
