//===- GpuCompiler.h - Tensor kernels to GPU code ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the kernels that Kernels/Kernel.h defines (functions on static tensors in destination
// style) for GPUs: each becomes one or several grid launches that share a workspace, with machine
// code for every requested architecture. docs/gpu.md describes the stages.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUCOMPILER_H
#define TESSERA_CODEGEN_CUDA_GPUCOMPILER_H

#include "tessera/Runtime/Artifact/GpuKernels.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera::codegen {

/// Options of the GPU compiler. The result depends on nothing else but the kernels.
struct GpuOptions {
  /// "sm_NN" for a cubin (needs an assembler), "compute_NN" for PTX, "stub" for code that runs on
  /// the CPU.
  std::vector<std::string> archs = {"sm_80", "sm_90a", "compute_80"};
  /// False: compile every kernel by the plain scheme of one thread (for tests and bisection).
  bool schemes = true;
  /// Use 64-bit indices in every launch, as if it had more than 2^31 iterations (for tests).
  bool wideIndices = false;
  /// Sort lines of more than a tile by digits, however short (for tests).
  bool byDigits = false;
  /// Multiply by warpgroups (wgmma) where a kernel gains from it. Every architecture must be sm_90a
  /// or compute_90a, which alone have the instruction, or the stub. Off unless asked for: no
  /// hardware has confirmed the kernels yet.
  bool warpgroups = false;
  /// Code for the stub reports every access of memory, so that the emulator can find races.
  bool reportAccesses = false;
  /// NVIDIA's assembler, libnvJitLink.so or ptxas. If empty, it is searched in CUDA_HOME,
  /// CUDA_PATH, a toolkit on the PATH and /usr/local/cuda, in each the library before the program;
  /// then the loader searches for the library.
  std::string ptxas;
  /// Threads that compile; 0: one per core.
  unsigned threads = 0;
  /// Use the cache of compiled kernels; as in CpuOptions.
  bool useCache = true;
  std::string cacheDirectory;
  uint64_t cacheLimitBytes = uint64_t(256) << 20;
  /// The linker for the stub; as in CpuOptions.
  std::string linker;
  /// Fill GpuKernelInfo::ptx (disables the cache).
  bool keepPtx = false;
  /// Fill GpuKernelInfo::loopIR: the launches before they become LLVM (disables the cache).
  bool keepLoopIR = false;
};

/// The code generation scheme of a launch.
enum class GpuScheme {
  pointwise,   ///< one thread per 16 bytes of every contiguous operand
  plain,       ///< one thread per few results, which iterates over the reduced loops
  rows,        ///< a team of threads per row, which stays in registers
  permute,     ///< tiles that are transposed in shared memory
  attention,   ///< a block per tile of queries or keys, scores in registers
  contraction, ///< a block per tile of a product with strided operands
  scan,        ///< a team of threads per line, which holds a chunk of it in registers
  sort,        ///< a block per tile of words that is sorted or merged in shared memory
  scatter,     ///< a block per range of rows, which performs the updates of its rows in order
  loops,       ///< a thread per iteration, scalar, for bodies without a vector form
  serial       ///< one thread
};
llvm::StringRef toString(GpuScheme scheme);

/// The assembler's report on one launch for one architecture.
struct GpuUsage {
  std::string arch;
  int64_t registers = 0;
  int64_t spillBytes = 0; ///< register spill stores and loads
  int64_t stackBytes = 0;
};

/// How one launch was compiled, for `--kernels`, tests and benchmarks.
struct GpuLaunchInfo {
  GpuScheme scheme = GpuScheme::serial;
  /// Whether the launch runs in place of others where TF32 is enabled.
  bool tf32 = false;
  /// Bytes of kernel arguments and workspace that the launch must move: each accessed element once
  /// per pass over it.
  int64_t readBytes = 0, writtenBytes = 0;
  /// Iterations of the longest loop nest that one thread runs sequentially.
  int64_t serialIterations = 1;
  /// Memory accesses narrower than 16 bytes, once each: what is accessed and the reason.
  std::vector<std::string> narrow;
  std::vector<GpuUsage> usage;
};

/// How one kernel was compiled.
struct GpuKernelInfo {
  std::string name;
  /// Why some op did not get a better scheme, else empty.
  std::string reason;
  std::vector<GpuLaunchInfo> launches;
  int64_t workspaceBytes = 0;
  /// Bytes of the kernel's own arguments: each input and output once.
  int64_t argumentBytes = 0;
  double milliseconds = 0; ///< of compilation, on one thread, all architectures
  /// The CPU time of this thread and of its assembler processes in that.
  double cpuMilliseconds = 0;
  bool cached = false;
  std::string loopIR, ptx; ///< with the options of these names
};

/// Compiles every function of `kernels`; entry i of the result is function i. `infos`, if not null,
/// gets one entry per function. The result depends only on `kernels` and `options`. Fails with
/// located diagnostics on a function that breaks the contract of Kernels/Kernel.h, on an invalid
/// architecture, or if the required assembler or linker is not found.
mlir::FailureOr<runtime::GpuModule> compileGpuKernels(mlir::ModuleOp kernels,
                                                      const GpuOptions &options,
                                                      std::vector<GpuKernelInfo> *infos = nullptr);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUCOMPILER_H
