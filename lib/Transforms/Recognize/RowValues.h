//===- RowValues.h - Numerical values of a row's formulas -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derivatives of a softmax have more spellings than patterns can list. Two formulas
// of elements are the same function if they agree on random operands (J. Schwartz,
// "Fast Probabilistic Algorithms for Verification of Polynomial Identities", JACM
// 27(4), 1980): so formulas are computed, in double precision, for one row of scores
// with a few keys. Sums over keys are over those few. What does not depend on scores
// and has no exact value in this precision, such as the bits of a dropout, is an
// operand, drawn where it becomes a flag or meets a score.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RECOGNIZE_ROWVALUES_H
#define TESSERA_LIB_TRANSFORMS_RECOGNIZE_ROWVALUES_H

#include "ElementExpressions.h"

#include <random>

namespace tessera::dist {

/// A value and its derivative by the product at the same key.
struct Dual {
  double value = 0, slope = 0;
};

/// The values of formulas at some keys of one row.
class RowValues {
public:
  using Row = llvm::SmallVector<Dual, 8>;

  /// Draws indices and elements; `key` is the loop over keys.
  RowValues(const ElementExpressions &all, const Loops &loops, unsigned key, unsigned seed);

  /// By key; nothing if a formula has an unsupported op. Conversions between floats are exact. A
  /// sum over keys has no derivative.
  std::optional<Row> of(int node);
  size_t numKeys() const { return positions.front().size(); }

private:
  std::optional<Row> compute(int node);
  std::optional<Row> apply(const ElementExpressions::Node &own);
  bool isOfScores(int node);
  std::optional<Row> reduce(mlir::Operation *combiner, const Row &inner, double start) const;
  Row draw(int node);

  const ElementExpressions &all;
  unsigned key;
  std::mt19937 random;
  /// By loop and key: the iteration.
  std::vector<llvm::SmallVector<int64_t, 8>> positions;
  llvm::DenseMap<int, std::optional<Row>> known; ///< looked up only
  llvm::DenseMap<int, bool> ofScores;            ///< looked up only
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_ROWVALUES_H
