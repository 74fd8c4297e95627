//===- BestOverlap.cpp - Overlap that pays ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small buckets of collectives leave early and cost latencies. Which wins depends on what
// there is to compute meanwhile, so the program is joined and scheduled each way, and the
// one with the shortest modelled step is kept.
//
//===----------------------------------------------------------------------===//

#include "PendingMessages.h"

#include "tessera/Codegen/Compile.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Driver/Memory.h"

using namespace mlir;
using namespace tessera;

/// Ways to join collectives; the first is taken where none is better.
static constexpr const char *kFusions[] = {
    "all-reduce=bucket all-gather=bucket reduce-scatter=bucket",
    "all-reduce=bucket all-gather=auto reduce-scatter=bucket",
    "all-reduce=auto all-gather=auto reduce-scatter=auto",
};

LogicalResult Compilation::overlapBest(PipelineOptions pipeline) {
  OwningOpRef<ModuleOp> partitioned = std::move(program), best;
  double least = 0;
  std::vector<Diagnostic> messages; // of the best
  for (const char *fusion : kFusions) {
    PendingMessages pending(&mlirContext);
    program = partitioned->clone();
    pipeline.fusion = fusion;
    if (failed(runPhases(pipeline, Phase::partitioned, Phase::scheduled)))
      return failure();
    FailureOr<Report> made = report();
    if (failed(made))
      return failure();
    if (best && made->stepSeconds >= least)
      continue;
    best = std::move(program);
    least = made->stepSeconds;
    messages = pending.take();
  }
  program = std::move(best);
  for (Diagnostic &message : messages)
    mlirContext.getDiagEngine().emit(std::move(message));
  return success();
}

LogicalResult Compilation::overlapWithinBudget(const PipelineOptions &wish) {
  OwningOpRef<ModuleOp> fused = program->clone();
  if (failed(runPhases(wish, Phase::fused, Phase::scheduled)))
    return failure();
  OwningOpRef<ModuleOp> copy = program->clone();
  if (failed(codegen::lowerToRt(*copy)))
    return failure();
  if (static_cast<double>(peakMemory(*copy)) > *wish.search.memoryBudget * 1024 * 1024 * 1024)
    program = std::move(fused);
  return success();
}
