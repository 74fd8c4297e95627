//===- KernelPasses.td - Passes on modules of kernels ------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_KERNELPASSES
#define TESSERA_CODEGEN_KERNELPASSES

include "mlir/Pass/PassBase.td"

def TesseraCompileKernels : Pass<"tessera-compile-kernels", "::mlir::ModuleOp"> {
  let summary = "Compile kernels for the CPU and print the scheme of each";
  let description = [{
    Compiles a module of kernels for one CPU. The module is unchanged; the code is discarded. Prints a line for each kernel
    on standard output.
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", "\"native\"", "LLVM CPU name">,
    Option<"features", "features", "std::string", "", "LLVM CPU features">,
    Option<"vectorise", "vectorise", "bool", "true", "false: plain loops only">,
    Option<"printLLVM", "print-llvm", "bool", "false", "print the optimized LLVM IR">,
    Option<"printLoops", "print-loops", "bool", "false", "print the kernel as loops">,
  ];
}

/// The options of the GPU compiler that both passes below have.
class GpuKernelsPass<string name> : Pass<name, "::mlir::ModuleOp"> {
  list<Option> compilerOptions = [
    Option<"schemes", "schemes", "bool", "true", "false: one thread per kernel">,
    Option<"byDigits", "by-digits", "bool", "false", "sort lines of more than a tile by digits, however short">,
    Option<"warpgroups", "warpgroups", "bool", "false", "multiply by warpgroups (wgmma), for sm_90a alone">,
    Option<"wideIndices", "wide-indices", "bool", "false", "64-bit indices, as for 2^31 iterations or more">,
  ];
}

def TesseraCompileGpuKernels : GpuKernelsPass<"tessera-compile-gpu-kernels"> {
  let summary = "Compile kernels for GPUs and print the launches of each";
  let description = [{
    Compiles the kernels of a module for GPUs. The module is unchanged; the code is discarded unless `save-code` names a
    directory. Prints the launches of each kernel on standard output, with their scheme, grid and bytes.
  }];
  let options = compilerOptions # [
    ListOption<"archs", "arch", "std::string", "architectures: sm_NN, compute_NN, stub">,
    Option<"ptxas", "ptxas", "std::string", "", "NVIDIA's assembler: ptxas or libnvJitLink.so">,
    Option<"printPtx", "print-ptx", "bool", "false", "print the PTX">,
    Option<"printLoops", "print-loops", "bool", "false", "print the launches as loops">,
    Option<"printAccesses", "print-accesses", "bool", "false", "print the accesses of less than 16 bytes, and why">,
    Option<"saveCode", "save-code", "std::string", "", "write the code of every kernel to this directory">,
    Option<"printTime", "print-time", "bool", "false", "print the time each kernel took">,
  ];
}

def TesseraCheckGpuKernels : GpuKernelsPass<"tessera-check-gpu-kernels"> {
  let summary = "Compare kernels compiled for the CPU and for an emulated GPU on random inputs";
  let description = [{
    Runs every kernel of a module on random inputs, compiled for the CPU and for an emulated GPU, and compares the contents
    of their destinations, also if these overwrite what the kernel reads. Some options plant faults, for tests.
  }];
  let options = compilerOptions # [
    Option<"seed", "seed", "int64_t", "0", "seed of the random inputs">,
    Option<"orders", "orders", "bool", "true", "run blocks, warps and lanes in reversed and shuffled orders, too">,
    Option<"races", "races", "bool", "true",
           "reject accesses of several threads of a launch to the same bytes, at least one of them a write, that no barrier "
           "orders">,
    Option<"quiet", "quiet", "bool", "false", "print no line for equal kernels">,
    Option<"dropBarrier", "drop-barrier", "int64_t", "-1",
           "a planted fault: threads pass their n-th barrier without waiting">,
    Option<"overwrite", "overwrite", "bool", "false",
           "a planted fault: results overwrite inputs of their types, even those that the kernel reads later">,
    Option<"overlapWorkspace", "overlap-workspace", "bool", "false",
           "a planted fault: all temporaries of a kernel begin at the same byte of its workspace">,
    Option<"exchangeWords", "exchange-words", "bool", "false",
           "a planted fault: two words of the left operand of each matrix product are exchanged">,
    Option<"misalign", "misalign", "int64_t", "0",
           "a planted fault: buffers begin at this many bytes after an aligned address">,
    Option<"warpgroupFault", "warpgroup-fault", "std::string", "\"none\"",
           "a planted fault of products of warpgroups: swizzle, offset, stride, fence, proxy, wait">,
  ];
}

#endif // TESSERA_CODEGEN_KERNELPASSES
