//===- FitMemory.cpp - A planned arena within the budget -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search and dist-limit-memory estimate; what counts is the arena. So the arena is
// planned, and where it exceeds the budget collectives are joined less, then more is
// sent again, then the search is given less. What is tried for the least memory does
// not depend on the budget: so what an error says can be reached is reached.
//
//===----------------------------------------------------------------------===//

#include "FitMemory.h"

#include "CopyMeshes.h"

#include "tessera/Codegen/Compile.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Driver/Memory.h"
#include "tessera/Planning/LocalPeak.h"
#include "tessera/Support/Bytes.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace mlir;
using namespace tessera;

/// What the search is given, in parts of the budget; for the least memory in parts of the least
/// that a plan is estimated to take.
static constexpr double kOfBudget[] = {1, 0.96, 0.92, 0.88}, kOfLeast[] = {0, 1.0005, 1.05};
/// Behind those of the budget, how many plans are asked for that are estimated to take less and
/// less.
static constexpr size_t kLesser = 4;
/// Of the estimate of a plan that does not fit, what the next one may take.
static constexpr double kLess = 0.999;
/// Of what one fusion's program may be estimated to take, what the next one's may.
static constexpr double kNext = 0.97;
/// Of the least arena so far, what is asked for next: much less first, since a search that is asked
/// for a little less finds what it found. And how often in all.
static constexpr double kDescents[] = {0.9, 1};
static constexpr int kMostDescents = 3;
/// MiB of joined collectives that are tried one after the other.
static constexpr int64_t kBuckets[] = {16, 8, 4, 2, 1};
static constexpr double kGiB = 1024.0 * 1024 * 1024;

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

MemoryFitter::MemoryFitter(Compilation &compilation, const PipelineOptions &wish, Phase start)
    : compilation(compilation), attempt(wish), mode(wish.search.mode), start(start),
      middle(std::max(start, Phase::partitioned)), fusions(fusionsToTry(wish.fusion)),
      pending(compilation.context()), normalized(compilation.program->clone()) {
  attempt.takeLeast = true;
}

LogicalResult MemoryFitter::search(std::optional<double> bytes, bool alone) {
  pending.keep(0);
  OwningOpRef<ModuleOp> before = std::move(compilation.program);
  compilation.program = normalized->clone();
  if (alone)
    copyMeshes(*before, *compilation.program);
  attempt.search.mode = alone ? "" : mode;
  attempt.search.minimise = bytes ? "time" : "memory";
  attempt.search.memoryBudget.reset();
  if (bytes)
    attempt.search.memoryBudget = std::max(*bytes, 1.0) / kGiB;
  if (failed(compilation.runPhases(attempt, start, middle)))
    return failure();
  found = (*compilation.program)->getAttrOfType<DictionaryAttr>(dist::DistDialect::kSearch);
  partitioned = compilation.program->clone();
  numSearched = pending.size();
  return success();
}

bool MemoryFitter::isHopeless(double bytes) const {
  auto proved = found ? found.getAs<FloatAttr>("proved_memory") : FloatAttr();
  return proved && bytes < proved.getValueAsDouble();
}

double MemoryFitter::estimate() const {
  return found.getAs<FloatAttr>("memory").getValueAsDouble();
}

FailureOr<int64_t> MemoryFitter::planArena(const std::string &fusion, double bytes) {
  pending.keep(numSearched);
  compilation.program = partitioned->clone();
  attempt.fusion = fusion;
  attempt.search.memoryBudget = std::max(bytes, 1.0) / kGiB;
  if (failed(compilation.runPhases(attempt, middle, Phase::fused)))
    return failure();
  // Most ways to join make the program that another one made.
  std::string text;
  llvm::raw_string_ostream os(text);
  compilation.program->print(os, OpPrintingFlags().assumeVerified());
  auto [known, isNew] = arenas.try_emplace(llvm::xxh3_64bits(text), 0);
  if (isNew) {
    OwningOpRef<ModuleOp> copy = compilation.program->clone();
    if (failed(codegen::lowerToRt(*copy)))
      return failure();
    known->second = peakMemory(*copy);
  }
  return lastArena = known->second;
}

FailureOr<bool> MemoryFitter::fitsInto(double bytes) {
  SmallVector<double> budgets;
  for (double part : kOfBudget)
    budgets.push_back(part * bytes);
  size_t numParts = budgets.size();
  budgets.append(kLesser, budgets.back());
  for (size_t n = 0; n < budgets.size(); ++n) {
    if (failed(search(budgets[n])))
      return failure();
    if (isHopeless(bytes))
      return false;
    double given = bytes;
    for (const std::string &fusion : fusions) {
      FailureOr<int64_t> arena = planArena(fusion, given);
      if (failed(arena))
        return failure();
      if (static_cast<double>(*arena) <= bytes)
        return true;
      given = std::min(kNext * given, given * bytes / static_cast<double>(*arena));
    }
    if (!found || found.getAs<BoolAttr>("least_memory").getValue())
      return false;
    // A plan that is estimated to take less than one that does not fit may fit.
    if (n + 1 >= numParts && n + 1 < budgets.size())
      budgets[n + 1] = std::min(budgets[n + 1], kLess * estimate());
  }
  return false;
}

void MemoryFitter::keepIfSmaller(int64_t arena) {
  if (arena >= smallest.arena)
    return;
  smallest.arena = arena;
  smallest.program = compilation.program->clone();
  smallest.messages = pending.copy();
}

FailureOr<bool> MemoryFitter::tryFusions(ArrayRef<std::string> tried, double given, double bytes) {
  for (const std::string &fusion : tried) {
    FailureOr<int64_t> arena = planArena(fusion, given);
    if (failed(arena))
      return failure();
    keepIfSmaller(*arena);
    if (static_cast<double>(*arena) <= bytes)
      return true;
    if (&fusion == &tried.front())
      given *= kNext;
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
  // The plan does not depend on a budget that is below what is proved.
  if (!isHopeless(bytes) && failed(search(0.0)))
    return failure();
  smallest.search = found;
  return tryFusions({fusions.front(), fusions.back()}, 0, bytes);
}

FailureOr<bool> MemoryFitter::findLeast(double bytes) {
  if (bytes > 0 && !mode.empty())
    if (FailureOr<bool> fits = tryQuickly(bytes); failed(fits) || *fits || isHopeless(bytes))
      return fits;
  double least = 0; // estimated
  for (double part : kOfLeast) {
    if (part > 0 && !isInTime())
      return false;
    if (failed(part > 0 ? search(part * least) : search(std::nullopt)))
      return failure();
    if (part == 0)
      smallest.search = found;
    FailureOr<bool> fits = tryFusions(fusions, part * least, bytes);
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
  return tryFusions(fusions, 0, bytes);
}

bool MemoryFitter::isInTime() const {
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() < attempt.search.timeLimit;
}

void MemoryFitter::takeSmallest() {
  compilation.program = std::move(smallest.program);
  pending.replace(std::move(smallest.messages));
}

std::vector<Diagnostic> MemoryFitter::takeMessages() {
  return pending.take();
}

LogicalResult MemoryFitter::refuse(double bytes) {
  func::FuncOp function;
  dist::LocalPeak peak;
  for (func::FuncOp next : smallest.program->getOps<func::FuncOp>())
    if (dist::LocalPeak its = dist::localPeakOf(next); !function || its.bytes > peak.bytes) {
      function = next;
      peak = its;
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

FailureOr<bool> Compilation::fitMemory(const PipelineOptions &wish, Phase start, bool mayFail) {
  std::vector<Diagnostic> messages;
  FailureOr<bool> fits = true;
  OwningOpRef<ModuleOp> partitioned;
  {
    MemoryFitter fitter(*this, wish, start);
    if (wish.search.memoryBudget) {
      double bytes = *wish.search.memoryBudget * kGiB;
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
  for (Diagnostic &message : messages)
    mlirContext.getDiagEngine().emit(std::move(message));
  if (wish.search.memoryBudget && wish.overlaps &&
      failed(overlapWithinBudget(wish, std::move(partitioned))))
    return failure();
  return true;
}
