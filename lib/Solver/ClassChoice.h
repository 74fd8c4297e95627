//===- ClassChoice.h - One strategy for all nodes of a class ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_CLASSCHOICE_H
#define TESSERA_LIB_SOLVER_CLASSCHOICE_H

#include "Folded.h"

namespace tessera::solver {

/// Choices in which all nodes of a class take the same strategy, initially the first one.
class ClassChoice {
public:
  explicit ClassChoice(const Folded &folded);

  /// The chosen position in the domain, by class.
  const std::vector<Index> &position() const { return chosen; }
  double cost() const { return best; }

  /// Takes a choice (positions by class) if it is cheaper.
  void consider(std::vector<Index> position);
  /// Finds the best choice among the candidates of each class (positions, not empty) and takes it
  /// if it is cheaper. Returns false, without a search, if that needs more work than `mostWork`.
  bool choose(const std::vector<Domain> &candidates, double mostWork);
  /// Searches candidates whose excess (for one node of the class) is within a limit. The limit
  /// starts at a part of the bound and grows while the work allows it, up to the distance from
  /// `bound`, or until the choice costs at most `goodGap` (relative) more than the bound.
  void chooseWithin(const std::vector<std::vector<double>> &excess, double bound, double firstLimit,
                    double goodGap, double mostWork, const Deadline &deadline);
  /// Optimizes one coordinate at a time, slowest first, with the others fixed.
  void sweepAxes(double mostWork);

private:
  double costOf(const std::vector<Index> &position) const;

  const Folded &folded;
  std::vector<Index> chosen;
  double best;
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_CLASSCHOICE_H
