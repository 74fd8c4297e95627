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

/// On an arith.truncf to bf16: a NaN operand has zeros in its lower half.
inline constexpr llvm::StringLiteral kKeepsNaNAttr = "kernel.keeps_nan";

/// Converts every operation of f16 and bf16 to f32, with a rounding. `contract` on an arith.truncf
/// marks a rounding that is the identity. `zeroExtendsNaN` is the target's (MathTarget). `inPairs`:
/// additions, subtractions and multiplications stay as they are, since the target has them.
mlir::LogicalResult computeInF32(mlir::ModuleOp module, bool zeroExtendsNaN, bool inPairs);

/// Extends bf16 in integers, and rounds f64 to 16 bits through an f32 that is rounded to odd, since
/// the compiler's library may lack the functions that LLVM would call. With `f16`, also converts
/// f16 to f32 and back in integers, and with `bf16` rounds f32 to bf16, for targets without an
/// instruction.
void populateNarrowFloatPatterns(mlir::RewritePatternSet &patterns, bool f16, bool bf16);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_NARROWFLOATS_H
