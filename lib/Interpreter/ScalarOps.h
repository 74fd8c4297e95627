//===- ScalarOps.h - arith and math on one element --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_INTERPRETER_SCALAROPS_H
#define TESSERA_LIB_INTERPRETER_SCALAROPS_H

#include "tessera/Interpreter/Tensor.h"

#include "mlir/IR/Operation.h"

#include <functional>

namespace tessera::interpreter {

/// Computes an `arith` or `math` op on one element of each operand. Returns null, or the reason why
/// there is no result, as the rest of a sentence.
using ScalarKernel = std::function<const char *(const Scalar *operands, Scalar *results)>;

/// The kernel of an op, from its name, attributes and element types; empty if the op or its element
/// types are not supported.
ScalarKernel getScalarKernel(mlir::Operation *op);
/// The kernels by dialect (ArithOps.cpp, MathOps.cpp).
ScalarKernel getArithKernel(mlir::Operation *op);
ScalarKernel getMathKernel(mlir::Operation *op);

/// The kernel of an `arith.addf` or `mulf` of 16-bit floats that is computed in f32.
ScalarKernel getWideKernel(mlir::Operation *op);

/// arith.maximumf and minimumf: propagate NaN, and -0 is less than 0.
double maximum(double a, double b);
double minimum(double a, double b);

/// Element type of a scalar or tensor type; empty if ElementType does not have it.
std::optional<ElementType> elementOf(mlir::Type type);

} // namespace tessera::interpreter

#endif // TESSERA_LIB_INTERPRETER_SCALAROPS_H
