//===- KernelTarget.h - The CPU that kernels are compiled for ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_KERNELTARGET_H
#define TESSERA_CODEGEN_CPU_KERNELTARGET_H

#include "tessera/Codegen/CPU/KernelCompiler.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>

namespace tessera::codegen {

/// A CPU and what code generation must know of it.
struct KernelTarget {
  std::string triple;
  std::string cpu;
  std::string features;               ///< LLVM's comma-separated list, sorted
  unsigned vectorBits = 128;          ///< width of the widest vector register worth using
  unsigned numRegisters = 16;         ///< vector registers
  bool fma = false;                   ///< a fused multiply-add instruction exists
  bool convertsF16InIntegers = false; ///< no instruction converts f16 to f32 and back
  bool zeroExtendsNaN = false;        ///< MathTarget's

  /// The target `options` ask for; an error message when LLVM does not know it.
  static mlir::FailureOr<KernelTarget> get(const CpuOptions &options, std::string &error);

  /// Elements of `bits` bits in a vector register, at least 1.
  int64_t lanes(unsigned bits) const { return std::max<int64_t>(1, vectorBits / bits); }
  /// A machine for one module: not shared between threads.
  std::unique_ptr<llvm::TargetMachine> createMachine() const;
  /// All that distinguishes objects for this target from others.
  std::string key() const { return triple + "|" + cpu + "|" + features; }
};

/// How much LLVM's optimiser has left to do.
enum class OptimiseLevel {
  Explicit, ///< loops are in vectors already: clean up and schedule
  Full,     ///< scalar loops: the whole of O2 with LLVM's loop vectoriser
};

/// Optimises `module` and emits an object file for `target`.
mlir::FailureOr<std::string> emitObject(llvm::Module &module, const KernelTarget &target,
                                        OptimiseLevel level);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CPU_KERNELTARGET_H
