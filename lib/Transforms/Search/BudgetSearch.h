//===- BudgetSearch.h - Solving a function under a budget -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The solvers add up memory over nodes; a peak is a sum at one time. So they are told
// what is kept at the worst time of the plan without a budget, then at the worst times
// of the plans that do not fit. Every plan is made to fit by sending again (Memory.h),
// which has its price; the cheapest that fits is taken.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_BUDGETSEARCH_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_BUDGETSEARCH_H

#include "LeastMemory.h"
#include "MemoryBound.h"

#include "tessera/Solver/Solver.h"
#include "tessera/Transforms/Search.h"

#include <set>

namespace tessera::dist {

/// The end of a message about a budget that nothing meets.
std::string textOf(const MemoryBound &bound);

class BudgetSearch {
public:
  BudgetSearch(mlir::func::FuncOp function, StrategyGraph &strategies,
               const PropagationGraph &graph, const SearchSettings &settings,
               std::chrono::steady_clock::time_point begin);

  /// The cheapest plan found within the budget; never dearer than `alone` where that fits. Its cost
  /// has what is sent again. Without such a plan the one of least memory.
  mlir::FailureOr<solver::Solution> run(const std::vector<int64_t> &alone);
  /// Whether nothing takes less memory than the plan, as far as is known.
  bool isLeast() const { return tookLeast; }
  /// Valid until the lives of another plan are asked for.
  const Lives &livesOf(const std::vector<int64_t> &choice);
  /// What no plan does without.
  const MemoryBound &bound();
  /// What solvers took until now.
  double solverCpuSeconds() const { return cpuSeconds; }
  /// "'name'" of an argument or result, or "a value of type '…'"; empty for none.
  std::string nameOf(int64_t tensor) const;

private:
  mlir::FailureOr<solver::Solution> solve(double budget);
  /// What is kept at a time, by tensor: weights of where it is made, and of where its users need
  /// it.
  struct KeptWeights {
    std::vector<double> atHome, atPlace;
  };

  /// `sendsAgain`: an argument that is sent again takes its copy only while it is read.
  KeptWeights keptAt(const Lives &lives, int64_t time, bool sendsAgain, bool withHandedOn) const;
  void consider(const solver::Solution &solution);
  Peak considerLeast(const std::vector<int64_t> &choice);
  void lowerAtNoCost(const solver::Solution &fast);
  void solveAtTimes(const solver::Solution &first, bool sendsAgain);
  void minimiseMemory(DescentEffort work);
  /// A plan of little memory where `bound` is over the budget, whatever that is.
  solver::Solution refuse(const std::vector<int64_t> &alone);
  double left() const;
  solver::Expected<solver::Solution> solve(const solver::Problem &problem,
                                           const solver::Options &options);

  mlir::func::FuncOp function;
  StrategyGraph &strategies;
  const PropagationGraph &graph;
  const SearchSettings &settings;
  double wish;
  std::chrono::steady_clock::time_point begin;
  std::optional<solver::Solution> best;  ///< within the budget, with what it sends again
  std::optional<solver::Solution> least; ///< of least memory
  Peak leastPeak;
  std::optional<Lives> lives; ///< of the last plan that was looked at
  std::vector<int64_t> livesChoice;
  std::optional<MemoryBound> proved;
  bool tookLeast = false;
  double cpuSeconds = 0;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_BUDGETSEARCH_H
