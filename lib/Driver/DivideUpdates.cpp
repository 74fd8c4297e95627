//===- DivideUpdates.cpp - Updates in parts beside overlap ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An update that the devices divide (dist-sink-partials) takes a reduce-scatter before
// it and a gather after it, in place of an all-reduce. Where collectives overlap with
// computation, the backward pass hides the all-reduce, but not the gather of a weight
// whose update waits for the norm of all gradients. So both programs are scheduled, and
// the shorter modelled step wins.
//
//===----------------------------------------------------------------------===//

#include "PendingMessages.h"
#include "ProgramHash.h"

#include "tessera/Driver/Compilation.h"

using namespace mlir;
using namespace tessera;

LogicalResult Compilation::divideUpdatesBest(PipelineOptions pipeline) {
  OwningOpRef<ModuleOp> propagated = program->clone();
  if (failed(runPhases(pipeline, Phase::propagated, Phase::resharded)))
    return failure();
  OwningOpRef<ModuleOp> divided = std::move(program);
  auto times = seconds;
  program = std::move(propagated);
  pipeline.dividesUpdates = false;
  {
    ScopedDiagnosticHandler quiet(&mlirContext, [](Diagnostic &) {}); // the same as before
    if (failed(runPhases(pipeline, Phase::propagated, Phase::resharded)))
      return failure();
  }
  seconds = times;
  if (hashOf(*program) == hashOf(*divided))
    return runPhases(pipeline, Phase::resharded, Phase::scheduled);

  struct Attempt {
    OwningOpRef<ModuleOp> program;
    double seconds = 0;
    std::vector<Diagnostic> messages;
  };
  auto schedule = [&]() -> FailureOr<Attempt> {
    PendingMessages pending(&mlirContext);
    if (failed(runPhases(pipeline, Phase::resharded, Phase::scheduled)))
      return failure();
    FailureOr<Report> made = report();
    if (failed(made))
      return failure();
    return Attempt{std::move(program), made->stepSeconds, pending.take()};
  };
  FailureOr<Attempt> whole = schedule();
  program = std::move(divided);
  seconds = std::move(times);
  FailureOr<Attempt> parts = schedule();
  if (failed(whole) || failed(parts))
    return failure();
  Attempt &best = parts->seconds <= whole->seconds ? *parts : *whole;
  program = std::move(best.program);
  for (Diagnostic &message : best.messages)
    mlirContext.getDiagEngine().emit(std::move(message));
  return success();
}
