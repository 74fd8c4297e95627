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

#include "tessera/Driver/Compilation.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/LocalPeak.h"
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

/// Withholds all diagnostics of a standard plan, including errors, since the user did not request
/// it.
class DiagnosticSuppressor {
public:
  explicit DiagnosticSuppressor(MLIRContext *context)
      : handler(context, [this](Diagnostic &message) { messages.push_back(std::move(message)); }) {}
  std::vector<Diagnostic> take() { return std::move(messages); }

private:
  std::vector<Diagnostic> messages;
  ScopedDiagnosticHandler handler;
};

} // namespace

namespace tessera {

/// Compiles several plans of one program and keeps the cheapest.
class PlanComparison {
public:
  /// `start`: the phase that the program is in, `normalized` at least.
  PlanComparison(Compilation &compilation, const PipelineOptions &requested, Phase start)
      : compilation(compilation), requested(requested), start(start),
        normalized(compilation.program->clone()) {}

  LogicalResult compileSearched();
  /// Compiles standard plans, as many as the size of the program allows. Plans that do not compile
  /// are skipped.
  LogicalResult compilePlain();
  /// Gives the compilation the cheapest program, emits its diagnostics, and records the costs of
  /// all plans.
  void keepBest();

private:
  struct Compiled {
    std::string name, mesh;
    double seconds; ///< of a step, modelled
  };

  /// Compiles the compilation's annotated program and returns its seconds; nothing if the budget is
  /// too small, or, if it `mayBeDropped`, if the estimate of its computation alone exceeds the best
  /// plan.
  FailureOr<std::optional<double>> price(const sharding::Topology &topology, bool mayBeDropped);
  FailureOr<double> modelledSeconds();

  Compilation &compilation;
  const PipelineOptions &requested;
  Phase start;
  OwningOpRef<ModuleOp> normalized, best;
  DictionaryAttr found;           ///< the search's attribute; null without a search
  std::vector<Compiled> compiled; ///< the searched plan first
  size_t taken = 0;
  std::vector<Diagnostic> messages;                                     ///< of the best
  std::vector<std::pair<std::string, std::vector<Diagnostic>>> refused; ///< by plan
};

} // namespace tessera

FailureOr<double> PlanComparison::modelledSeconds() {
  FailureOr<Report> report = compilation.report();
  if (failed(report))
    return failure();
  return report->stepSeconds;
}

LogicalResult PlanComparison::compileSearched() {
  bool isLimited = requested.search.memoryBudget.has_value();
  PendingMessages pending(compilation.context());
  LogicalResult result = isLimited ? LogicalResult(compilation.fitMemory(requested, start, false))
                                   : compilation.runPhases(requested, start, Phase::scheduled);
  messages = pending.take();
  if (failed(result))
    return failure();
  ModuleOp module = compilation.module();
  found = module->getAttrOfType<DictionaryAttr>(dist::DistDialect::kSearch);
  FailureOr<double> seconds = modelledSeconds();
  if (failed(seconds))
    return failure();
  compiled.push_back({"searched", shapesOf(module), *seconds});
  best = std::move(compilation.program);
  return success();
}

FailureOr<std::optional<double>> PlanComparison::price(const sharding::Topology &topology,
                                                       bool mayBeDropped) {
  const std::optional<double> none;
  PipelineOptions options = requested;
  options.search.mode.clear();
  options.search.memoryBudget.reset(); // it only makes a program slower
  OwningOpRef<ModuleOp> annotated = compilation.program->clone();
  if (failed(compilation.runPhases(options, start, Phase::propagated)))
    return failure();
  const double least = compiled[taken].seconds;
  if (mayBeDropped && dist::computeSecondsOf(compilation.module(), topology) > least)
    return none;
  if (failed(compilation.runPhases(options, Phase::propagated, Phase::scheduled)))
    return failure();
  FailureOr<double> seconds = modelledSeconds();
  if (failed(seconds))
    return failure();
  if (!requested.search.memoryBudget || *seconds >= least)
    return std::optional<double>(*seconds);
  compilation.program = std::move(annotated);
  options.search.memoryBudget = requested.search.memoryBudget;
  FailureOr<bool> fits = compilation.fitMemory(options, start, true);
  if (failed(fits))
    return failure();
  if (!*fits)
    return none;
  seconds = modelledSeconds();
  if (failed(seconds))
    return failure();
  return std::optional<double>(*seconds);
}

LogicalResult PlanComparison::compilePlain() {
  if (!found)
    return success();
  FailureOr<dist::CostOptions> cost =
      dist::readCostOptions(*normalized, "time", requested.topology);
  if (failed(cost))
    return failure();
  dist::PortfolioOptions options;
  options.topology = cost->topology;
  options.devices = requested.search.devices;
  options.searchedShape = searchedShape(*normalized, *best);
  auto left = std::clamp<int64_t>(kDropped * kMostOps / numOps(*normalized), kDropped + 1,
                                  kDropped * kMostPlans);
  std::vector<dist::BaselinePlan> plans;
  {
    PendingMessages dropped(compilation.context());
    plans = dist::baselinePlans(*normalized, options);
  }
  if (requested.search.mode == "exact") // a proved plan is compared only with the annotations alone
    plans.resize(1);
  for (const dist::BaselinePlan &plan : plans) {
    if (left < kDropped)
      break;
    std::vector<Diagnostic> said;
    FailureOr<std::optional<double>> seconds = failure();
    {
      DiagnosticSuppressor withheld(compilation.context());
      compilation.program = normalized->clone();
      dist::writePlan(compilation.module(), plan);
      // No searched program takes longer than the annotations alone, whatever estimates say.
      seconds = price(cost->topology, /*mayBeDropped=*/&plan != &plans.front());
      said = withheld.take();
    }
    left -= succeeded(seconds) && !*seconds ? 1 : kDropped;
    if (failed(seconds)) {
      refused.push_back({plan.name, std::move(said)});
      continue;
    }
    if (!*seconds)
      continue;
    compiled.push_back({plan.name, shapesOf(compilation.module()), **seconds});
    if (**seconds >= compiled[taken].seconds * (1 - kNoGain))
      continue;
    taken = compiled.size() - 1;
    best = std::move(compilation.program);
    messages = std::move(said);
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
  if (best)
    compilation.program = std::move(best);
  for (Diagnostic &message : messages)
    compilation.context()->getDiagEngine().emit(std::move(message));
  for (const auto &[plan, said] : refused)
    emitRefusal(plan, said);
  if (!found)
    return;
  ModuleOp module = compilation.module();
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
  entries.set("compiled", builder.getF64FloatAttr(compiled[taken].seconds));
  entries.set("portfolio", builder.getArrayAttr(list));
  if (taken > 0) {
    double memory = 0;
    for (func::FuncOp function : functions)
      memory = std::max(memory, dist::localPeakOf(function).bytes);
    entries.set("parallelisms", builder.getStrArrayAttr({compiled[taken].name}));
    entries.set("taken", builder.getStringAttr(compiled[taken].name));
    entries.set("memory", builder.getF64FloatAttr(memory));
  }
  module->setAttr(dist::DistDialect::kSearch, entries.getDictionary(module.getContext()));
}

LogicalResult Compilation::compileCheapest(const PipelineOptions &requested, Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(runPhases(requested, from, start)))
    return failure();
  PlanComparison comparison(*this, requested, start);
  LogicalResult searched = comparison.compileSearched();
  auto timesOfSearched = seconds;
  if (succeeded(searched)) {
    origins.pause(true); // the origins are those of the propagation within the search
    searched = comparison.compilePlain();
    origins.pause(false);
  }
  double spent = 0;
  for (size_t phase = timesOfSearched.size(); phase < seconds.size(); ++phase)
    spent += seconds[phase].second;
  seconds = std::move(timesOfSearched);
  seconds.push_back({"baseline plans", spent});
  comparison.keepBest();
  return searched;
}
