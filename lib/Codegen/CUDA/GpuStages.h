//===- GpuStages.h - The stages of one GPU kernel's compilation -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel in a module of its own goes through
//
//   prepareKernel         of Kernels/KernelStages.h
//   putParallelLoopsFirst    sums are the innermost loops
//   chooseInPadding, splitArgMax    one op for padding, two for the greatest and its place
//   fuseKernel            of Kernels/KernelStages.h
//   splitReductions       long reductions to few results in two stages
//   aimAtDestinations, bufferizeKernel    of Kernels/KernelStages.h
//   chooseInBranches      branches that only compute and look up become choices
//   splitIntoLaunches     ops on buffers become launches: scheme, grid, the work of a thread
//   expandKernelMath, expandGpuMath    functions without an instruction, written out
//   lowerLaunches         LLVM and NVVM dialects; what a GPU has no instruction for is refused
//
// and the module of launches then becomes, for each architecture,
//
//   emitPtx, assemble     PTX by LLVM's NVPTX, a cubin by NVIDIA's assembler
//   emitStub              the same functions for the CPU: indices, barriers, shuffles by a table
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUSTAGES_H
#define TESSERA_CODEGEN_CUDA_GPUSTAGES_H

#include "../Kernels/KernelStages.h"
#include "GpuAssembler.h"
#include "GpuLimits.h"
#include "tessera/Codegen/CUDA/GpuCompiler.h"

#include "llvm/IR/Module.h"

namespace tessera::codegen {

/// Everything that a kernel's text becomes, but for the stub's link.
struct GpuUnit {
  runtime::GpuKernel kernel;
  /// By place in GpuOptions::archs: a cubin, PTX, or an object file for the stub.
  std::vector<std::string> code;
  GpuKernelInfo info;
  std::string error;

  std::vector<std::string> symbols() const;
};

/// Orders the loops of generics, sums innermost. The kernel is on tensors.
void putParallelLoopsFirst(mlir::func::FuncOp kernel);

/// Makes one op of a fill and what is put into it. The kernel is on tensors.
void chooseInPadding(mlir::func::FuncOp kernel);

/// Makes two reductions of an op that keeps the greatest (or least) element and its place.
void splitArgMax(mlir::func::FuncOp kernel);

/// Cuts reductions to few results in two stages. The kernel is on tensors.
void splitReductions(mlir::func::FuncOp kernel);

/// Turns branches of bodies that only compute and look up into choices. The kernel is on memrefs.
void chooseInBranches(mlir::func::FuncOp kernel);

/// Of a perfect nest of loops those whose iterations touch different elements, by depth.
llvm::SmallVector<unsigned> independentLoops(mlir::Operation *nest);
/// Makes these loops of the nest one iteration each, the one that `number` counts row-major;
/// returns how many there are. `number` and what is created stand in front of the nest.
int64_t spreadLoops(mlir::Operation *nest, llvm::ArrayRef<unsigned> independent, mlir::Value number,
                    mlir::OpBuilder &b);

/// A dimension of everything that a nest writes, in which each iteration touches one place.
struct OwnedDimension {
  mlir::Value place;
  int64_t extent = 0;
};
/// The one that the nest has, if any: its iterations may then be done by the owners of places.
std::optional<OwnedDimension> ownedDimension(mlir::Operation *nest);
/// Has the body around `owned.place` done only by the owner of the place: number `owner` of
/// `owners`, which have equal shares. What is created outside of the body stands at `b`.
void keepOwned(const OwnedDimension &owned, mlir::Value owner, int64_t owners, mlir::OpBuilder &b);

/// Splits the kernel, a function on memrefs, into launches: functions of `launches` called `symbol`
/// and a number. Adds to `result` and `info`. `mayAlias[i]`: argument i may share its buffer with
/// another one. With `schemes` false there is one launch of one thread.
mlir::LogicalResult splitIntoLaunches(mlir::func::FuncOp kernel, mlir::ModuleOp launches,
                                      llvm::StringRef symbol, llvm::ArrayRef<bool> mayAlias,
                                      bool schemes, const GpuLaunchLimits &limits,
                                      runtime::GpuKernel &result, GpuKernelInfo &info);

/// Ops that have no instruction on a GPU, expanded: functions of f64, powers.
mlir::LogicalResult expandGpuMath(mlir::ModuleOp launches);

/// Lowers the launches to kernels in the LLVM and NVVM dialects.
mlir::LogicalResult lowerLaunches(mlir::ModuleOp launches);

/// The launches as PTX text for "sm_NN" or "compute_NN". Fails with the reason in `error`.
mlir::FailureOr<std::string> emitPtx(mlir::ModuleOp launches, llvm::StringRef arch,
                                     std::string &error);

/// A cubin from PTX. `usage` gets what the assembler says of each launch, by symbol; `milliseconds`
/// grows by the time that processes of its own spent on a processor.
mlir::FailureOr<std::string> assemble(const Assembler &assembler, const std::string &ptx,
                                      llvm::StringRef arch, std::map<std::string, GpuUsage> &usage,
                                      double &milliseconds, std::string &error);

/// The launches as an object file for this CPU, after StubKernel.h; `launches` is changed.
/// `argumentBytes` are those of each launch's arguments, by symbol: accesses beyond them are
/// reported.
mlir::FailureOr<std::string>
emitStub(mlir::ModuleOp launches, const std::map<std::string, std::vector<int64_t>> &argumentBytes,
         std::string &error);
/// The object that every stub image has once: version and binding.
mlir::FailureOr<std::string> emitStubRuntime(std::string &error);

/// Whether `arch` is one of the forms of GpuOptions::archs.
bool isArchitecture(llvm::StringRef arch);
/// Whether LLVM has code for an architecture other than the stub; says in `error` that it has none.
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
