//===- GpuStages.h - The stages of one GPU kernel's compilation -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each kernel, in a module of its own, goes through
//
//   prepareKernel         of Kernels/KernelStages.h
//   putParallelLoopsFirst    sums are the innermost loops
//   chooseInPadding, splitArgMax    one op for padding, two for an argmax
//   fuseKernel            of Kernels/KernelStages.h
//   splitReductions       long reductions to few results in two stages
//   aimAtDestinations, bufferizeKernel    of Kernels/KernelStages.h
//   chooseInBranches      branches that only compute and load become selects
//   splitIntoLaunches     ops on buffers become launches: scheme, grid, code of one thread
//   expandKernelMath, expandGpuMath    functions without an instruction, expanded
//   lowerLaunches         LLVM and NVVM dialects; rejects functions without an instruction
//
// The module of launches then becomes, for each architecture,
//
//   emitPtx, assemble     PTX by LLVM's NVPTX backend, a cubin by NVIDIA's assembler
//   emitStub              the same functions for the CPU; a table has indices, barriers, shuffles
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUSTAGES_H
#define TESSERA_CODEGEN_CUDA_GPUSTAGES_H

#include "../Kernels/KernelStages.h"
#include "Assemble/GpuAssembler.h"
#include "GpuLimits.h"
#include "tessera/Codegen/CUDA/GpuCompiler.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/IR/Module.h"

namespace tessera::codegen {

/// The results of compiling one kernel's text, except for the link of the stub.
struct GpuUnit {
  runtime::GpuKernel kernel;
  /// By index in GpuOptions::archs: a cubin, PTX, or an object file for the stub.
  std::vector<std::string> code;
  GpuKernelInfo info;
  std::string error;

  std::vector<std::string> symbols() const;
};

/// Orders the loops of generics, sums innermost. The kernel is on tensors.
void putParallelLoopsFirst(mlir::func::FuncOp kernel);

/// Combines a fill and the insertion of a source into one op. The kernel is on tensors.
void chooseInPadding(mlir::func::FuncOp kernel);

/// Splits an op that keeps the greatest (or least) element and its index into two reductions.
void splitArgMax(mlir::func::FuncOp kernel);

/// Makes the elements of sums of all elements that are computed from indices ops of their own. The
/// kernel is on tensors.
void separateIndexedSums(mlir::func::FuncOp kernel);

/// Splits reductions with few results into two stages. The kernel is on tensors.
void splitReductions(mlir::func::FuncOp kernel);

/// Turns branches of bodies that only compute and load into selects. The kernel is on memrefs.
void chooseInBranches(mlir::func::FuncOp kernel);

/// The loops of a perfect nest with constant bounds, outermost first; empty if it is not one.
llvm::SmallVector<mlir::scf::ForOp> perfectNest(mlir::Operation *op);
/// The depths of the loops in a perfect nest whose iterations access different elements.
llvm::SmallVector<unsigned> independentLoops(mlir::Operation *nest);
/// Restricts these loops of the nest to one iteration each, the one that `number` counts row-major;
/// returns the number of iterations. `number` and the new ops are placed before the nest.
int64_t spreadLoops(mlir::Operation *nest, llvm::ArrayRef<unsigned> independent, mlir::Value number,
                    mlir::OpBuilder &b);

/// A dimension of all buffers that a nest writes, such that each iteration accesses one index
/// `place` of it.
struct OwnedDimension {
  mlir::Value place;
  int64_t extent = 0;
};
/// The nest's dimension of this kind, if any. Owners of its indices can then run the iterations.
std::optional<OwnedDimension> ownedDimension(mlir::Operation *nest);
/// Guards the body around `owned.place`, so that only the owner of the index runs it: number
/// `owner` of `owners`, which have equal shares. Ops outside the body are created at `b`.
void keepOwned(const OwnedDimension &owned, mlir::Value owner, int64_t owners, mlir::OpBuilder &b);

/// Splits the kernel, a function on memrefs, into launches: functions in `launches` with `symbol`
/// and a number as names. Adds to `result` and `info`. `mayAlias[i]`: argument i may share its
/// buffer with another one. If `schemes` is false, there is one launch of one thread.
mlir::LogicalResult splitIntoLaunches(mlir::func::FuncOp kernel, mlir::ModuleOp launches,
                                      llvm::StringRef symbol, llvm::ArrayRef<bool> mayAlias,
                                      bool schemes, const GpuLaunchLimits &limits,
                                      runtime::GpuKernel &result, GpuKernelInfo &info);

/// Expands ops without a GPU instruction: functions of f64, powers.
mlir::LogicalResult expandGpuMath(mlir::ModuleOp launches);

/// Lowers the launches to kernels in the LLVM and NVVM dialects.
mlir::LogicalResult lowerLaunches(mlir::ModuleOp launches);

/// Compiles the launches to PTX text for "sm_NN" or "compute_NN". Fails with the reason in `error`.
mlir::FailureOr<std::string> emitPtx(mlir::ModuleOp launches, llvm::StringRef arch,
                                     std::string &error);

/// Assembles PTX to a cubin. `usage` gets the assembler's report on each launch, by symbol;
/// `milliseconds` grows by the CPU time of child processes.
mlir::FailureOr<std::string> assemble(const Assembler &assembler, const std::string &ptx,
                                      llvm::StringRef arch, std::map<std::string, GpuUsage> &usage,
                                      double &milliseconds, std::string &error);

/// Compiles the launches to an object file for this CPU, as StubKernel.h defines it; changes
/// `launches`. `argumentBytes` has the sizes of each launch's arguments, by symbol: accesses beyond
/// them are reported, all accesses if `reportAccesses`.
mlir::FailureOr<std::string>
emitStub(mlir::ModuleOp launches, const std::map<std::string, std::vector<int64_t>> &argumentBytes,
         bool reportAccesses, std::string &error);
/// The object that every stub image contains once: version and binding.
mlir::FailureOr<std::string> emitStubRuntime(std::string &error);

/// Whether `arch` has a form that GpuOptions::archs allows.
bool isArchitecture(llvm::StringRef arch);
/// Whether LLVM supports an architecture other than the stub; sets `error` if it does not.
bool isKnownChip(llvm::StringRef arch, std::string &error);
inline bool isStub(llvm::StringRef arch) {
  return arch == "stub";
}
inline bool isPtx(llvm::StringRef arch) {
  return arch.starts_with("compute_");
}

/// Runs the stages on the kernel in `text`.
mlir::LogicalResult compileGpuText(mlir::MLIRContext &context, llvm::StringRef text,
                                   llvm::StringRef symbol, const GpuOptions &options,
                                   const Assembler &assembler, GpuUnit &unit);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSTAGES_H
