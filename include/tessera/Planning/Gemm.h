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

/// A contraction as steps `gemm` over dense row-major operands: A, B, C are the contraction's
/// operands 0, 1 and its output, or 1, 0 and its output when `swapped`. All in elements.
struct GemmForm {
  bool swapped = false;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transA = false, transB = false;
  std::array<int64_t, 3> ld = {1, 1, 1};     ///< leading dimensions of A, B, C
  std::array<int64_t, 3> stride = {0, 0, 0}; ///< distances of batches; 0 repeats an operand
  /// Where A, B, C of each step begin: one entry when one batch stride says it all.
  std::vector<std::array<int64_t, 3>> starts = {{0, 0, 0}};
};

/// Whether a body is yield(out + a * b), in any order of operands; a and b may be extended.
bool isMultiplyAdd(mlir::Block &body);

/// Whether an op sums something of two tensors of static shapes into a third.
bool reducesTwoTensors(mlir::linalg::LinalgOp op);

/// Whether an op multiplies and adds two tensors of an element type that the gemm interface has
/// (f64, f32, f16, bf16 and integers of at least 8 bits; C may be f32 for 16-bit floats), with
/// projected permutations as maps, at least one reduction, and a loop that only one of the two has.
bool isGemmLike(mlir::linalg::LinalgOp op);

/// Which operands a contraction of different floats extends to the type of its result to become
/// gemm-like: none where it is that already, is too small to be worth a copy, or never becomes it.
std::array<bool, 2> widenedOperands(mlir::linalg::LinalgOp op);

/// The form of a contraction with the given maps (those of its operands A, B and of C) over loops
/// of these extents; empty when the layouts do not allow it without a copy.
std::optional<GemmForm> matchGemm(llvm::ArrayRef<mlir::AffineMap> maps,
                                  llvm::ArrayRef<int64_t> extents);

/// The same of a contraction; empty also when it is not gemm-like.
std::optional<GemmForm> matchGemm(mlir::linalg::LinalgOp op);

/// The loops of each dimension of A, B and C.
using GemmLoops = std::array<llvm::SmallVector<unsigned>, 3>;

/// The loops of a contraction that is made a gemm by copies: rows of batch, m, k; of batch, k, n;
/// of batch, m, n for the operands that are copied. Of all choices the one that copies fewest
/// elements; empty when there is none.
std::optional<GemmLoops> packGemm(const GemmLoops &loops, llvm::ArrayRef<int64_t> extents,
                                  mlir::MLIRContext *context);

/// Whether a contraction that is no gemm is worth a copy of its operands: of few multiplications it
/// is a kernel.
bool isWorthPacking(llvm::ArrayRef<int64_t> extents);

/// Whether A and B are copied into rows for a contraction as it is, without what reorders them.
std::array<bool, 2> packedOperands(mlir::linalg::LinalgOp op);

/// The loops that a map's results are.
llvm::SmallVector<unsigned> gemmLoopsOf(mlir::AffineMap map);

/// Whether the columns of every row of C are contiguous, one row a multiple of n behind another, so
/// that element i of the result is in column i mod n: what a bias along the columns needs.
bool hasWholeRows(const GemmForm &form);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_GEMM_H
