//===- KernelTarget.h - The target CPU of kernels ---------------*- C++ -*-===//
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

/// A CPU and its properties for code generation.
struct KernelTarget {
  std::string triple;
  std::string cpu;                    ///< LLVM's name; only its schedule is used
  std::string architecture;           ///< as of tessera::hostArchitecture
  std::string baseline;               ///< LLVM's CPU that has only the architecture's baseline
  std::vector<std::string> required;  ///< features beyond it
  unsigned vectorBits = 128;          ///< width of the widest vector register worth using
  unsigned numRegisters = 16;         ///< vector registers
  bool fma = false;                   ///< a fused multiply-add instruction exists
  bool convertsF16InIntegers = false; ///< no instruction converts f16 to f32 and back
  bool zeroExtendsNaN = false;        ///< MathTarget's

  /// The target of `options`; an error message if LLVM does not support it.
  static mlir::FailureOr<KernelTarget> get(const CpuOptions &options, std::string &error);

  /// Whether this machine's architecture is another one.
  bool isForeign() const;
  /// Elements of `bits` bits in a vector register, at least 1.
  int64_t lanes(unsigned bits) const { return std::max<int64_t>(1, vectorBits / bits); }
  /// A machine for one module: not shared between threads.
  std::unique_ptr<llvm::TargetMachine> createMachine() const;
  /// The part of the cache key that identifies this target.
  std::string key() const { return triple + "|" + cpu + "|" + features(); }
  /// `required` in LLVM's form, "+avx,+avx2".
  std::string features() const;
};

/// The pipeline of LLVM's optimizer.
enum class OptimiseLevel {
  Explicit, ///< vectorized loops: clean up and schedule
  Full,     ///< scalar loops: the whole of O2 with LLVM's loop vectorizer
};

/// Optimizes `module` and emits an object file for `target`.
mlir::FailureOr<std::string> emitObject(llvm::Module &module, const KernelTarget &target,
                                        OptimiseLevel level);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CPU_KERNELTARGET_H
