//===- BetterPlan.cpp - The searched plan or propagation's -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search prices a plan before reductions are sunk, collectives joined and kernels
// formed. What counts is the program behind that, so propagation's plan is compiled, too,
// and the one whose program takes longer is dropped. Under a budget both keep to it.
//
//===----------------------------------------------------------------------===//

#include "CopyMeshes.h"
#include "PendingMessages.h"

#include "tessera/Driver/Compilation.h"

#include "tessera/Transforms/CostOptions.h"

using namespace mlir;
using namespace tessera;

/// Gains that are not worth another plan: in parts of what a step takes.
static constexpr double kNoGain = 1e-6;

/// Adds to what the module says of its search.
static void note(ModuleOp module, ArrayRef<NamedAttribute> more) {
  StringRef name = dist::DistDialect::kSearch;
  NamedAttrList entries(module->getAttrOfType<DictionaryAttr>(name));
  for (NamedAttribute entry : more)
    entries.set(entry.getName(), entry.getValue());
  module->setAttr(name, entries.getDictionary(module.getContext()));
}

LogicalResult Compilation::keepBetter(const PipelineOptions &wish, Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(runPhases(wish, from, start)))
    return failure();
  OwningOpRef<ModuleOp> normalized = program->clone();
  auto compile = [&](const PipelineOptions &options, bool mayFail) -> FailureOr<bool> {
    if (options.search.memoryBudget)
      return fitMemory(options, start, mayFail);
    if (failed(runPhases(options, start, Phase::fused)))
      return failure();
    return true;
  };
  if (failed(compile(wish, false)))
    return failure();
  FailureOr<Report> searched = report();
  auto found = (*program)->getAttrOfType<DictionaryAttr>(dist::DistDialect::kSearch);
  if (failed(searched) || !found)
    return searched;

  auto timesOfSearched = seconds;
  OwningOpRef<ModuleOp> kept = std::move(program);
  program = std::move(normalized);
  copyMeshes(*kept, *program);
  PipelineOptions alone = wish;
  alone.search.mode.clear();
  FailureOr<Report> propagated = failure();
  {
    PendingMessages dropped(&mlirContext);
    origins.pause(true); // they are those of the propagation within the search
    FailureOr<bool> fits = compile(alone, true);
    bool isFailure = failed(fits);
    if (!isFailure && *fits) {
      propagated = report();
      isFailure = failed(propagated);
    }
    origins.pause(false);
    if (isFailure)
      return failure();
  }
  double spent = 0;
  for (size_t phase = timesOfSearched.size(); phase < seconds.size(); ++phase)
    spent += seconds[phase].second;
  seconds = std::move(timesOfSearched);
  seconds.push_back({"propagation's plan", spent});

  if (failed(propagated)) { // it needs more than the budget
    program = std::move(kept);
    return success();
  }
  Builder builder(&mlirContext);
  auto real = [&](StringRef name, double value) {
    return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
  };
  double own = searched->modelledSeconds(), other = propagated->modelledSeconds();
  SmallVector<NamedAttribute> figures = {real("compiled", own),
                                         real("propagation_compiled", other)};
  if (other < own * (1 - kNoGain)) {
    (*program)->setAttr(dist::DistDialect::kSearch, found);
    figures.push_back(builder.getNamedAttr("taken", builder.getStringAttr("propagation")));
    figures.push_back(builder.getNamedAttr("memory", found.get("propagation_memory")));
  } else {
    program = std::move(kept);
  }
  note(*program, figures);
  return success();
}
