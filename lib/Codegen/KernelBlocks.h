//===- KernelBlocks.h - A kernel as calls for blocks of rows ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel whose ops all run in parallel along the leading dimension of an argument
// computes a block of that dimension from the same block of its other arguments. The
// kernel of a block is the same text with smaller types.
//
//   %s = add %c[8x16], %bias[16]    2 blocks    %s = add %c[4x16], %bias[16]
//   %m = max %s over dimension 1                %m = max %s over dimension 1
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELBLOCKS_H
#define TESSERA_LIB_CODEGEN_KERNELBLOCKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::codegen {

class KernelBlocks {
public:
  explicit KernelBlocks(mlir::func::FuncOp kernel) : kernel(kernel) {}

  /// Follows the leading dimension of the arguments through the kernel. Whether every result is
  /// computed by blocks, from operands that are contiguous blocks, or whole.
  bool analyse(llvm::ArrayRef<unsigned> arguments);
  /// The number of blocks for which those of argument `index` have about `wanted` bytes; 1 if none
  /// has an eighth to eight times as many.
  int64_t choose(unsigned index, int64_t wanted);
  /// Which arguments are cut.
  llvm::SmallVector<bool> cut();
  /// The kernel of a block, outside of any module.
  mlir::func::FuncOp build(int64_t blocks);

private:
  bool mark(mlir::Value value, unsigned dim);
  bool visit(mlir::Operation *op);
  bool visitLinalg(mlir::linalg::LinalgOp op);
  bool visitReshape(mlir::Value source, mlir::Value result,
                    llvm::ArrayRef<mlir::ReassociationIndices> groups, bool expands);
  bool visitSlice(mlir::Operation *op, mlir::Value whole, mlir::Value part);
  bool isConsistent(mlir::Operation *op) const;
  mlir::Type blockOf(mlir::Value value, int64_t blocks) const;

  mlir::func::FuncOp kernel;
  llvm::DenseMap<mlir::Value, unsigned> dims;        ///< the dimension that is cut
  llvm::DenseMap<mlir::Operation *, unsigned> loops; ///< of linalg ops: the loop that is cut
  int64_t repeated = 0; ///< iterations of ops that do not depend on the block
  bool changed = false;
};

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELBLOCKS_H
