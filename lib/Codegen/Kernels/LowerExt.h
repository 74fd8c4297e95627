//===- LowerExt.h - Lower scans and sorts to loops and nests ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_LOWEREXT_H
#define TESSERA_LIB_CODEGEN_KERNELS_LOWEREXT_H

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tessera::codegen {

/// Replaces scans and sorts by groups with loops, for one core. With `parallel` they stay ops,
/// which become kernels, and their operands are in memory.
void lowerExtOps(mlir::func::FuncOp function, bool parallel);

/// A tensor as `outer` x `extent` x `inner` elements, with the op's dimension in the middle.
struct Lines {
  int64_t outer = 1, extent = 1, inner = 1;

  Lines(llvm::ArrayRef<int64_t> shape, unsigned dim);
  llvm::SmallVector<int64_t> shape() const { return {outer, extent, inner}; }
  /// The tensor in three dimensions, and a result back in those of `like`.
  static mlir::Value collapse(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                              unsigned dim);
  static mlir::Value expand(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lines,
                            mlir::RankedTensorType like, unsigned dim);
};

/// Builds scalar code and loops with carries.
struct LoopWriter {
  mlir::OpBuilder &b;
  mlir::Location loc;
  using Values = llvm::SmallVector<mlir::Value>;

  mlir::Value index(int64_t value);
  mlir::Value constant(mlir::Type type, int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y); ///< signed
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value empty(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value read(mlir::Value tensor, mlir::ValueRange at);
  mlir::Value write(mlir::Value tensor, mlir::ValueRange at, mlir::Value element);
  Values readAll(mlir::ValueRange tensors, mlir::ValueRange at);
  /// `lanes` elements of the last dimension, which are inside of the tensor.
  mlir::Value readVector(mlir::Value tensor, mlir::ValueRange at, int64_t lanes);
  mlir::Value writeVector(mlir::Value tensor, mlir::ValueRange at, mlir::Value vector);
  /// for (i = from; i < to; i += step); `body` gets i and the carries, and returns the next
  /// carries.
  Values loop(mlir::Value from, mlir::Value to, mlir::Value step, mlir::ValueRange carried,
              llvm::function_ref<Values(LoopWriter, mlir::Value, Values)> body);
  /// A nest with all loops parallel; `body` gets the indices and returns an element each.
  Values nest(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<mlir::Type> elements,
              llvm::function_ref<Values(LoopWriter, Values)> body);
};

void lowerScan(mlir::OpBuilder &b, ext::ScanOp op);
void lowerSort(mlir::OpBuilder &b, ext::SortOp op);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_LOWEREXT_H
