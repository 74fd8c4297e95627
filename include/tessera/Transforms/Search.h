//===- Search.h - Choosing every sharding by its modelled time --*- C++ -*-===//
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

/// The name of a mode as users write it.
std::string_view nameOf(solver::Mode mode);
/// The mode of a name; the error lists all modes.
solver::Expected<solver::Mode> parseMode(std::string_view name);

struct SearchSettings {
  solver::Options solver;      ///< mode, budget in bytes a device, time limit
  sharding::Topology topology; ///< of the machine
  bool fullyUseDevices = true; ///< contractions use every device where their sizes allow
  int64_t devices = 0;         ///< for a module without a mesh; 0: it stays so
  /// Where no plan is within the budget the one of least memory is taken, in place of an error.
  bool takeLeast = false;
  /// The least memory is what is asked for. Where a budget is below what is proved, a plan of
  /// little memory that is found at once will do.
  bool minimisesMemory = false;

  /// The plan of the least memory, whatever its time: no plan is within one byte.
  void minimiseMemory() {
    solver.memoryBudget = 1;
    takeLeast = minimisesMemory = true;
  }
};

/// A plan for the functions of a module on one mesh, and what is known of it.
struct SearchedPlan {
  std::vector<int64_t> meshShape; ///< of the mesh that was made for `devices`; empty: declared ones
  double cost = 0;                ///< modelled seconds of an execution
  double lowerBound = 0;          ///< no plan of the model costs less
  double computeSeconds = 0;      ///< the part of `cost` that is not communication
  double candidates = 0;          ///< strategies of all ops and tensors that were compared
  double propagationCost = 0;     ///< of the plan that propagation alone makes
  double propagationMemory = 0;   ///< of that, as `memory`
  double memory = 0;              ///< bytes on a device at the peak
  std::string largest;            ///< what takes most of it, as messages call it
  mlir::LocationAttr largestAt;   ///< where that is made
  double provedMemory = 0;        ///< over the budget: bytes a device that no plan does without
  std::string proof;              ///< for what, the end of a message
  bool isLeast = false;           ///< over the budget: no plan of less memory is known
  double seconds = 0;             ///< of building and solving
  double solverCpuSeconds = 0;    ///< of solving, on the one core that it uses
  bool stoppedByTime = false;     ///< the gap is what the time limit left
  solver::Mode mode = solver::Mode::dynamic_programming; ///< that found it
  std::vector<std::string> parallelisms;                 ///< "data over d0", "tensor over d1", …

  double gap() const { return cost <= lowerBound ? 0 : (cost - lowerBound) / cost; }
};

/// Searches a normalized module: one plan a mesh shape, the cheapest first. A located error says
/// why there is none. The module is unchanged but for the attributes of `writePlan`.
class ModuleSearch {
public:
  ModuleSearch(mlir::ModuleOp module, SearchSettings settings);
  ~ModuleSearch();

  /// Fails after one emitted error.
  mlir::LogicalResult run();
  /// The cheapest first; empty for a module without mesh and device count.
  const std::vector<SearchedPlan> &plans() const { return found; }
  /// Writes a plan: its mesh if it made one, shardings of all values, the module's `dist.search`;
  /// with remarks of what was chosen and why.
  void write(size_t plan);

private:
  struct State;
  mlir::LogicalResult searchAll();
  mlir::LogicalResult refuse();
  mlir::LogicalResult searchMesh(const std::optional<sharding::Mesh> &mesh,
                                 const SearchSettings &wish);
  mlir::ModuleOp module;
  SearchSettings settings;
  std::vector<SearchedPlan> found;
  std::vector<std::unique_ptr<State>> states; ///< by plan
};

/// The list of such texts that the driver writes on a module, for reports.
inline constexpr llvm::StringLiteral kParallelisms = "dist.parallelisms";

/// What the plan of a module in phase 'propagated' amounts to, "data over d0" and the like; the
/// names are those of lib/Transforms/Search/Describe.h.
std::vector<std::string> parallelismsOf(mlir::ModuleOp module);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_SEARCH_H
