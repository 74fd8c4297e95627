//===- NarrowFloats.h - Conversions of 16-bit floats ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_NARROWFLOATS_H
#define TESSERA_LIB_CODEGEN_KERNELS_NARROWFLOATS_H

#include "mlir/IR/PatternMatch.h"

namespace tessera::codegen {

/// Rounds f32 to bf16 in integers, and f64 to 16 bits through an f32 that is rounded to odd, since
/// a compiler's library may lack what LLVM would call. With `f16`, f16 to f32 and back are written
/// in integers, too: for CPUs without an instruction.
void populateNarrowFloatPatterns(mlir::RewritePatternSet &patterns, bool f16);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_NARROWFLOATS_H
