//===- GpuFormula.h - Functions of f64 by formulas --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUFORMULA_H
#define TESSERA_CODEGEN_CUDA_GPUFORMULA_H

#include "../../Kernels/ElementBuilder.h"

namespace tessera::codegen {

/// Mathematical functions in f64 arithmetic on scalars or vectors. Sine and cosine are in
/// Trigonometry.h.
class Formula : public ElementBuilder {
public:
  using ElementBuilder::ElementBuilder;

  // GpuFormula.cpp: exponential and logarithm by argument reduction and a series, and functions
  // composed of these two
  mlir::Value exp(mlir::Value x);
  mlir::Value exp2(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value sinh(mlir::Value x);
  mlir::Value cosh(mlir::Value x);
  mlir::Value asinh(mlir::Value x);
  mlir::Value acosh(mlir::Value x);
  mlir::Value atanh(mlir::Value x);
  mlir::Value cbrt(mlir::Value x);
  mlir::Value pow(mlir::Value x, mlir::Value y);

  // GpuAngles.cpp: inverse trigonometric functions and the error function
  mlir::Value atan(mlir::Value x);
  mlir::Value atan2(mlir::Value y, mlir::Value x);
  mlir::Value cosineOf(mlir::Value x);
  mlir::Value erf(mlir::Value x, bool complement);

private:
  /// A number as the sum of two, where the second is below the last digit of the first (T. Dekker,
  /// "A Floating-Point Technique for Extending the Available Precision", 1971).
  struct Pair {
    mlir::Value high, low;
  };
  Pair sum(mlir::Value x, mlir::Value y);
  Pair product(Pair x, Pair y);
  Pair logPair(mlir::Value x);
  std::pair<mlir::Value, mlir::Value> split(mlir::Value x);
  mlir::Value complementaryError(mlir::Value a);
  mlir::Value within(mlir::Value x, double low, double high);
  mlir::Value scaled(mlir::Value r, mlir::Value k);
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUFORMULA_H
