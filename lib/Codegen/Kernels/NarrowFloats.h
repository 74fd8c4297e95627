//===- NarrowFloats.h - Conversions of 16-bit floats ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_NARROWFLOATS_H
#define TESSERA_LIB_CODEGEN_KERNELS_NARROWFLOATS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace tessera::codegen {

/// On an arith.truncf to bf16: a NaN it reads has zeros in its lower half.
inline constexpr llvm::StringLiteral kKeepsNaNAttr = "kernel.keeps_nan";

/// Makes every operation of f16 and bf16 one of f32, rounded. `contract` on an arith.truncf says
/// that its rounding changes nothing. `zeroExtendsNaN` is the target's (MathTarget).
mlir::LogicalResult computeInF32(mlir::ModuleOp module, bool zeroExtendsNaN);

/// Rounds f32 to bf16 in integers, and f64 to 16 bits through an f32 that is rounded to odd, since
/// a compiler's library may lack what LLVM would call. With `f16`, f16 to f32 and back are written
/// in integers, too: for CPUs without an instruction.
void populateNarrowFloatPatterns(mlir::RewritePatternSet &patterns, bool f16);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_NARROWFLOATS_H
