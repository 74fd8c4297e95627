//===- BetterPlan.cpp - The searched plan or propagation's -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search prices a plan before reductions are sunk, collectives joined and kernels
// formed. What counts is the program behind that, so propagation's plan is compiled, too,
// and the one whose program takes longer is dropped.
//
//===----------------------------------------------------------------------===//

#include "PendingMessages.h"

#include "tessera/Driver/Compilation.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
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

/// Gives a module the meshes that the search made for another.
static void copyMeshes(ModuleOp from, ModuleOp to) {
  OpBuilder builder = OpBuilder::atBlockBegin(to.getBody());
  for (dist::ProcessMeshOp mesh : from.getOps<dist::ProcessMeshOp>())
    if (!SymbolTable::lookupSymbolIn(to, mesh.getSymName()))
      builder.clone(*mesh);
}

LogicalResult Compilation::keepBetter(const PipelineOptions &wish, Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(runPhases(wish, from, start)))
    return failure();
  OwningOpRef<ModuleOp> normalized = program->clone();
  if (failed(runPhases(wish, start, Phase::fused)))
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
    LogicalResult done = runPhases(alone, start, Phase::fused);
    if (succeeded(done))
      propagated = report();
    origins.pause(false);
    if (failed(done) || failed(propagated))
      return failure();
  }
  double spent = 0;
  for (size_t phase = timesOfSearched.size(); phase < seconds.size(); ++phase)
    spent += seconds[phase].second;
  seconds = std::move(timesOfSearched);
  seconds.push_back({"propagation's plan", spent});

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
  } else {
    program = std::move(kept);
  }
  note(*program, figures);
  return success();
}
