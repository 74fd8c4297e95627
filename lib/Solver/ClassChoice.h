//===- ClassChoice.h - One strategy for all nodes of a class -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_CLASSCHOICE_H
#define TESSERA_LIB_SOLVER_CLASSCHOICE_H

#include "Folded.h"

namespace tessera::solver {

/// Choices in which all nodes of a class take the same strategy. It begins with the first one each.
class ClassChoice {
public:
  explicit ClassChoice(const Folded &folded);

  /// By class, the position of what is chosen.
  const std::vector<Index> &position() const { return chosen; }
  double cost() const { return best; }

  /// Takes a choice (positions by class) if it is better.
  void consider(std::vector<Index> position);
  /// Chooses the best of what is offered to each class (positions, not empty), if it is better than
  /// what is chosen. Returns false when that would take more work than `mostWork`: then it is not
  /// looked at.
  bool choose(const std::vector<Domain> &offers, double mostWork);
  /// Offers strategies whose excess, of one node of the class, is within a limit that grows,
  /// from a part of the bound, as long as the work is not too much, up to the distance from
  /// `bound`, or until what is chosen costs at most `goodGap` (relative) more than that.
  void chooseWithin(const std::vector<std::vector<double>> &excess, double bound, double firstLimit,
                    double goodGap, double mostWork, const Deadline &deadline);
  /// One coordinate after the other is chosen anew, slowest first, the others being as they are.
  void sweepAxes(double mostWork);

private:
  double costOf(const std::vector<Index> &position) const;

  const Folded &folded;
  std::vector<Index> chosen;
  double best;
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_CLASSCHOICE_H
