//===- FitMemory.cpp - A planned arena within the budget ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search, dist-limit-memory and dist-fuse-collectives use estimates; the planned
// arena, which has gaps, is what matters. So the arena is planned, and if it exceeds
// the budget, the budget of the passes is lowered, then that of the search. The plans
// tried for the least memory do not depend on the budget, so that the memory given in
// an error can be reached.
//
//===----------------------------------------------------------------------===//

#include "FitMemory.h"

#include "CopyMeshes.h"
#include "ProgramHash.h"
#include "Variants.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Planning/LocalPeak.h"
#include "tessera/Support/Bytes.h"
#include "tessera/Variants/Arena.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace tessera;

/// Budgets of the search for the least memory, relative to the least estimate.
static constexpr double kOfLeast[] = {0, 1.0005, 1.05};
/// Limit on the searches per budget.
static constexpr int kMostPlans = 8;
/// Limit on the arenas per plan.
static constexpr int kMostArenas = 4;
/// Next budgets relative to the least arena so far: much less first, since a search with a slightly
/// smaller budget finds the same plan. And the total number.
static constexpr double kDescents[] = {0.9, 1};
static constexpr int kMostDescents = 3;
static constexpr double kGiB = 1024.0 * 1024 * 1024;

MemoryFitter::MemoryFitter(PhasedProgram &program, const PipelineOptions &requested, Phase start)
    : program(program), attempt(requested), mode(requested.search.mode), start(start),
      middle(std::max(start, Phase::partitioned)), pending(program.context()),
      normalized(program.module->clone()) {
  attempt.takeLeast = true;
}

LogicalResult MemoryFitter::search(std::optional<double> bytes, bool alone) {
  pending.keep(0);
  OwningOpRef<ModuleOp> before = std::move(program.module);
  program.module = normalized->clone();
  if (alone)
    copyMeshes(*before, *program.module);
  attempt.search.mode = alone ? "" : mode;
  attempt.search.minimise = bytes ? Minimise::time : Minimise::memory;
  attempt.search.memoryBudget.reset();
  if (bytes)
    attempt.search.memoryBudget = std::max(*bytes, 1.0) / kGiB;
  if (failed(program.run(attempt, start, middle)))
    return failure();
  found = (*program.module)->getAttrOfType<DictionaryAttr>(dist::DistDialect::kSearch);
  partitioned = program.module->clone();
  numSearched = pending.size();
  return success();
}

bool MemoryFitter::isBelowBound(double bytes) const {
  auto proved = found ? found.getAs<FloatAttr>("proved_memory") : FloatAttr();
  return proved && bytes < proved.getValueAsDouble();
}

double MemoryFitter::estimate() const {
  return found.getAs<FloatAttr>("memory").getValueAsDouble();
}

FailureOr<int64_t> MemoryFitter::planArena(double bytes) {
  pending.keep(numSearched);
  program.module = partitioned->clone();
  attempt.search.memoryBudget = std::max(bytes, 1.0) / kGiB;
  if (failed(program.run(attempt, middle, Phase::fused)))
    return failure();
  // A smaller budget may give the same program.
  auto [known, isNew] = arenas.try_emplace(hashOf(*program.module), 0);
  if (isNew) {
    FailureOr<int64_t> arena = arenaOf(*program.module);
    if (failed(arena))
      return failure();
    known->second = *arena;
  }
  return lastArena = known->second;
}

FailureOr<bool> MemoryFitter::fitsInto(double bytes) {
  double budget = bytes;
  for (int plans = 0; plans < kMostPlans; ++plans) {
    if (failed(search(budget)))
      return failure();
    if (isBelowBound(bytes))
      return false;
    double given = bytes, leastArena = std::numeric_limits<double>::infinity();
    for (int arenas = 0; arenas < kMostArenas; ++arenas) {
      FailureOr<int64_t> arena = planArena(given);
      if (failed(arena))
        return failure();
      if (static_cast<double>(*arena) <= bytes)
        return true;
      given *= bytes / static_cast<double>(*arena);
      leastArena = std::min(leastArena, static_cast<double>(*arena));
    }
    if (!found || found.getAs<BoolAttr>("least_memory").getValue())
      return false;
    // Lower in proportion, and below this plan's estimate: another plan may fit.
    budget = std::min(budget * bytes / leastArena, estimate() - 1);
  }
  return false;
}

void MemoryFitter::keepIfSmaller(int64_t arena) {
  if (arena >= smallest.arena)
    return;
  smallest.arena = arena;
  smallest.program = program.module->clone();
  smallest.messages = pending.copy();
}

FailureOr<bool> MemoryFitter::tryArenas(ArrayRef<double> tried, double bytes) {
  for (double given : tried) {
    FailureOr<int64_t> arena = planArena(given);
    if (failed(arena))
      return failure();
    keepIfSmaller(*arena);
    if (static_cast<double>(*arena) <= bytes)
      return true;
  }
  return false;
}

FailureOr<bool> MemoryFitter::descend(double bytes) {
  int left = kMostDescents;
  for (double part : kDescents)
    for (bool isSmaller = true; isSmaller && left > 0 && isInTime(); --left) {
      FailureOr<bool> fits = fitsInto(std::floor(part * static_cast<double>(smallest.arena - 1)));
      if (failed(fits))
        return fits;
      isSmaller = *fits;
      if (isSmaller)
        keepIfSmaller(lastArena);
      if (static_cast<double>(smallest.arena) <= bytes)
        return true;
    }
  return false;
}

FailureOr<bool> MemoryFitter::tryQuickly(double bytes) {
  // The plan does not depend on a budget below the proved bound.
  if (!isBelowBound(bytes) && failed(search(0.0)))
    return failure();
  smallest.search = found;
  return tryArenas(0.0, bytes);
}

FailureOr<bool> MemoryFitter::findLeast(double bytes) {
  if (bytes > 0 && !mode.empty())
    if (FailureOr<bool> fits = tryQuickly(bytes); failed(fits) || *fits || isBelowBound(bytes))
      return fits;
  double least = 0; // estimated
  for (double part : kOfLeast) {
    if (part > 0 && !isInTime())
      return false;
    if (failed(part > 0 ? search(part * least) : search(std::nullopt)))
      return failure();
    if (part == 0)
      smallest.search = found;
    const double given[] = {0, part * least};
    FailureOr<bool> fits = tryArenas(ArrayRef(given).take_front(part > 0 ? 2 : 1), bytes);
    if (failed(fits) || *fits)
      return fits;
    if (!found)
      break;
    if (part == 0) {
      least = estimate();
      fits = descend(bytes);
      if (failed(fits) || *fits)
        return fits;
    }
  }
  if (mode.empty() || !isInTime())
    return false;
  if (failed(search(std::nullopt, true)))
    return failure();
  return tryArenas(0.0, bytes);
}

bool MemoryFitter::isInTime() const {
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() < attempt.search.timeLimit;
}

void MemoryFitter::takeSmallest() {
  program.module = std::move(smallest.program);
  pending.replace(std::move(smallest.messages));
}

std::vector<Diagnostic> MemoryFitter::takeMessages() {
  return pending.take();
}

LogicalResult MemoryFitter::refuse(double bytes) {
  func::FuncOp function;
  dist::LocalPeak peak;
  for (func::FuncOp next : smallest.program->getOps<func::FuncOp>())
    if (dist::LocalPeak localPeak = dist::localPeakOf(next);
        !function || localPeak.bytes > peak.bytes) {
      function = next;
      peak = localPeak;
    }
  Location loc = function ? function.getLoc() : smallest.program->getLoc();
  std::string largest, proof;
  if (peak.largest) {
    loc = peak.largest.getLoc();
    largest = peak.name;
  }
  if (smallest.search) {
    if (auto at = smallest.search.getAs<LocationAttr>("largest_at"))
      loc = at;
    largest = smallest.search.getAs<StringAttr>("largest").getValue();
    proof = smallest.search.getAs<StringAttr>("proof").getValue();
  }
  InFlightDiagnostic error = emitError(loc);
  error << "no plan was found that fits into the memory budget of "
        << exactBytesText(std::floor(bytes)) << " per device; the least found needs "
        << exactBytesText(static_cast<double>(smallest.arena));
  if (!largest.empty())
    error << ", of which " << largest << " takes most";
  return error << proof;
}

FailureOr<bool> tessera::fitMemory(PhasedProgram &program, const PipelineOptions &requested,
                                   Phase start, bool mayFail) {
  std::vector<Diagnostic> messages;
  FailureOr<bool> fits = true;
  OwningOpRef<ModuleOp> partitioned;
  {
    MemoryFitter fitter(program, requested, start);
    if (requested.search.memoryBudget) {
      double bytes = *requested.search.memoryBudget * kGiB;
      fits = fitter.fitsInto(bytes);
      if (succeeded(fits) && !*fits && !mayFail)
        fits = fitter.findLeast(bytes);
      if (succeeded(fits) && !*fits && !mayFail)
        return fitter.refuse(bytes);
    } else {
      if (failed(fitter.findLeast(0)))
        return failure();
      fitter.takeSmallest();
    }
    messages = fitter.takeMessages();
    if (start <= Phase::partitioned)
      partitioned = fitter.takePartitioned();
  }
  if (failed(fits) || !*fits)
    return fits;
  emit(program.context(), std::move(messages));
  if (requested.search.memoryBudget && requested.overlaps &&
      failed(chooseOverlapWithin(program, requested, std::move(partitioned))))
    return failure();
  return true;
}
