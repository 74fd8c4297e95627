//===- CutScans.cpp - Loops along a cut dimension, or re-cut --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop along a cut dimension is computed whole, or along another dimension of what it
// reads, to which all of that is moved and back. If it is affine in what it carries, each
// device can also compute its own iterations, twice, and pass on its last values. Which
// is less depends on what follows and precedes it: both programs are compiled, the second
// with these values on all devices, too, which takes one collective.
//
//===----------------------------------------------------------------------===//

#include "Variants.h"

#include "tessera/Transforms/CutScans.h"

using namespace mlir;
using namespace tessera;

/// The part of the step, or of the bytes, that must be saved, and the memory that it may take.
static constexpr double kLeastGain = 0.05, kMostMemory = 1.25;
/// Far fewer bytes are worth a step that is little longer, since links are shared.
static constexpr double kFewBytes = 1.0 / 3, kLittleLonger = 1.05;
/// Steps that are taken for equally long.
static constexpr double kAsLong = 1.01;
/// Bytes that a device has to spare.
static constexpr double kLittleMemory = 1 << 26;

/// Whether a program is better in step or bytes and worse in none of them, or little longer with
/// far fewer bytes; by bytes alone, if that is the objective.
static bool isBetter(const Variant &found, const Variant &plain, sharding::Objective objective) {
  if (plain.report.wireBytesTotal() == 0)
    return false;
  double step = found.report.stepSeconds / plain.report.stepSeconds;
  double bytes = static_cast<double>(found.report.wireBytesTotal()) /
                 static_cast<double>(plain.report.wireBytesTotal());
  if (peakOf(*found.module) > std::max(kMostMemory * peakOf(*plain.module), kLittleMemory))
    return false;
  if (objective == sharding::Objective::bytes)
    return bytes <= 1 - kLeastGain;
  if (bytes <= kFewBytes && step <= kLittleLonger)
    return true;
  return step <= kAsLong && bytes <= 1 && std::min(step, bytes) <= 1 - kLeastGain;
}

/// Whether a program has a shorter step, or sends less.
static bool isLess(const Report &found, const Report &other, sharding::Objective objective) {
  return objective == sharding::Objective::bytes ? found.wireBytesTotal() < other.wireBytesTotal()
                                                 : found.stepSeconds < other.stepSeconds;
}

LogicalResult tessera::chooseScans(PhasedProgram &program, const PipelineOptions &options,
                                   Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(program.run(options, from, start)))
    return failure();
  OwningOpRef<ModuleOp> cut = program.module->clone();
  if (!dist::cutScans(*cut, /*gathersStates=*/false))
    return chooseMicroBatches(program, options, start);
  OwningOpRef<ModuleOp> gathered = program.module->clone();
  dist::cutScans(*gathered, /*gathersStates=*/true);
  auto compile = [&] { return chooseMicroBatches(program, options, start); };
  Variant plain = tryVariant(program, program.module->clone(), compile);
  std::optional<Variant> best;
  for (OwningOpRef<ModuleOp> *module : {&cut, &gathered}) {
    Variant other = tryVariant(program, std::move(*module), compile);
    bool isTaken = succeeded(other.result) &&
                   (failed(plain.result) || isBetter(other, plain, options.objective));
    if (isTaken && (!best || isLess(other.report, best->report, options.objective)))
      best = std::move(other);
  }
  return take(program, best ? std::move(*best) : std::move(plain));
}
