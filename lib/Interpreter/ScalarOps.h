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

/// What an `arith` or `math` op does to one element of each operand. Returns null, or the reason
/// why the result is not defined (a division by zero), as the rest of a sentence.
using ScalarKernel = std::function<const char *(const Scalar *operands, Scalar *results)>;

/// The kernel of an op, from its name, attributes and element types; empty for an op that is not
/// known, or of element types that it is not known for.
ScalarKernel getScalarKernel(mlir::Operation *op);
/// The two halves of it (ArithOps.cpp, MathOps.cpp).
ScalarKernel getArithKernel(mlir::Operation *op);
ScalarKernel getMathKernel(mlir::Operation *op);

/// Element type of a scalar or tensor type; nothing when it is not one of ElementType's.
std::optional<ElementType> elementOf(mlir::Type type);

} // namespace tessera::interpreter

#endif // TESSERA_LIB_INTERPRETER_SCALAROPS_H
