//===- Modes.h - What the modes of the search share ---------------*- C++ -*-===//
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

/// A choice, and a bound of what any choice costs.
struct Bounded {
  std::vector<int64_t> choice;
  double cost = 0;  ///< of the choice under the costs that were given
  double bound = 0; ///< no choice within the domains costs less; equal to `cost` when it is optimal
  bool stoppedByTime = false;
};

/// The sum of costs by kind and of edges.
double costOf(const Source &source, const KindCosts &costs, const std::vector<int64_t> &choice);

/// No choice costs less: every node and every edge at its best.
double leastOf(const Source &source, const KindCosts &costs, const Domains &domains);

/// Problems of more nodes are large: proved within this part of the cost, they are done.
constexpr Index largeProblem = 10000;
constexpr double largeGap = 1e-3;

/// How much is done for the optimum.
enum class Depth {
  full, ///< until it is proved or time runs out
  once, ///< one elimination if it is done in about a second, else good choices and their bound
};

/// The optimum within the domains: dominance and elimination, with branching where a table would be
/// too large. `start` is any choice within the domains, to begin with; `stopAt`: a bound above it
/// is good enough.
Bounded minimise(const Source &source, const KindCosts &costs, Domains domains,
                 const Options &options, const Deadline &deadline, std::vector<int64_t> start = {},
                 Depth depth = Depth::full);

/// Entries of tables that are done in a few milliseconds.
constexpr double smallWork = 5e6;

/// The optimum, where one elimination of so many entries of tables finds it.
std::optional<Bounded> minimiseIfSmall(const Source &source, const KindCosts &costs,
                                       const Domains &domains, const Options &options,
                                       const Deadline &deadline, double mostWork);

/// A good choice within the domains in a few milliseconds, from coarse to fine. With `hopeful` more
/// thoroughly, and those strategies that a cheaper choice may have are put there.
Bounded minimiseCoarsely(const Source &source, const KindCosts &costs, const Domains &domains,
                         const Deadline &deadline, Domains *hopeful = nullptr);

/// A choice in which neighbouring coordinates are equal wherever they can be: a problem of few
/// coordinates is small. The best of all ways to join coordinates; none where strategies have
/// none, or one only. `mostWork`: entries of
/// tables that may be computed for one of them.
std::optional<std::vector<int64_t>>
minimiseOverJoinedCoordinates(const Source &source, const KindCosts &costs, const Domains &domains,
                              double mostWork, const Deadline &deadline);

/// The optimum under a memory budget.
Expected<Bounded> minimiseWithin(const Source &source, const Domains &domains,
                                 const Options &options, const Deadline &deadline);

/// By a MILP solver; Options::solverLibrary says which.
Expected<Bounded> minimiseByMilp(const Problem &problem, const Options &options,
                                 const Deadline &deadline);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MODES_H
