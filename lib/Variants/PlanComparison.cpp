//===- PlanComparison.cpp - The cheapest compiled plan of a portfolio -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search estimates the cost of a plan before reductions are sunk, collectives
// joined and kernels formed. The compiled program is what matters, so standard plans
// (Portfolio.h) are compiled beside the searched one, and the fastest program is
// kept. Under a budget all of them must fit.
//
//===----------------------------------------------------------------------===//

#include "CopyMeshes.h"
#include "PendingMessages.h"
#include "Variants.h"

#include "tessera/Planning/CostOptions.h"
#include "tessera/Transforms/Portfolio.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera;

/// The least relative gain for another plan.
static constexpr double kNoGain = 1e-6;
/// Limits on the number of compiled standard plans, and on the ops of all of these programs: the
/// choice depends on the size of the program, never on the clock. A plan that is dropped after
/// propagation counts as a fraction of one.
static constexpr int64_t kMostPlans = 24, kMostOps = 20000, kDropped = 4;

/// "2x4", of every mesh of the module.
static std::string shapesOf(ModuleOp module) {
  std::string text;
  for (auto mesh : module.getOps<dist::ProcessMeshOp>()) {
    text += text.empty() ? "" : ", ";
    for (auto [index, extent] : llvm::enumerate(mesh.getShape()))
      text += (index ? "x" : "") + std::to_string(extent);
  }
  return text;
}

/// The grid that a search made for a program without a mesh.
static std::vector<int64_t> searchedShape(ModuleOp normalized, ModuleOp searched) {
  if (!normalized.getOps<dist::ProcessMeshOp>().empty())
    return {};
  auto meshes = searched.getOps<dist::ProcessMeshOp>();
  return meshes.empty() ? std::vector<int64_t>() : (*meshes.begin()).getShape().vec();
}

static int64_t numOps(ModuleOp module) {
  int64_t count = 0;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    ++count;
    return isa<linalg::LinalgOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  return count;
}

namespace {

/// Compiles several plans of one program and keeps the cheapest.
class PlanComparison {
public:
  /// `start`: the phase that the program is in, `normalized` at least.
  PlanComparison(PhasedProgram &program, const PipelineOptions &requested, Phase start)
      : program(program), requested(requested), start(start) {}

  LogicalResult compileSearched();
  /// Compiles standard plans, as many as the size of the program allows. Plans that do not compile
  /// are skipped.
  LogicalResult compilePlain();
  /// Replaces the program by the cheapest one, emits its diagnostics, and records the costs of all
  /// plans.
  void keepBest();

private:
  struct Compiled {
    std::string name, mesh;
    double seconds; ///< of a step, modelled
  };

  double leastSeconds() const { return compiled[taken].seconds; }
  /// Compiles the program with the annotations of a plan. Returns false if the budget is too small,
  /// or, unless they are the user's (`isAnnotated`), if the estimate of its computation alone
  /// exceeds the best plan.
  FailureOr<bool> compile(const sharding::Topology &topology, bool isAnnotated);

  PhasedProgram &program; ///< normalized
  const PipelineOptions &requested;
  Phase start;
  Variant best;
  double secondsOfPlain = 0;      ///< spent on the standard plans
  DictionaryAttr found;           ///< the search's attribute; null without a search
  std::vector<Compiled> compiled; ///< the searched plan first
  size_t taken = 0;
  std::vector<std::pair<std::string, std::vector<Diagnostic>>> refused; ///< by plan
};

} // namespace

LogicalResult PlanComparison::compileSearched() {
  best = tryVariant(program, program.module->clone(), [&]() -> LogicalResult {
    if (requested.search.memoryBudget)
      return fitMemory(program, requested, start, /*mayFail=*/false);
    return runPhases(program, requested, start, Phase::scheduled);
  });
  if (failed(best.result))
    return failure();
  found = (*best.module)->getAttrOfType<DictionaryAttr>(dist::DistDialect::kSearch);
  compiled.push_back({"searched", shapesOf(*best.module), best.report.stepSeconds});
  return success();
}

FailureOr<bool> PlanComparison::compile(const sharding::Topology &topology, bool isAnnotated) {
  PipelineOptions options = requested;
  options.search.mode.clear();
  options.search.memoryBudget.reset(); // it only makes a program slower
  OwningOpRef<ModuleOp> annotated = program.module->clone();
  if (isAnnotated) { // as without a search
    if (failed(chooseMicroBatches(program, options, start)))
      return failure();
  } else {
    if (failed(program.run(options, start, Phase::propagated)))
      return failure();
    if (dist::computeSecondsOf(*program.module, topology) > leastSeconds())
      return false;
    if (failed(runPhases(program, options, Phase::propagated, Phase::scheduled)))
      return failure();
  }
  if (!requested.search.memoryBudget)
    return true;
  FailureOr<Report> report = program.report();
  if (failed(report))
    return failure();
  if (report->stepSeconds >= leastSeconds())
    return true;
  program.module = std::move(annotated);
  options.search.memoryBudget = requested.search.memoryBudget;
  return fitMemory(program, options, start, /*mayFail=*/true);
}

LogicalResult PlanComparison::compilePlain() {
  if (!found)
    return success();
  ModuleOp normalized = *program.module;
  FailureOr<dist::CostOptions> cost = dist::readCostOptions(normalized, "time", requested.topology);
  if (failed(cost))
    return failure();
  dist::PortfolioOptions options;
  options.topology = cost->topology;
  options.devices = requested.search.devices;
  options.searchedShape = searchedShape(normalized, *best.module);
  auto left = std::clamp<int64_t>(kDropped * kMostOps / numOps(normalized), kDropped + 1,
                                  kDropped * kMostPlans);
  std::vector<dist::BaselinePlan> plans;
  {
    PendingMessages dropped(program.context());
    plans = dist::baselinePlans(normalized, options);
  }
  if (requested.search.mode == "exact") // a proved plan is compared only with the annotations alone
    plans.resize(1);
  for (const dist::BaselinePlan &plan : plans) {
    if (left < kDropped)
      break;
    bool isDropped = false;
    Variant variant = tryVariant(program, normalized.clone(), [&]() -> LogicalResult {
      dist::writePlan(*program.module, plan);
      // No searched program takes longer than the annotations alone, whatever estimates say.
      FailureOr<bool> isCompiled = compile(cost->topology, /*isAnnotated=*/&plan == &plans.front());
      isDropped = succeeded(isCompiled) && !*isCompiled;
      return success(succeeded(isCompiled) && *isCompiled);
    });
    for (size_t phase = program.seconds.size(); phase < variant.seconds.size(); ++phase)
      secondsOfPlain += variant.seconds[phase].second;
    left -= isDropped ? 1 : kDropped;
    if (isDropped)
      continue;
    if (failed(variant.result)) {
      refused.push_back({plan.name, std::move(variant.messages)});
      continue;
    }
    double seconds = variant.report.stepSeconds;
    compiled.push_back({plan.name, shapesOf(*variant.module), seconds});
    if (seconds >= leastSeconds() * (1 - kNoGain))
      continue;
    taken = compiled.size() - 1;
    variant.seconds = std::move(best.seconds);
    best = std::move(variant);
  }
  return success();
}

/// Emits the reason why a standard plan is not compared.
static void emitRefusal(const std::string &plan, ArrayRef<Diagnostic> said) {
  for (const Diagnostic &message : said)
    if (message.getSeverity() == DiagnosticSeverity::Error) {
      emitRemark(message.getLocation())
          << "the plan '" << plan << "' does not compile and was discarded: " << message.str();
      return;
    }
}

void PlanComparison::keepBest() {
  best.seconds.push_back({"baseline plans", secondsOfPlain});
  (void)take(program, std::move(best));
  for (const auto &[plan, said] : refused)
    emitRefusal(plan, said);
  if (!found)
    return;
  ModuleOp module = *program.module;
  auto functions = module.getOps<func::FuncOp>();
  if (taken > 0 && !functions.empty())
    emitRemark((*functions.begin()).getLoc())
        << "the plan '" << compiled[taken].name
        << "' replaces the plan that was found: compiled, it is faster";
  Builder builder(module.getContext());
  SmallVector<Attribute> list;
  for (const Compiled &plan : compiled)
    list.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("plan", builder.getStringAttr(plan.name)),
         builder.getNamedAttr("mesh", builder.getStringAttr(plan.mesh)),
         builder.getNamedAttr("compiled", builder.getF64FloatAttr(plan.seconds))}));
  NamedAttrList entries(found);
  entries.set("compiled", builder.getF64FloatAttr(leastSeconds()));
  entries.set("portfolio", builder.getArrayAttr(list));
  if (taken > 0) {
    entries.set("parallelisms", builder.getStrArrayAttr({compiled[taken].name}));
    entries.set("taken", builder.getStringAttr(compiled[taken].name));
    entries.set("memory", builder.getF64FloatAttr(peakOf(module)));
  }
  module->setAttr(dist::DistDialect::kSearch, entries.getDictionary(module.getContext()));
}

LogicalResult tessera::comparePlans(PhasedProgram &program, const PipelineOptions &requested,
                                    Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(program.run(requested, from, start)))
    return failure();
  PlanComparison comparison(program, requested, start);
  LogicalResult searched = comparison.compileSearched();
  if (succeeded(searched)) {
    program.origins.pause(true); // the origins are those of the propagation within the search
    searched = comparison.compilePlain();
    program.origins.pause(false);
  }
  comparison.keepBest();
  return searched;
}
