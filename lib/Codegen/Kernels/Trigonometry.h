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

/// Sine (`shift` 0) or cosine (1) of `x` in radians, in f64: `f` builds f64. NaN for infinities and
/// NaN. If `x` was f32 the result is correct to f32's last place, for any magnitude; otherwise its
/// error is about 1e-16, relative to 1.
mlir::Value sine(ElementBuilder &f, mlir::Value x, int64_t shift, bool wasF32);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_TRIGONOMETRY_H
