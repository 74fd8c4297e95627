//===- FitMemory.cpp - A planned arena within the budget -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search and dist-limit-memory estimate; what counts is the arena. So the arena is
// planned, and where it exceeds the budget collectives are joined less, then more is
// sent again, then the search is given less. The least memory is that of the smallest
// arena which is planned so: whatever the budget, the same.
//
//===----------------------------------------------------------------------===//

#include "PendingMessages.h"

#include "tessera/Driver/Compilation.h"
#include "tessera/Driver/Memory.h"

#include "tessera/Codegen/Compile.h"
#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace tessera;

/// What the search is given, in parts of the budget; then, where nothing fits, in parts of the
/// least memory that a plan is estimated to take.
static constexpr double kOfBudget[] = {1, 0.96, 0.92, 0.88}, kOfLeast[] = {0, 1.0005, 1.05};
/// Behind those, how many plans are asked for that are estimated to take less and less.
static constexpr size_t kLesser = 4;
/// Of the estimate of a plan that does not fit, what the next one may take.
static constexpr double kLess = 0.999;
/// Seconds of a search for the least memory and a mesh, at most.
static constexpr double kLeastSeconds = 2;
/// MiB of joined collectives that are tried one after the other.
static constexpr int64_t kBuckets[] = {16, 8, 4, 2, 1};

/// How collectives may be joined: as the user says, else less and less; for the least memory not at
/// all.
static std::vector<std::string> fusionsToTry(const std::string &given, bool forLeast) {
  std::vector<std::string> fusions{given};
  if (!given.empty())
    return fusions;
  for (int64_t size : forLeast ? ArrayRef<int64_t>() : ArrayRef(kBuckets))
    fusions.push_back(llvm::formatv("all-reduce=size all-reduce-config={0} all-gather=size "
                                    "all-gather-config={0} reduce-scatter=size "
                                    "reduce-scatter-config={0}",
                                    size));
  fusions.push_back("all-reduce=off all-gather=off reduce-scatter=off");
  return fusions;
}

static FailureOr<int64_t> arenaOf(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(codegen::lowerToRt(*copy)))
    return failure();
  return peakMemory(*copy);
}

namespace {

/// The smallest arena so far.
struct Smallest {
  int64_t arena = std::numeric_limits<int64_t>::max();
  OwningOpRef<ModuleOp> program; ///< only where it is asked for
  std::vector<Diagnostic> messages;
  DictionaryAttr search; ///< what is known of the search's plan
};

} // namespace

/// That no arena fits. What is said of it does not depend on the budget.
static LogicalResult refuse(ModuleOp program, double budget, const Smallest &least) {
  auto functions = program.getOps<func::FuncOp>();
  Location loc = functions.empty() ? program.getLoc() : (*functions.begin()).getLoc();
  auto at = least.search ? least.search.getAs<LocationAttr>("largest_at") : LocationAttr();
  InFlightDiagnostic error = emitError(at ? Location(at) : loc);
  error << "no plan was found that fits into " << static_cast<int64_t>(budget)
        << " bytes a device; the least found needs " << least.arena << " bytes";
  if (auto largest = least.search ? least.search.getAs<StringAttr>("largest") : StringAttr())
    error << ", of which " << largest.getValue() << " takes most"
          << least.search.getAs<StringAttr>("proof").getValue();
  return error;
}

LogicalResult Compilation::fitMemory(const PipelineOptions &wish, Phase from) {
  constexpr double kGiB = 1024.0 * 1024 * 1024, kNothing = 1 / kGiB;
  bool minimises = !options.search.memoryBudget;
  double budget = options.search.memoryBudget.value_or(0);
  Smallest least;
  std::vector<Diagnostic> messages;
  bool fits = false;
  {
    PendingMessages pending(&mlirContext);
    Phase start = std::max(from, Phase::normalized);
    if (failed(runPhases(wish, from, start)))
      return failure();
    OwningOpRef<ModuleOp> normalized = program->clone();
    size_t before = pending.size();
    PipelineOptions attempt = wish;
    attempt.takeLeast = true;
    attempt.search.minimise = "time"; // within almost nothing
    // What the search is given, in GiB; then what takes least.
    SmallVector<double> budgets;
    bool isLast = minimises;
    if (isLast)
      budgets = {kOfLeast[0]};
    else
      for (double part : kOfBudget)
        budgets.push_back(part * budget);
    size_t numParts = budgets.size();
    if (!isLast)
      budgets.append(kLesser, kOfBudget[numParts - 1] * budget);
    for (size_t search = 0; search < budgets.size() && !fits; ++search) {
      pending.keep(before);
      program = normalized->clone();
      if (isLast)
        attempt.search.timeLimit = std::min(wish.search.timeLimit, kLeastSeconds);
      attempt.search.memoryBudget = std::max(kNothing, budgets[search]);
      Phase middle = std::max(start, Phase::partitioned);
      if (failed(runPhases(attempt, start, middle)))
        return failure();
      auto found = (*program)->getAttrOfType<DictionaryAttr>(dist::DistDialect::kSearch);
      bool isLeast = !found || found.getAs<BoolAttr>("least_memory").getValue();
      if (isLast && search == 0 && found)
        for (double part : ArrayRef(kOfLeast).drop_front())
          budgets.push_back(part * found.getAs<FloatAttr>("memory").getValueAsDouble() / kGiB);
      OwningOpRef<ModuleOp> partitioned = program->clone();
      size_t searched = pending.size();
      double given = isLast ? std::max(kNothing, budgets[search]) : budget;
      for (const std::string &fusion : fusionsToTry(wish.fusion, isLast)) {
        pending.keep(searched);
        program = partitioned->clone();
        attempt.fusion = fusion;
        attempt.search.memoryBudget = given;
        if (failed(runPhases(attempt, middle, Phase::fused)))
          return failure();
        FailureOr<int64_t> arena = arenaOf(*program);
        if (failed(arena))
          return failure();
        if (isLeast && (!least.search || (isLast && search == 0)))
          least.search = found;
        if (*arena < least.arena) {
          least.arena = *arena;
          if (minimises) {
            least.program = program->clone();
            least.messages = pending.copy();
          }
        }
        fits = !minimises && static_cast<double>(*arena) <= budget * kGiB;
        if (fits)
          break;
        given = std::min(0.97 * given, given * budget * kGiB / static_cast<double>(*arena));
        if (isLast)
          given = 0.97 * std::max(kNothing, budgets[search]);
      }
      // A plan that is estimated to take less than one that does not fit may fit.
      if (!isLast && !fits && found && numParts <= search + 1 && search + 1 < budgets.size())
        budgets[search + 1] =
            std::min(budgets[search + 1],
                     kLess * found.getAs<FloatAttr>("memory").getValueAsDouble() / kGiB);
      if (!isLast && !fits && (isLeast || search + 1 == budgets.size())) {
        isLast = true;
        budgets = {kOfLeast[0]};
        search = static_cast<size_t>(-1);
      }
    }
    messages = minimises ? std::move(least.messages) : pending.take();
  }
  for (Diagnostic &message : messages)
    mlirContext.getDiagEngine().emit(std::move(message));
  if (minimises)
    program = std::move(least.program);
  return fits || minimises ? success() : refuse(*program, budget * kGiB, least);
}
