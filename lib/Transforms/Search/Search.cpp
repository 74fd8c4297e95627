//===- Search.cpp - Choose every sharding by its modelled time ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Search.h"

#include "../Propagate/Propagation.h"
#include "BudgetSearch.h"
#include "Describe.h"
#include "MeshShapes.h"
#include "tessera/Planning/PlanMemory.h"

#include "tessera/Planning/CostOptions.h"
#include "tessera/Solver/CompleteChoice.h"
#include "tessera/Support/Bytes.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace tessera::dist {
#define GEN_PASS_DEF_DISTSEARCH
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

namespace {

/// The state of one function: its annotations and its plan.
struct FunctionPlan {
  func::FuncOp function;
  std::unique_ptr<PropagationGraph> graph;
  Decision decision;
  std::map<int64_t, std::string> reasons; ///< by tensor, for remarks
};

} // namespace

struct ModuleSearch::State {
  std::optional<Mesh> made; ///< the mesh created for `devices`
  std::unique_ptr<MeshTable> meshes;
  std::vector<FunctionPlan> functions;
};

ModuleSearch::ModuleSearch(ModuleOp module, SearchSettings settings)
    : module(module), settings(std::move(settings)) {}
ModuleSearch::~ModuleSearch() = default;

/// Number of meshes searched in the requested mode: the best ones of a quick mode.
static constexpr size_t kMostInFull = 2;

/// The fraction of the time limit for the costs of reshards.
static constexpr double kTimeForTables = 0.25;

/// Propagation's plan of the function.
static PropagatedPlan propagateAlone(const PropagationGraph &graph, const Topology &topology,
                                     MLIRContext *context) {
  PropagationGraph copy = graph;
  propagateAxes(copy, context);
  PropagatedPlan plan;
  for (const std::shared_ptr<const Strategy> &strategy : decide(copy, topology).strategies)
    plan.strategies.push_back(strategy ? *strategy : Strategy());
  for (const TensorState &state : copy.tensors)
    plan.shardings.push_back(canonical(state.sharding->closed()));
  return plan;
}

/// Searches one function. Adds the description of its plan to `summary`.
static FailureOr<FunctionPlan> searchFunction(func::FuncOp function, const MeshTable &meshes,
                                              const SearchSettings &settings,
                                              SearchedPlan &summary) {
  auto begin = std::chrono::steady_clock::now();
  FailureOr<std::unique_ptr<PropagationGraph>> built = PropagationGraph::build(function, meshes);
  if (failed(built))
    return failure();
  FunctionPlan plan{function, std::move(*built), {}, {}};
  PropagationGraph &graph = *plan.graph;
  PropagatedPlan propagated = propagateAlone(graph, settings.topology, function.getContext());
  StrategyGraph::Options options;
  options.fullyUseDevices = settings.fullyUseDevices;
  options.timeLimit = kTimeForTables * settings.solver.timeLimit;
  StrategyGraph strategies(graph, propagated, settings.topology, options);

  std::vector<int64_t> alone =
      solver::completeChoice(strategies.problem(), strategies.propagatedChoice());
  double aloneCost = strategies.problem().cost(alone);
  BudgetSearch within(function, strategies, graph, settings, begin);
  FailureOr<solver::Solution> solved = within.run(alone);
  if (failed(solved))
    return failure();
  solver::Solution &solution = *solved;
  if (strategies.hasApproximatePrices()) {
    solution.cost = strategies.exactCost(solution.choice);
    aloneCost = strategies.exactCost(alone);
    bool isFree = !std::isfinite(settings.solver.memoryBudget) && !within.isLeast();
    if (aloneCost < solution.cost && isFree) {
      solution.choice = alone;
      solution.cost = aloneCost;
    }
    solution.lowerBound = std::min(solution.cost, strategies.leastCompute());
    solution.stoppedByTime = true;
  }
  PlanLiveness lives = within.livesOf(solution.choice);
  Fit fit;
  if (std::isfinite(settings.solver.memoryBudget)) {
    fit = fitInto(settings.solver.memoryBudget, strategies, graph, lives, solution.choice);
  } else {
    lives.joinSends(function, graph, strategies, solution.choice);
    fit.peak = peakOf(strategies, graph, lives, solution.choice);
  }
  if (fit.peak.bytes > summary.memory) {
    summary.memory = fit.peak.bytes;
    summary.largest = within.nameOf(fit.peak.largest);
    if (fit.peak.largest >= 0)
      summary.largestAt = graph.tensors[fit.peak.largest].loc;
  }
  summary.propagationMemory =
      std::max(summary.propagationMemory, fitInto(settings.solver.memoryBudget, strategies, graph,
                                                  within.livesOf(alone), alone)
                                              .peak.bytes);
  if (within.isLeast()) {
    summary.isLeast = true;
    const MemoryBound &bound = within.bound();
    if (bound.bytes > summary.provedMemory) {
      summary.provedMemory = bound.bytes;
      summary.proof = textOf(bound);
    }
  }
  plan.reasons = reasonsOf(strategies, graph, solution.choice);
  for (std::string &name : parallelismsOf(strategies, graph, solution.choice))
    if (!llvm::is_contained(summary.parallelisms, name))
      summary.parallelisms.push_back(std::move(name));
  summary.cost += solution.cost;
  summary.lowerBound += std::min(solution.lowerBound, solution.cost);
  summary.propagationCost += aloneCost;
  for (const solver::Node &node : strategies.problem().nodes)
    summary.candidates += static_cast<double>(node.numStrategies());
  summary.computeSeconds += strategies.computeSeconds(solution.choice);
  summary.stoppedByTime |= solution.stoppedByTime;
  summary.solverCpuSeconds += within.solverCpuSeconds();

  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    auto tensor = static_cast<int64_t>(t);
    plan.decision.tensors.push_back(&strategies.shardingOf(tensor, solution.choice));
    graph.tensors[t].sharding = plan.decision.tensors.back();
    plan.decision.places.push_back(strategies.placeOf(tensor, solution.choice));
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Strategy *strategy = strategies.strategyOf(static_cast<int64_t>(n), solution.choice);
    plan.decision.strategies.push_back(strategy ? std::make_shared<const Strategy>(*strategy)
                                                : nullptr);
  }
  return plan;
}

/// A plan within the budget is better than one that is not; among the latter, less memory is
/// better. Among equally cheap plans less memory is better, then fewer mesh axes, then the better
/// bound.
static bool isBetter(const SearchedPlan &plan, const SearchedPlan &other) {
  auto differ = [](double a, double b) { return std::abs(a - b) > 1e-6 * b; };
  if (plan.isLeast != other.isLeast)
    return other.isLeast;
  if (plan.isLeast && differ(plan.memory, other.memory))
    return plan.memory < other.memory;
  if (differ(plan.cost, other.cost))
    return plan.cost < other.cost;
  if (differ(plan.memory, other.memory))
    return plan.memory < other.memory;
  if (plan.meshShape.size() != other.meshShape.size())
    return plan.meshShape.size() < other.meshShape.size();
  return plan.lowerBound >= other.lowerBound;
}

/// Searches one mesh and inserts its plan after cheaper ones.
LogicalResult ModuleSearch::searchMesh(const std::optional<Mesh> &mesh,
                                       const SearchSettings &requested) {
  auto begin = std::chrono::steady_clock::now();
  auto state = std::make_unique<State>();
  ProcessMeshOp declared = mesh ? declareMesh(module, *mesh) : ProcessMeshOp();
  state->meshes = std::make_unique<MeshTable>(module);
  state->made = mesh;
  SearchedPlan plan;
  plan.mode = requested.solver.mode;
  if (mesh)
    plan.meshShape = mesh->shape;
  bool failedOne = false;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (isLocalView(function) || function.isExternal())
      continue;
    FailureOr<FunctionPlan> own = searchFunction(function, *state->meshes, requested, plan);
    failedOne = failed(own);
    if (failedOne)
      break;
    state->functions.push_back(std::move(*own));
  }
  if (declared)
    declared.erase();
  if (failedOne)
    return failure();
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  auto at = llvm::find_if(found, [&](const SearchedPlan &other) { return isBetter(plan, other); });
  auto index = at - found.begin();
  found.insert(at, std::move(plan));
  states.insert(states.begin() + index, std::move(state));
  return success();
}

LogicalResult ModuleSearch::run() {
  if (failed(searchAll()))
    return failure();
  if (settings.takeLeast || found.empty())
    return success();
  if (found.front().isLeast)
    return refuse();
  while (found.back().isLeast) {
    found.pop_back();
    states.pop_back();
  }
  return success();
}

/// The bound that holds for all meshes.
static const SearchedPlan &leastProof(ArrayRef<SearchedPlan> plans) {
  return *llvm::min_element(plans, [](const SearchedPlan &a, const SearchedPlan &b) {
    return a.provedMemory < b.provedMemory;
  });
}

LogicalResult ModuleSearch::refuse() {
  const SearchedPlan &plan = found.front();
  Location loc = plan.largestAt ? Location(plan.largestAt) : module.getLoc();
  InFlightDiagnostic error = emitError(loc);
  error << "no plan was found that fits into the memory budget of "
        << exactBytesText(std::floor(settings.solver.memoryBudget))
        << " per device; the least found needs " << exactBytesText(std::ceil(plan.memory));
  if (!plan.largest.empty())
    error << ", of which " << plan.largest << " takes most";
  return error << leastProof(found).proof;
}

LogicalResult ModuleSearch::searchAll() {
  if (!MeshTable(module).empty())
    return searchMesh(std::nullopt, settings);
  if (settings.devices == 0)
    return success();
  std::vector<Mesh> candidates;
  for (const std::vector<int64_t> &shape : meshShapes(settings.devices, settings.topology))
    candidates.push_back(makeMesh(freeMeshName(module), shape));
  SearchSettings quick = settings;
  if (candidates.size() > kMostInFull)
    quick.solver.mode = solver::Mode::recursive_programming;
  for (const Mesh &mesh : candidates)
    if (failed(searchMesh(mesh, quick)))
      return failure();
  if (quick.solver.mode == settings.solver.mode)
    return success();
  if (!settings.minimisesMemory && found.front().isLeast &&
      settings.solver.memoryBudget < leastProof(found).provedMemory)
    return success(); // no mode changes that
  std::vector<Mesh> best;
  for (size_t plan = 0; plan < std::min(kMostInFull, found.size()); ++plan)
    best.push_back(*states[plan]->made);
  // The full search may run out of time: the better of two plans of a mesh is kept.
  for (const Mesh &mesh : best) {
    if (failed(searchMesh(mesh, settings)))
      return failure();
    bool isFirst = true;
    for (size_t plan = 0; plan < found.size(); ++plan)
      if (found[plan].meshShape == mesh.shape && !std::exchange(isFirst, false)) {
        found.erase(found.begin() + static_cast<std::ptrdiff_t>(plan));
        states.erase(states.begin() + static_cast<std::ptrdiff_t>(plan));
        break;
      }
  }
  return success();
}

void ModuleSearch::write(size_t index) {
  State &state = *states[index];
  const SearchedPlan &plan = found[index];
  if (state.made)
    declareMesh(module, *state.made);
  for (FunctionPlan &own : state.functions) {
    writeShardings(own.function, *own.graph, own.decision);
    for (auto &[tensor, reason] : own.reasons)
      emitRemark(own.graph->tensors[tensor].loc) << reason;
  }
  Builder builder(module.getContext());
  SmallVector<StringRef> names(plan.parallelisms.begin(), plan.parallelisms.end());
  auto real = [&](double value) { return builder.getF64FloatAttr(value); };
  SmallVector<NamedAttribute> entries;
  auto add = [&](StringRef name, Attribute value) {
    entries.push_back(builder.getNamedAttr(name, value));
  };
  add("mode", builder.getStringAttr(dist::nameOf(plan.mode)));
  add("cost", real(plan.cost));
  add("lower_bound", real(plan.lowerBound));
  add("gap", real(plan.gap()));
  add("stopped_by_time", builder.getBoolAttr(plan.stoppedByTime));
  add("candidates", real(plan.candidates));
  add("compute", real(plan.computeSeconds));
  add("propagation_cost", real(plan.propagationCost));
  add("parallelisms", builder.getStrArrayAttr(names));
  add("memory", real(plan.memory));
  add("propagation_memory", real(plan.propagationMemory));
  add("least_memory", builder.getBoolAttr(plan.isLeast));
  if (plan.isLeast) { // as in the error message
    add("largest", builder.getStringAttr(plan.largest));
    if (plan.largestAt)
      add("largest_at", plan.largestAt);
    add("proved_memory", real(leastProof(found).provedMemory));
    add("proof", builder.getStringAttr(leastProof(found).proof));
  }
  module->setAttr(DistDialect::kSearch, builder.getDictionaryAttr(entries));
}

namespace {

struct DistSearch : dist::impl::DistSearchBase<DistSearch> {
  using DistSearchBase::DistSearchBase;

  void runOnOperation() override {
    SearchSettings settings;
    solver::Expected<solver::Mode> parsed = parseMode(mode.getValue());
    if (auto *error = std::get_if<solver::Error>(&parsed)) {
      getOperation().emitError() << "dist-search: " << error->message;
      return signalPassFailure();
    }
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    double limit = timeLimit;
    std::string wrong; // also rejects NaN
    if (!(limit > 0))
      wrong = llvm::formatv("time-limit {0} is not valid: expected a positive number of seconds",
                            limit);
    else if (devices < 0)
      wrong = llvm::formatv(
          "devices {0} is not valid: expected a number of devices, or 0 for a program with a mesh",
          devices.getValue());
    if (!wrong.empty()) {
      getOperation().emitError() << "dist-search: " << wrong;
      return signalPassFailure();
    }
    FailureOr<double> budget = readMemoryBudget(getOperation(), "dist-search", memoryBudget);
    if (failed(budget))
      return signalPassFailure();
    settings.solver.mode = std::get<solver::Mode>(parsed);
    settings.solver.timeLimit = timeLimit;
    settings.solver.solverLibrary = solver;
    if (*budget > 0)
      settings.solver.memoryBudget = *budget;
    if (minimise != "time" && minimise != "memory") {
      getOperation().emitError() << "dist-search: minimise '" << minimise
                                 << "' is not valid: expected time or memory";
      return signalPassFailure();
    }
    if (minimise == "memory" && memoryBudget > 0) {
      getOperation().emitError()
          << "dist-search: minimise=memory cannot be combined with memory-budget";
      return signalPassFailure();
    }
    settings.topology = cost->topology;
    settings.fullyUseDevices = fullyUseDevices;
    settings.takeLeast = takeLeast;
    if (minimise == "memory")
      settings.minimiseMemory();
    settings.devices = devices;
    ModuleSearch search(getOperation(), settings);
    if (failed(search.run()))
      return signalPassFailure();
    if (!search.plans().empty())
      search.write(0);
  }
};

} // namespace
