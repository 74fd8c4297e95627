//===- Modes.h - Shared by the modes of the search --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_MODES_H
#define TESSERA_LIB_SOLVER_MODES_H

#include "Model.h"
#include "tessera/Solver/Solver.h"

namespace tessera::solver {

/// A choice, and a lower bound on the cost of any choice.
struct Bounded {
  std::vector<int64_t> choice;
  double cost = 0;  ///< of the choice under the given costs
  double bound = 0; ///< no choice within the domains costs less; equal to `cost` when it is optimal
  bool stoppedByTime = false;
};

/// The sum of costs by kind and of edges.
double costOf(const Source &source, const KindCosts &costs, const std::vector<int64_t> &choice);

/// A lower bound: the sum of the least entries of every node and every edge.
double leastOf(const Source &source, const KindCosts &costs, const Domains &domains);

/// Problems with more nodes are large: a gap within this part of the cost is accepted.
constexpr Index largeProblem = 10000;
constexpr double largeGap = 1e-3;

/// The effort to find the optimum.
enum class Depth {
  full, ///< until it is proved or time runs out
  once, ///< one elimination if it takes about a second, else good choices and their bound
};

/// The optimum within the domains: dominance and elimination, with branching where a table would be
/// too large. `start` is an initial choice within the domains; bounds above `stopAt` end the
/// search.
Bounded minimise(const Source &source, const KindCosts &costs, Domains domains,
                 const Options &options, const Deadline &deadline, std::vector<int64_t> start = {},
                 Depth depth = Depth::full);

/// Entries of tables that are computed in a few milliseconds.
constexpr double smallWork = 5e6;

/// The optimum, if one elimination of at most so many entries of tables finds it.
std::optional<Bounded> minimiseIfSmall(const Source &source, const KindCosts &costs,
                                       const Domains &domains, const Options &options,
                                       const Deadline &deadline, double mostWork);

/// A good choice within the domains in a few milliseconds, from coarse to fine. With `remaining`
/// it searches more thoroughly and stores there the strategies that a cheaper choice may have.
Bounded minimiseCoarsely(const Source &source, const KindCosts &costs, const Domains &domains,
                         const Deadline &deadline, Domains *remaining = nullptr);

/// The best choice in which some neighboring coordinates are equal wherever possible, over all
/// sets of coordinates to join: a problem with few coordinates is small. Empty if strategies have
/// no coordinates or only one. `mostWork` limits the entries of tables for each set.
std::optional<std::vector<int64_t>>
minimiseOverJoinedCoordinates(const Source &source, const KindCosts &costs, const Domains &domains,
                              double mostWork, const Deadline &deadline);

/// The optimum under a memory budget.
Expected<Bounded> minimiseWithin(const Source &source, const Domains &domains,
                                 const Options &options, const Deadline &deadline);

/// Uses the MILP solver named by Options::solverLibrary.
Expected<Bounded> minimiseByMilp(const Problem &problem, const Options &options,
                                 const Deadline &deadline);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MODES_H
