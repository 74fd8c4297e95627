//===- SearchWithin.cpp - Search between propagation's arguments -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Propagation chooses among strategies that are propagated from what is annotated. A
// value that is moved once to a dimension that nobody cut, and back after a chain of
// ops, is none of them. A search finds it. So where a small program communicates more
// than it computes, the arguments and results keep the shardings that propagation gave
// them, the values between are searched, and the searched program is taken if it is
// much better: by its modelled step, and without sending more.
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Driver/Compilation.h"

using namespace mlir;
using namespace tessera;

/// Programs with more ops, or on more devices, are not searched.
static constexpr int64_t kMostOps = 1500, kMostDevices = 64;
/// The part of a step that communication must take, and that of a step that must be saved. Less is
/// not worth a plan that is harder to follow.
static constexpr double kLeastPart = 0.05, kLeastGain = 1.0 / 3;
/// Memory and computation of a device, relative to propagation's plan.
static constexpr double kMostMemory = 1.25, kMostWork = 1.05;
/// Fewer bytes do not matter.
static constexpr int64_t kLeastBytes = 4096;

/// The only function of a program that has few ops on one mesh with several devices.
static func::FuncOp smallFunction(ModuleOp module) {
  auto functions = module.getOps<func::FuncOp>();
  auto meshes = module.getOps<dist::ProcessMeshOp>();
  if (!llvm::hasSingleElement(functions) || !llvm::hasSingleElement(meshes))
    return {};
  int64_t devices = 1, count = 0;
  for (int64_t extent : (*meshes.begin()).getShape())
    devices *= extent;
  if (devices < 2 || devices > kMostDevices)
    return {};
  (*functions.begin()).walk([&](Operation *) { ++count; });
  return count <= kMostOps ? *functions.begin() : func::FuncOp();
}

/// Gives arguments and results of `to` the shardings of `from`; if `ofState`, only arguments and
/// the results that feed them.
static void copyShardings(func::FuncOp from, func::FuncOp to, bool ofState) {
  dist::SignatureAttrs source(from), target(to);
  auto copy = [](NamedAttrList &of, NamedAttrList &into) {
    if (Attribute sharding = of.get(dist::DistDialect::kSharding))
      into.set(dist::DistDialect::kSharding, sharding);
  };
  for (unsigned i = 0; i < from.getNumArguments(); ++i)
    copy(source.ofArgument(i), target.ofArgument(i));
  for (unsigned i = 0; i < from.getNumResults(); ++i)
    if (!ofState || source.ofResult(i).get(dist::DistDialect::kFeeds))
      copy(source.ofResult(i), target.ofResult(i));
  target.write();
}

/// Whether the time limit ended the search, so that another machine would find another plan.
static bool isStopped(ModuleOp module) {
  auto found = module->getAttrOfType<DictionaryAttr>(dist::DistDialect::kSearch);
  auto stopped = found ? found.getAs<BoolAttr>("stopped_by_time") : BoolAttr();
  return stopped && stopped.getValue();
}

/// Whether a program is better in both measures, and much better in that of the objective, with
/// little more memory and computation.
static bool isMuchBetter(const Report &found, const Report &plain, bool byBytes) {
  // Whoever cuts a batch wants its work to be divided, even where every device could do all of it.
  if (found.computeSeconds > kMostWork * plain.computeSeconds ||
      static_cast<double>(found.peakMemoryBytes) >
          kMostMemory * static_cast<double>(plain.peakMemoryBytes))
    return false;
  auto isLess = [](double a, double b, bool much) { return a <= (much ? 1 - kLeastGain : 1) * b; };
  return isLess(static_cast<double>(found.wireBytesTotal()),
                static_cast<double>(plain.wireBytesTotal()), byBytes) &&
         isLess(found.stepSeconds, plain.stepSeconds, !byBytes);
}

LogicalResult Compilation::searchWithin(const PipelineOptions &pipeline, Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(runPhases(pipeline, from, start)))
    return failure();
  if (!smallFunction(*program))
    return runPhases(pipeline, start, Phase::scheduled);
  OwningOpRef<ModuleOp> searched = program->clone();
  if (failed(runPhases(pipeline, start, Phase::propagated)))
    return failure();
  auto copy = [&](bool ofState) {
    copyShardings(*program->getOps<func::FuncOp>().begin(),
                  *searched->getOps<func::FuncOp>().begin(), ofState);
  };
  copy(/*ofState=*/false);
  {
    // State is open until then; with overlap the updates are divided or not.
    OwningOpRef<ModuleOp> propagated = pipeline.overlaps ? program->clone() : nullptr;
    if (failed(runPhases(pipeline, Phase::propagated, Phase::resharded)))
      return failure();
    copy(/*ofState=*/true);
    if (propagated)
      program = std::move(propagated);
  }
  Phase reached = pipeline.overlaps ? Phase::propagated : Phase::resharded;
  if (failed(runPhases(pipeline, reached, Phase::scheduled)))
    return failure();
  FailureOr<Report> plain = report();
  if (failed(plain))
    return failure();
  if (plain->wireBytesTotal() < kLeastBytes ||
      plain->communicationSeconds() < kLeastPart * plain->stepSeconds)
    return success();

  auto times = seconds;
  std::swap(program, searched); // now the propagated one
  PipelineOptions options = pipeline;
  options.search.mode = "dynamic_programming";
  options.search.fullyUseDevices = false;
  bool better = false;
  origins.pause(true);
  {
    ScopedDiagnosticHandler quiet(&mlirContext, [](Diagnostic &) {});
    if (succeeded(runPhases(options, start, Phase::scheduled)) && !isStopped(*program)) {
      FailureOr<Report> found = report();
      better = succeeded(found) && isMuchBetter(*found, *plain, pipeline.objective == "bytes");
    }
  }
  origins.pause(false);
  seconds = std::move(times);
  if (!better) {
    program = std::move(searched);
    return success();
  }
  (*program)->removeAttr(dist::DistDialect::kSearch);
  func::FuncOp function = *program->getOps<func::FuncOp>().begin();
  emitRemark(function.getLoc())
      << "between its arguments and results the program is searched: propagation sends "
      << plain->wireBytesTotal() << " bytes";
  return success();
}
