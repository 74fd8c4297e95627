//===- KernelCompiler.h - Tensor kernels to a shared object -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel becomes `void name(void **args, int64_t begin, int64_t end)` in an ELF shared object.
// `args` are the data pointers in argument order: row-major, dense, aligned to 64 bytes, with one
// byte per `i1` element (0 or 1) and eight per `index`. [begin, end) is a range of the kernel's
// tasks (`KernelInfo::tasks`): disjoint ranges may run on different threads at once, and all of
// [0, tasks) must run. A kernel of one task runs whole on (0, 1).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_KERNELCOMPILER_H
#define TESSERA_CODEGEN_CPU_KERNELCOMPILER_H

#include "tessera/Codegen/Kernels/Kernel.h"
#include "tessera/Runtime/Artifact/CpuKernels.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::codegen {

/// Options of the kernel compiler. The defaults are for this machine.
struct CpuOptions {
  /// LLVM's name of an x86-64 or AArch64 CPU, "aarch64" for any AArch64 one; empty, "native" or
  /// "host": this machine's. Of its features those of tessera::kernelFeatures are used.
  std::string cpu;
  /// Features after LLVM's `-mattr`, "+avx2,-fma"; used only with a named `cpu`.
  std::string features;
  /// False: use the plain scheme for everything (for tests and bisection).
  bool vectorise = true;
  /// Threads that compile; 0: one per core.
  unsigned threads = 0;
  /// Use the cache of objects.
  bool useCache = true;
  /// Its folder; empty: $XDG_CACHE_HOME/tessera, else ~/.cache/tessera.
  std::string cacheDirectory;
  /// Limit on its size; the oldest entries are removed first.
  uint64_t cacheLimitBytes = uint64_t(256) << 20;
  /// The linker; empty: ld.lld-22 or ld.lld on the PATH or in LLVM's bin directory.
  std::string linker;
  /// Fill `KernelInfo::llvmIR` (disables the cache).
  bool keepLLVMIR = false;
  /// Fill `KernelInfo::loopIR`: the kernel on buffers, before it becomes LLVM (disables the cache).
  bool keepLoopIR = false;
};

/// Identifies all of the options' target that code depends on: equal texts mean equal code. Empty if
/// the CPU is unknown.
std::string targetKey(const CpuOptions &options);
/// Empty if kernels can be compiled for CPU `name` (CpuOptions::cpu); else an error message.
std::string checkCpu(const std::string &name);

/// The scheme by which a kernel was compiled.
enum class KernelScheme {
  Vectorised, ///< fused, tiled, every hot loop in vectors unless `reason` names exceptions
  Fallback,   ///< plain loops; `reason` says why not vectorized
};

/// The result of compiling one kernel.
struct KernelInfo {
  std::string name;
  std::string cpu; ///< that it was compiled for
  KernelScheme scheme = KernelScheme::Fallback;
  /// Why it is a fallback, or the ops of a vectorized kernel that are scalar; else empty.
  std::string reason;
  /// Tasks that [begin, end) may be split into; at least 1.
  int64_t tasks = 1;
  /// Bytes of temporary buffers inside the kernel, on its stack and on the heap.
  int64_t stackBytes = 0, heapBytes = 0;
  /// Whether the object came from the cache.
  bool cached = false;
  std::string llvmIR; ///< with CpuOptions::keepLLVMIR, after optimization
  std::string loopIR; ///< with CpuOptions::keepLoopIR
};

/// Compiles every function of `kernels` for one CPU and links them. `infos`, if not null, gets one
/// entry per function, in order. The result depends only on `kernels` and
/// `options`, not on threads or the cache. Fails with located diagnostics on a function that breaks
/// the contract of Kernels/Kernel.h, on ops outside the listed dialects, or when there is no
/// linker. `kernels` is not changed.
mlir::FailureOr<runtime::CpuKernels> compileKernels(mlir::ModuleOp kernels,
                                                    const CpuOptions &options,
                                                    std::vector<KernelInfo> *infos = nullptr);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CPU_KERNELCOMPILER_H
