//===- KernelLibrary.h - The kernels section, opened ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_KERNELLIBRARY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_KERNELLIBRARY_H

#include "tessera/Runtime/Artifact/CpuKernels.h"

namespace tessera::runtime {

/// `void kernel(void **slots, int64_t begin, int64_t end)`.
using Kernel = void (*)(void **, int64_t, int64_t);

/// A shared object in memory, opened with dlopen for as long as this lives.
class KernelLibrary {
public:
  KernelLibrary() = default;
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;
  ~KernelLibrary();

  /// Opens the best of `variants` for this machine and finds every name. Errors name what the
  /// machine lacks, or have the loader's message, or the missing symbol.
  Status open(const std::vector<CpuKernels> &variants, const std::vector<std::string> &names);
  /// The same with a shared object for any CPU of this architecture.
  Status open(const Bytes &image, const std::vector<std::string> &names);
  Kernel kernel(int64_t index) const { return kernels[index]; }
  /// The kernel may be split into ranges of [0, tasks).
  int64_t tasks(int64_t index) const { return tasksOf[index]; }

private:
  // The loader identifies libraries by path: the descriptor stays open so that its path is not
  // reused.
  int descriptor = -1;
  void *library = nullptr;
  std::vector<Kernel> kernels;
  std::vector<int64_t> tasksOf;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_KERNELLIBRARY_H
