//===- ScalarRules.h - Derivatives of operations on scalars -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_SCALARRULES_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_SCALARRULES_H

#include "mlir/IR/Builders.h"

#include <functional>

namespace tessera::dist {

/// The view of one scalar operation of arith or math for its reverse.
struct ScalarReverse {
  mlir::Operation *op;
  /// One per result; null for zero.
  llvm::ArrayRef<mlir::Value> cotangents;
  /// A value of the forward computation, for use in the reverse.
  std::function<mlir::Value(mlir::Value)> primal;
  std::function<bool(unsigned)> wanted;
  /// Receives the cotangent of operand `index`. Not called for zero derivatives.
  std::function<void(unsigned, mlir::Value)> give;
};

/// Writes the reverse of an op at `b`. At a kink the derivative is one-sided: ties of max, min go
/// to a constant operand, else to the first operand; |x| and the like have 0 at
/// 0. Fails, silently, when the op has no rule.
mlir::LogicalResult reverseScalar(mlir::OpBuilder &b, const ScalarReverse &reverse);

/// x + y, where null is zero. Two halves of one select fold to the whole.
mlir::Value addScalars(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value y);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_SCALARRULES_H
