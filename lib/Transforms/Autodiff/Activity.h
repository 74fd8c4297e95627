//===- Activity.h - Values that take part in a derivative -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_ACTIVITY_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_ACTIVITY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::dist {

/// Whether a type carries derivatives: a float, or a tensor of floats.
bool isDifferentiable(mlir::Type type);

/// The float values that depend on `inputs` and on which `outputs` depend: only these have
/// cotangents. Values inside the bodies of linalg ops are ignored; values captured by such a body
/// count as operands.
class Activity {
public:
  Activity(mlir::func::FuncOp function, mlir::ValueRange inputs, mlir::ValueRange outputs);

  bool isActive(mlir::Value value) const {
    return dependent.contains(value) && useful.contains(value);
  }
  /// Copies the activity of an op's values to those of its clone.
  void copy(mlir::Operation *original, const mlir::IRMapping &copies);

private:
  llvm::DenseSet<mlir::Value> dependent, useful; // looked up, never iterated
};

/// The operands of an op and the values that its regions capture.
llvm::SmallVector<mlir::Value> valuesRead(mlir::Operation *op);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_ACTIVITY_H
