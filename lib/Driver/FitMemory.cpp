//===- FitMemory.cpp - A planned arena within the budget -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search and dist-limit-memory estimate; what counts is the arena. So the arena is
// planned, and where it exceeds the budget collectives are joined less, then more is
// sent again, then the search is given less.
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
static constexpr double kOfBudget[] = {1, 0.96, 0.92, 0.88}, kOfLeast[] = {0, 1.0005, 1.03, 1.08};
/// MiB of joined collectives that are tried one after the other.
static constexpr int64_t kBuckets[] = {16, 8, 4, 2, 1};

/// How collectives may be joined: as the user says, else less and less.
static std::vector<std::string> fusionsToTry(const std::string &given) {
  std::vector<std::string> fusions{given};
  if (!given.empty())
    return fusions;
  for (int64_t size : kBuckets)
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

LogicalResult Compilation::fitMemory(const PipelineOptions &wish, Phase from) {
  constexpr double kGiB = 1024.0 * 1024 * 1024, kNothing = 1 / kGiB;
  double budget = *options.search.memoryBudget;
  int64_t least = std::numeric_limits<int64_t>::max();
  std::string largest;
  double proved = 0; // bytes that no plan does without
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
    SmallVector<double> budgets;
    for (double part : kOfBudget)
      budgets.push_back(part * budget);
    bool isLast = false; // whatever takes least, so that an error does not depend on the budget
    for (size_t search = 0; search < budgets.size() && !fits; ++search) {
      pending.keep(before);
      program = normalized->clone();
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
      for (const std::string &fusion : fusionsToTry(wish.fusion)) {
        pending.keep(searched);
        program = partitioned->clone();
        attempt.fusion = fusion;
        attempt.search.memoryBudget = given;
        if (failed(runPhases(attempt, middle, Phase::fused)))
          return failure();
        FailureOr<int64_t> arena = arenaOf(*program);
        if (failed(arena))
          return failure();
        if (*arena < least) {
          least = *arena;
          if (found) {
            largest = found.getAs<StringAttr>("largest").str();
            proved = found.getAs<FloatAttr>("proved_memory").getValueAsDouble();
          }
        }
        fits = static_cast<double>(*arena) <= budget * kGiB;
        if (fits)
          break;
        given = std::min(0.97 * given, given * budget * kGiB / static_cast<double>(*arena));
        if (isLast)
          given = 0.97 * std::max(kNothing, budgets[search]);
      }
      if (!isLast && !fits && (isLeast || search + 1 == budgets.size())) {
        isLast = true;
        budgets = {kOfLeast[0]};
        search = static_cast<size_t>(-1);
      }
    }
    messages = pending.take();
  }
  for (Diagnostic &message : messages)
    mlirContext.getDiagEngine().emit(std::move(message));
  if (fits)
    return success();
  auto functions = program->getOps<func::FuncOp>();
  InFlightDiagnostic error =
      emitError(functions.empty() ? program->getLoc() : (*functions.begin()).getLoc());
  error << "no plan was found that fits into " << static_cast<int64_t>(budget * kGiB)
        << " bytes a device; the least found needs " << least << " bytes";
  if (!largest.empty())
    error << ", of which " << largest << " takes most; no plan needs less than "
          << static_cast<int64_t>(std::ceil(proved)) << " bytes, for arguments";
  return error;
}
