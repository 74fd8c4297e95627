//===- BudgetSearch.h - Search under a memory budget ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The solvers add up memory over nodes; a peak is a sum at one time. So they get the
// live bytes at the worst time of the plan without a budget, then at the worst times
// of the plans that do not fit. Rematerialization makes every plan fit at a cost
// (Memory.h); the cheapest plan that fits wins.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_BUDGETSEARCH_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_BUDGETSEARCH_H

#include "tessera/Planning/LeastMemory.h"
#include "tessera/Planning/MemoryBound.h"

#include "tessera/Solver/Solver.h"
#include "tessera/Transforms/Search.h"

#include <set>

namespace tessera::dist {

/// The end of a message about a budget that no plan meets.
std::string textOf(const MemoryBound &bound);

class BudgetSearch {
public:
  BudgetSearch(mlir::func::FuncOp function, StrategyGraph &strategies,
               const PropagationGraph &graph, const SearchSettings &settings,
               std::chrono::steady_clock::time_point begin);

  /// The cheapest plan found within the budget, at most as expensive as `alone` if that fits. Its
  /// cost includes rematerialization. Otherwise the plan with the least memory.
  mlir::FailureOr<solver::Solution> run(const std::vector<int64_t> &alone);
  /// Whether no known plan takes less memory.
  bool isLeast() const { return tookLeast; }
  /// Valid until the next call with another plan.
  const PlanLiveness &livesOf(const std::vector<int64_t> &choice);
  /// The lower bound on the memory of all plans.
  const MemoryBound &bound();
  /// CPU time of the solvers so far.
  double solverCpuSeconds() const { return cpuSeconds; }
  /// "'name'" of an argument or result, or "a value of type '…'"; empty for -1.
  std::string nameOf(int64_t tensor) const;

private:
  mlir::FailureOr<solver::Solution> solve(double budget);
  /// Weights of live bytes at a time, by tensor: at its producer, and at its users.
  struct KeptWeights {
    std::vector<double> atHome, atPlace;
  };

  /// `sendsAgain`: the copy of a rematerialized argument is live only while it is read.
  KeptWeights keptAt(const PlanLiveness &lives, int64_t time, bool sendsAgain,
                     bool withHandedOn) const;
  void consider(const solver::Solution &solution);
  Peak considerLeast(const std::vector<int64_t> &choice);
  void reduceMemoryAtEqualCost(const solver::Solution &fast);
  void solveAtTimes(const solver::Solution &first, bool sendsAgain);
  void minimiseMemory(DescentEffort work);
  /// A plan of little memory for a budget below `bound`; does not depend on the budget.
  solver::Solution refuse(const std::vector<int64_t> &alone);
  double left() const;
  solver::Expected<solver::Solution> solve(const solver::Problem &problem,
                                           const solver::Options &options);

  mlir::func::FuncOp function;
  StrategyGraph &strategies;
  const PropagationGraph &graph;
  const SearchSettings &settings;
  double requested;
  std::chrono::steady_clock::time_point begin;
  std::optional<solver::Solution> best;  ///< within the budget, with its rematerialization
  std::optional<solver::Solution> least; ///< of least memory
  Peak leastPeak;
  std::optional<PlanLiveness> lives; ///< of the last visited plan
  std::vector<int64_t> livesChoice;
  std::optional<MemoryBound> proved;
  bool tookLeast = false;
  double cpuSeconds = 0;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_BUDGETSEARCH_H
