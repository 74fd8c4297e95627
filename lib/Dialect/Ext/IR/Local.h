//===- Local.h - Write ops of the local view --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_EXT_IR_LOCAL_H
#define TESSERA_LIB_DIALECT_EXT_IR_LOCAL_H

#include "tessera/Sharding/Layout.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace tessera::ext {

/// Builds common ops on the part of a device.
struct Local {
  mlir::OpBuilder &b;
  mlir::Location loc;

  /// A generic over `shape` with all loops parallel. `body` gets the elements of the inputs and
  /// returns one for each of `elements`.
  llvm::SmallVector<mlir::Value> pointwise(
      mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps, llvm::ArrayRef<int64_t> shape,
      llvm::ArrayRef<mlir::Type> elements,
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange)> body);
  /// `count` elements of a dimension from `offset`, which may be a value.
  mlir::Value slice(mlir::Value tensor, unsigned dim, mlir::OpFoldResult offset, int64_t count);
  mlir::Value index(int64_t value);
  /// A tensor with zeros where `begin` + i along `dim` is negative or not less than `extent`.
  mlir::Value zeroOutside(mlir::Value tensor, unsigned dim, mlir::Value begin, int64_t extent);
  /// A tensor of i1: whether iteration `begin` + i along `dim` is less than `extent`.
  mlir::Value isInside(llvm::ArrayRef<int64_t> shape, unsigned dim, mlir::Value begin,
                       int64_t extent);
};

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_LOCAL_H
