//===- Search.h - Choose every sharding by its modelled time ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dist-search as functions, for the driver, which compares several plans. The
// proofs and the model are in docs/search.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_SEARCH_H
#define TESSERA_TRANSFORMS_SEARCH_H

#include "tessera/Sharding/Topology.h"
#include "tessera/Solver/Solver.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string_view>

namespace tessera::dist {

/// The user-visible name of a mode.
std::string_view nameOf(solver::Mode mode);
/// The mode of a name; the error lists all modes.
solver::Expected<solver::Mode> parseMode(std::string_view name);

/// The options of dist-search in their types, without a program.
struct SearchSettings {
  solver::Options solver;      ///< mode, budget in bytes per device, time limit
  sharding::Topology topology; ///< of the machine
  bool fullyUseDevices = true; ///< contractions use every device if their sizes allow
  int64_t devices = 0;         ///< for a module without a mesh; 0: none
  /// If no plan is within the budget, takes the one with the least memory instead of an error.
  bool takeLeast = false;
  /// The objective is memory. Otherwise a quickly found plan of little memory suffices if the
  /// budget is below the proved bound.
  bool minimisesMemory = false;

  /// Selects the plan with the least memory, for any time: no plan is within one byte.
  void minimiseMemory() {
    solver.memoryBudget = 1;
    takeLeast = minimisesMemory = true;
  }
};

/// A plan for the functions of a module on one mesh, with its properties.
struct SearchedPlan {
  std::vector<int64_t> meshShape; ///< of the mesh created for `devices`; empty: declared meshes
  double cost = 0;                ///< modelled seconds of an execution
  double lowerBound = 0;          ///< no plan of the model costs less
  double computeSeconds = 0;      ///< `cost` without communication
  double candidates = 0;          ///< number of strategies of all ops and tensors
  double propagationCost = 0;     ///< of propagation's plan
  double propagationMemory = 0;   ///< of that plan, as `memory`
  double memory = 0;              ///< peak bytes per device
  std::string largest;            ///< its largest value, for messages
  mlir::LocationAttr largestAt;   ///< its location
  double provedMemory = 0;     ///< over the budget: lower bound on bytes per device for all plans
  std::string proof;           ///< the reason of the bound, the end of a message
  bool isLeast = false;        ///< over the budget: no plan of less memory is known
  double seconds = 0;          ///< of building and solving
  double solverCpuSeconds = 0; ///< CPU time of solving, on one core
  bool stoppedByTime = false;  ///< whether the time limit ended the search
  solver::Mode mode = solver::Mode::dynamic_programming; ///< that found it
  std::vector<std::string> parallelisms;                 ///< "data over d0", "tensor over d1", …

  double gap() const { return cost <= lowerBound ? 0 : (cost - lowerBound) / cost; }
};

/// Searches a normalized module: one plan per mesh shape, the cheapest first. A located error gives
/// the reason if there is none. The module is unchanged except for the attributes of `writePlan`.
class ModuleSearch {
public:
  ModuleSearch(mlir::ModuleOp module, SearchSettings settings);
  ~ModuleSearch();

  /// Fails after one emitted error.
  mlir::LogicalResult run();
  /// The cheapest first; empty for a module without mesh and device count.
  const std::vector<SearchedPlan> &plans() const { return found; }
  /// Writes a plan: its mesh if it created one, shardings of all values, the module's
  /// `dist.search`; with remarks on the choices and their reasons.
  void write(size_t plan);

private:
  struct State;
  mlir::LogicalResult searchAll();
  mlir::LogicalResult refuse();
  mlir::LogicalResult searchMesh(const std::optional<sharding::Mesh> &mesh,
                                 const SearchSettings &requested);
  mlir::ModuleOp module;
  SearchSettings settings;
  std::vector<SearchedPlan> found;
  std::vector<std::unique_ptr<State>> states; ///< by plan
};

/// The attribute with these texts, which the driver sets on a module for reports.
inline constexpr llvm::StringLiteral kParallelisms = "dist.parallelisms";

/// The parallelisms of a module in phase 'propagated', "data over d0" and the like; the names are
/// those of lib/Transforms/Search/Describe.h.
std::vector<std::string> parallelismsOf(mlir::ModuleOp module);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_SEARCH_H
