//===- Trigonometry.h - Sine and cosine of any argument ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_TRIGONOMETRY_H
#define TESSERA_LIB_CODEGEN_KERNELS_TRIGONOMETRY_H

#include "ElementBuilder.h"

namespace tessera::codegen {

/// Sine (`shift` 0) or cosine (1) of `x` in radians, in f64: `f` builds f64. NaN of what is not
/// finite. Of an `x` that was f32 the result is right to f32's last place, however large `x` is; of
/// others its error is some 1e-16, relative to 1.
mlir::Value sine(ElementBuilder &f, mlir::Value x, int64_t shift, bool wasF32);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_TRIGONOMETRY_H
