//===- GpuCompiler.h - Tensor kernels to GPU code ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the kernels that Kernels/Kernel.h defines (functions on static tensors in
// destination style) for GPUs: each becomes one or several grid launches over a workspace, and
// machine code for every architecture that is asked for. docs/gpu.md says how.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUCOMPILER_H
#define TESSERA_CODEGEN_CUDA_GPUCOMPILER_H

#include "tessera/Runtime/Artifact/GpuKernels.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera::codegen {

struct GpuOptions {
  /// "sm_NN" for a cubin (needs an assembler), "compute_NN" for PTX, "stub" for code that the CPU
  /// runs.
  std::vector<std::string> archs = {"sm_80", "sm_90a", "compute_80"};
  /// False: every kernel by the plain scheme of one thread (for tests and bisection).
  bool schemes = true;
  /// Indices of every launch in 64 bits, as if it had more than 2^31 iterations (for tests).
  bool wideIndices = false;
  /// NVIDIA's assembler, libnvJitLink.so or ptxas; empty: of CUDA_HOME, CUDA_PATH, a toolkit on the
  /// PATH or /usr/local/cuda, the library before the program; else the library the loader finds.
  std::string ptxas;
  /// Threads that compile; 0: one a core.
  unsigned threads = 0;
  /// Look for kernels compiled before, and keep new ones; as in CpuOptions.
  bool useCache = true;
  std::string cacheDirectory;
  uint64_t cacheLimitBytes = uint64_t(256) << 20;
  /// Of the stub's link; as in CpuOptions.
  std::string linker;
  /// Fill GpuKernelInfo::ptx (and leave the cache alone).
  bool keepPtx = false;
  /// Fill GpuKernelInfo::loopIR: the launches before they become LLVM (no cache either).
  bool keepLoopIR = false;
};

/// How a launch does its work.
enum class GpuScheme {
  pointwise,   ///< a thread for 16 bytes of every contiguous operand
  plain,       ///< a thread for some results, which walks the reduced loops
  rows,        ///< a team of threads for a row, which is kept in registers
  permute,     ///< tiles that change their order in shared memory
  attention,   ///< a block for a tile of queries or keys, scores in registers
  contraction, ///< a block for a tile of a product whose operands are read with strides
  loops,       ///< a thread an iteration, scalar, for bodies that have no vector form
  serial       ///< one thread
};
llvm::StringRef toString(GpuScheme scheme);

/// What an assembler says of one launch on one architecture.
struct GpuUsage {
  std::string arch;
  int64_t registers = 0;
  int64_t spillBytes = 0; ///< stores and loads of registers to memory
  int64_t stackBytes = 0;
};

struct GpuLaunchInfo {
  GpuScheme scheme = GpuScheme::serial;
  /// Bytes of kernel arguments and of workspace that the launch must move: each element that it
  /// accesses once, times the passes it makes over it.
  int64_t readBytes = 0, writtenBytes = 0;
  /// Iterations of the longest loop nest that one thread walks, one after the other.
  int64_t serialIterations = 1;
  /// Accesses to memory by less than 16 bytes, once each: what is accessed and why no wider.
  std::vector<std::string> narrow;
  std::vector<GpuUsage> usage;
};

struct GpuKernelInfo {
  std::string name;
  /// Why a better scheme was not possible for some op, else empty.
  std::string reason;
  std::vector<GpuLaunchInfo> launches;
  int64_t workspaceBytes = 0;
  /// Bytes of the kernel's own arguments: each input and output once.
  int64_t argumentBytes = 0;
  double milliseconds = 0; ///< of compilation, on one thread, all architectures
  /// Of these, what this thread and its assemblers spent on a processor.
  double cpuMilliseconds = 0;
  bool cached = false;
  std::string loopIR, ptx; ///< with the options of these names
};

/// Compiles every function of `kernels`; entry i of the result is function i. `infos`, when given,
/// gets one entry a function. The result depends only on `kernels` and `options`. Fails with
/// located diagnostics on a function that breaks the contract of Kernels/Kernel.h, on an
/// architecture of another form, and when the assembler or the linker is needed and not found.
mlir::FailureOr<runtime::GpuModule> compileGpuKernels(mlir::ModuleOp kernels,
                                                      const GpuOptions &options,
                                                      std::vector<GpuKernelInfo> *infos = nullptr);

/// Registers `--tessera-compile-gpu-kernels`, which compiles a module's kernels and prints what
/// became of each.
void registerCompileGpuKernelsPass();

/// Registers `--tessera-check-gpu-kernels`, which runs a module's kernels on the CPU and emulated,
/// and compares.
void registerCheckGpuKernelsPass();

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUCOMPILER_H
