//===- KernelNest.h - A linalg op as a loop nest over addresses -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The vectorizer's view of a linalg.generic on static buffers: the stride of each operand in each
// loop. Operand o at iteration (i0, i1, ...) is element
//
//   base[o] + i0 * step[o][0] + i1 * step[o][1] + ...      of its buffer, counted from its offset.
//
// Matmul, convolution, pooling, softmax and transposes differ only in these numbers, so they
// share one planner and one emitter.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELNEST_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELNEST_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace tessera::codegen {

/// An operand's addresses, in elements.
struct NestOperand {
  mlir::OpOperand *operand = nullptr;
  mlir::Type element;
  bool scalar = false; ///< a value, not a buffer
  bool output = false;
  int64_t base = 0;
  int64_t span = 0;                ///< elements from its offset to the end of its accesses
  llvm::SmallVector<int64_t> step; ///< per loop
};

/// A loop.
struct NestLoop {
  int64_t extent = 1;
  /// The op's loops merged into this one, outermost first.
  llvm::SmallVector<unsigned> origins;
  /// Some output does not depend on it.
  bool reduction = false;
};

/// The form of an output.
struct NestOutput {
  unsigned operand = 0;
  bool accumulates =
      false;             ///< reduced over all reduction loops; otherwise written at each iteration
  bool readsOld = false; ///< the body uses the element's old value
  /// Set if the body combines the old value by a known associative operation.
  std::optional<mlir::vector::CombiningKind> kind;
};

struct Nest {
  /// A handle: MLIR's accessors are not const.
  mutable mlir::linalg::GenericOp op;
  llvm::SmallVector<NestLoop> loops;
  llvm::SmallVector<NestOperand> operands; ///< inputs, then outputs
  llvm::SmallVector<NestOutput> outputs;

  /// Derives the nest of `op`; fails with a reason if an address is not a linear function of the
  /// loops or its outputs reduce over different loops. `merge` drops unit loops and merges
  /// contiguous ones; otherwise loop i is the op's.
  static mlir::FailureOr<Nest> get(mlir::linalg::GenericOp op, std::string &reason,
                                   bool merge = true);

  bool hasReduction() const {
    return llvm::any_of(loops, [](const NestLoop &loop) { return loop.reduction; });
  }
};

/// The value that leaves every other unchanged under `kind`.
mlir::TypedAttr neutralElement(mlir::vector::CombiningKind kind, mlir::Type element);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELNEST_H
