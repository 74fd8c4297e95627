//===- Gemm.h - Contractions as matrix products -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_GEMM_H
#define TESSERA_PLANNING_GEMM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>
#include <optional>

namespace tessera::dist {

/// A contraction as `gemm` steps over dense row-major operands: A, B, C are the contraction's
/// operands 0, 1 and its output, or 1, 0 and its output if `swapped`. All distances are in
/// elements.
struct GemmForm {
  bool swapped = false;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transA = false, transB = false;
  std::array<int64_t, 3> ld = {1, 1, 1};     ///< leading dimensions of A, B, C
  std::array<int64_t, 3> stride = {0, 0, 0}; ///< distances between batches; 0 repeats an operand
  /// Start offsets of A, B, C per step; one entry if one batch stride describes all batches.
  std::vector<std::array<int64_t, 3>> starts = {{0, 0, 0}};
};

/// Whether a body is yield(out + a * b), in any order of operands; a and b may be extended.
bool isMultiplyAdd(mlir::Block &body);

/// Whether an op reduces a combination of two tensors of static shapes into a third.
bool reducesTwoTensors(mlir::linalg::LinalgOp op);

/// Whether an op multiplies and adds two tensors of an element type that the gemm interface
/// supports (f64, f32, f16, bf16 and integers of at least 8 bits; C may be f32 for 16-bit floats),
/// with projected permutations as maps, at least one reduction, and a loop that only one of the two
/// has.
bool isGemmLike(mlir::linalg::LinalgOp op);

/// The operands that a contraction of different float types must extend to its result's type to
/// become gemm-like. None if it already is gemm-like, is too small to be worth a copy, or cannot
/// become gemm-like.
std::array<bool, 2> widenedOperands(mlir::linalg::LinalgOp op);

/// The form of a contraction with the given maps (of its operands A, B and of C) over loops of
/// these extents; empty if the layouts do not allow it without a copy.
std::optional<GemmForm> matchGemm(llvm::ArrayRef<mlir::AffineMap> maps,
                                  llvm::ArrayRef<int64_t> extents);

/// The same for an op; empty also if it is not gemm-like.
std::optional<GemmForm> matchGemm(mlir::linalg::LinalgOp op);

/// The loops of each dimension of A, B and C.
using GemmLoops = std::array<llvm::SmallVector<unsigned>, 3>;

/// The loops of a contraction that copies turn into a gemm: rows of batch, m, k; of batch, k, n; of
/// batch, m, n for the copied operands. The choice copies the fewest elements; empty if there is
/// none.
std::optional<GemmLoops> packGemm(const GemmLoops &loops, llvm::ArrayRef<int64_t> extents,
                                  mlir::MLIRContext *context);

/// Whether a contraction that is not a gemm is worth a copy of its operands; one with few
/// multiplications becomes a kernel.
bool isWorthPacking(llvm::ArrayRef<int64_t> extents);

/// Whether A and B are copied into rows for the contraction itself, without the ops that reorder
/// them.
std::array<bool, 2> packedOperands(mlir::linalg::LinalgOp op);

/// The loops that are the results of a map.
llvm::SmallVector<unsigned> gemmLoopsOf(mlir::AffineMap map);

/// Whether the columns of every row of C are contiguous and rows are a multiple of n apart, so that
/// element i of the result is in column i mod n: required for a bias along the columns.
bool hasWholeRows(const GemmForm &form);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_GEMM_H
