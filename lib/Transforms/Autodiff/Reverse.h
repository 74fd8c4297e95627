//===- Reverse.h - The reverse sweep over cotangents ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_REVERSE_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_REVERSE_H

#include "Activity.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace tessera::dist {

/// Reverse mode: visits the ops of a block from last to first and emits, at `b`, the cotangents of
/// their operands from those of their results. A cotangent has its value's type; a value with k
/// uses needs k - 1 additions, an unused one has no cotangent.
class Reverse {
public:
  Reverse(mlir::OpBuilder &b, Activity &activity) : b(b), activity(activity) {}
  ~Reverse();

  /// Appends the reverse of a block, after the cotangents of its results have been added. Fails
  /// with a located error at an op without a derivative.
  mlir::LogicalResult sweep(mlir::Block &block);
  mlir::LogicalResult sweep(llvm::ArrayRef<mlir::Operation *> ops);

  bool isActive(mlir::Value value) const { return activity.isActive(value); }
  /// Adds to the cotangent of a value, if the value is active.
  void add(mlir::Value value, mlir::Value cotangent);
  /// Adds to the part of a value's cotangent that an extract_slice reads.
  void addSlice(mlir::tensor::ExtractSliceOp slice, mlir::Value cotangent);
  /// Removes and returns the cotangent of a value; null for zero.
  mlir::Value take(mlir::Value value);
  mlir::Value takeOrZeros(mlir::Value value);
  /// Sets the cotangent of a value.
  void set(mlir::Value value, mlir::Value cotangent);

  /// Removes a replaced op from its block. It is freed with the Reverse, since the address of a
  /// freed value could be reused.
  void retire(mlir::Operation *op);

  mlir::OpBuilder &b;
  Activity &activity;
  /// Values whose cotangents are written once per part, on zeros.
  llvm::DenseSet<mlir::Value> writtenOnce;

private:
  mlir::LogicalResult reverseOp(mlir::Operation *op);
  mlir::Value joinSlices(mlir::Value value, llvm::ArrayRef<mlir::tensor::ExtractSliceOp> slices,
                         llvm::ArrayRef<mlir::Value> parts);

  struct Cotangent {
    mlir::Value whole; ///< null for zero
    /// Slices at static offsets, which `take` assembles.
    llvm::SmallVector<mlir::tensor::ExtractSliceOp> slices;
    llvm::SmallVector<mlir::Value> parts;
  };
  llvm::DenseMap<mlir::Value, Cotangent> cotangents; // looked up, never iterated
  llvm::SmallVector<mlir::Operation *> retired;
};

//===----------------------------------------------------------------------===//
// The reverse of one op, by theme. `cotangents` has one entry per result, null for zero; at least
// one is not null.
//===----------------------------------------------------------------------===//

mlir::LogicalResult reverseLinalg(Reverse &reverse, mlir::linalg::LinalgOp op,
                                  llvm::ArrayRef<mlir::Value> cotangents);
mlir::LogicalResult reverseSoftmax(Reverse &reverse, mlir::linalg::SoftmaxOp op,
                                   mlir::Value cotangent);
mlir::LogicalResult reverseTensor(Reverse &reverse, mlir::Operation *op, mlir::Value cotangent);
mlir::LogicalResult reverseLoop(Reverse &reverse, mlir::scf::ForOp loop,
                                llvm::ArrayRef<mlir::Value> cotangents);
mlir::LogicalResult reverseBranch(Reverse &reverse, mlir::scf::IfOp branch,
                                  llvm::ArrayRef<mlir::Value> cotangents);
/// The ext dialect.
mlir::LogicalResult reverseScan(Reverse &reverse, ext::ScanOp op,
                                llvm::ArrayRef<mlir::Value> cotangents);
mlir::LogicalResult reverseSort(Reverse &reverse, ext::SortOp op,
                                llvm::ArrayRef<mlir::Value> cotangents);
/// Ops of the dist dialect, and calls with a derivative of their own.
mlir::LogicalResult reverseDist(Reverse &reverse, mlir::Operation *op,
                                llvm::ArrayRef<mlir::Value> cotangents);

/// `value`, resharded to the mesh of `other` if that is known to be another one.
mlir::Value onMeshOf(mlir::OpBuilder &b, mlir::Value value, mlir::Value other);

/// The error at an op without a derivative.
mlir::LogicalResult noDerivative(mlir::Operation *op, const llvm::Twine &why);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_REVERSE_H
