//===- Contract.h - Contractions of strided operands ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction is a matrix product whose rows, columns and summed index are groups
// of loops: the offset of an element of A is the sum of the offsets of its row and
// of its position in the sum. The sums run over packed panels of one operand and
// elements of the other in place ("implicit gemm": no matrix of windows is
// written).
//
// D. Matthews, "High-Performance Tensor Contraction without Transposition", 2018
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_EXECUTION_CONTRACT_H
#define TESSERA_RUNTIME_EXECUTION_CONTRACT_H

#include "tessera/Runtime/Artifact/Program.h"

namespace tessera::runtime {

/// A contract step as a product of matrices. C[row][column] = sum A[row][k] · B[k][column], for
/// each batch. All offsets are in elements.
class Contraction {
public:
  explicit Contraction(const ContractStep &step);

  /// Splits C into pieces for parallel computation and returns their number, at most `most`. No
  /// element depends on the number.
  int64_t split(int64_t most);
  /// Computes a piece on the calling thread. `a`, `b`, `c` are the slots of the step.
  void run(int64_t piece, const void *a, const void *b, float *c) const;

  /// The first and the last element of C, from its slot's start, that a piece may write.
  std::pair<int64_t, int64_t> writtenBy(int64_t piece) const;

  /// Multiplications, of all batches.
  double products() const;
  /// Elements of its tables.
  int64_t tableSize() const;

private:
  /// The offsets of a group of loops in two operands.
  struct Offsets {
    std::vector<int64_t> x, y;
    int64_t size() const { return static_cast<int64_t>(x.size()); }
  };
  /// The memory layout of columns that are packed together: runs of `piece` columns, which are 1 or
  /// 2 elements apart.
  struct StripKind {
    int8_t piece;
    bool isApart;
  };
  struct Block;
  /// Their offsets in A and in a packed panel.
  struct Summands {
    std::vector<int64_t> left, right;
  };
  /// Batches, rows and columns of a piece.
  struct Share {
    int64_t batchBegin, batchEnd, rowBegin, rowEnd, columnBegin, columnEnd;
  };
  Share shareOf(int64_t index) const;

  static Offsets offsetsOf(const std::vector<ContractLoop> &loops, int x, int y, int order);
  static double estimate(const std::vector<ContractLoop> &m, const std::vector<ContractLoop> &n,
                         const std::vector<ContractLoop> &k, int right, double share);
  static double keptShare(const ContractStep &step, int rowOperand);
  void classifyStrips();
  void skipPadding(const ContractStep &step);
  void findSummands(int64_t kBegin, int64_t kEnd, int64_t width, const Block &block,
                    std::vector<Summands> &found) const;
  void multiply(const Block &block) const;
  bool readsInPlace() const;
  void pack(const Block &block, int64_t kBegin, int64_t kEnd, float *packed) const;
  void write(const Block &block, const float *tile, int64_t row, int64_t column,
             bool accumulate) const;

  DType dtype;
  bool accumulate;
  bool swapped = false;                        ///< A of the product is the step's B
  std::vector<std::array<int64_t, 3>> batches; ///< offsets of A, B and C of each
  Offsets rows;                                ///< in A and C
  Offsets columns;                             ///< in B and C
  Offsets sums;                                ///< in A and B
  int64_t height = 1;                          ///< of a tile
  int64_t vectors = 1;                         ///< of a tile's width
  int64_t sumRun = 1;                          ///< contiguous summands of B
  std::vector<StripKind> strips;               ///< of all columns, panel by panel
  bool isInPlace = false;                      ///< columns are read where they lie
  std::vector<std::vector<uint8_t>> kept;      ///< distinct sets of summands, a flag for each
  std::vector<int64_t> keptOf; ///< the set of each tile of rows; empty: all have all
  int64_t byBatch = 1, byRows = 1, byColumns = 1;
};

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_EXECUTION_CONTRACT_H
