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

#include "ProgramHash.h"
#include "Variants.h"

using namespace mlir;
using namespace tessera;

LogicalResult tessera::chooseDivision(PhasedProgram &program, PipelineOptions options) {
  OwningOpRef<ModuleOp> propagated = program.module->clone();
  if (failed(program.run(options, Phase::propagated, Phase::resharded)))
    return failure();
  OwningOpRef<ModuleOp> divided = std::move(program.module);
  PhaseTimes times = program.seconds;
  program.module = std::move(propagated);
  options.dividesUpdates = false;
  {
    ScopedDiagnosticHandler quiet(program.context(), [](Diagnostic &) {}); // the same as before
    if (failed(program.run(options, Phase::propagated, Phase::resharded)))
      return failure();
  }
  program.seconds = std::move(times);
  auto schedule = [&] { return runPhases(program, options, Phase::resharded, Phase::scheduled); };
  if (hashOf(*program.module) == hashOf(*divided))
    return schedule();
  Variant parts = tryVariant(program, std::move(divided), schedule);
  Variant whole = tryVariant(program, std::move(program.module), schedule);
  bool isWhole = failed(whole.result) ||
                 (succeeded(parts.result) && whole.report.stepSeconds < parts.report.stepSeconds);
  return take(program, std::move(isWhole ? whole : parts));
}
