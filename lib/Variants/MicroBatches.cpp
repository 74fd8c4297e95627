//===- MicroBatches.cpp - Cut the parts of a batch, or not ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Propagation keeps the rows of a batch where they are. If a loop takes parts of the
// batch in turn (gradient accumulation), most devices are without a part of their own in
// each iteration. Moving the rows once, so that all devices have some of each part, is
// worth it where the loop computes more than that takes: both programs are compiled. So
// are parts of a shuffled batch, as the minibatches of PPO.
//
//===----------------------------------------------------------------------===//

#include "Variants.h"

#include "tessera/Transforms/MicroBatches.h"

using namespace mlir;
using namespace tessera;

/// The part of the step that must be saved, and the memory that it may take.
static constexpr double kLeastGain = 0.05, kMostMemory = 1.25;

LogicalResult tessera::chooseMicroBatches(PhasedProgram &program, const PipelineOptions &options,
                                          Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(program.run(options, from, start)))
    return failure();
  OwningOpRef<ModuleOp> cut = program.module->clone();
  if (!dist::cutMicroBatches(*cut))
    return searchWithin(program, options, start);
  auto compile = [&] { return searchWithin(program, options, start); };
  Variant plain = tryVariant(program, program.module->clone(), compile);
  Variant other = tryVariant(program, std::move(cut), compile);
  bool isBetter = succeeded(other.result) &&
                  (failed(plain.result) ||
                   (other.report.stepSeconds <= (1 - kLeastGain) * plain.report.stepSeconds &&
                    peakOf(*other.module) <= kMostMemory * peakOf(*plain.module)));
  return take(program, isBetter ? std::move(other) : std::move(plain));
}
