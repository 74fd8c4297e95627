//===- LiftRows.cpp - Rows of a pipeline's state where they are, or sent --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a pipeline written as a rotating state stores of one stage is cut by rows, or
// whole on all devices; then the state may be, too. Or each stage stores its own, and
// the state stays where its stages are. Which is less depends on the sizes of the state
// and of what is stored: both programs are compiled.
//
//===----------------------------------------------------------------------===//

#include "Variants.h"

#include "tessera/Transforms/LiftRows.h"

using namespace mlir;
using namespace tessera;

/// The part of the step, or of the bytes, that must be saved, and the memory that it may take: the
/// stage that the others wait for keeps whole what they keep parts of.
static constexpr double kLeastGain = 0.05, kMostMemory = 2;
/// Steps that are taken for equally long.
static constexpr double kAsLong = 1.01;
/// Bytes that a device has to spare.
static constexpr double kLittleMemory = 1 << 26;

/// Whether a program is better in step or bytes and worse in none of them; by bytes alone, if that
/// is the objective.
static bool isBetter(const Variant &found, const Variant &plain, sharding::Objective objective) {
  if (plain.report.wireBytesTotal() == 0 ||
      peakOf(*found.module) > std::max(kMostMemory * peakOf(*plain.module), kLittleMemory))
    return false;
  double step = found.report.stepSeconds / plain.report.stepSeconds;
  double bytes = static_cast<double>(found.report.wireBytesTotal()) /
                 static_cast<double>(plain.report.wireBytesTotal());
  if (objective == sharding::Objective::bytes)
    return bytes <= 1 - kLeastGain;
  return step <= kAsLong && bytes <= 1 && std::min(step, bytes) <= 1 - kLeastGain;
}

LogicalResult tessera::chooseRows(PhasedProgram &program, const PipelineOptions &options,
                                  Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(program.run(options, from, start)))
    return failure();
  OwningOpRef<ModuleOp> lifted = program.module->clone();
  if (!dist::liftRows(*lifted))
    return chooseScans(program, options, start);
  auto compile = [&] { return chooseScans(program, options, start); };
  Variant plain = tryVariant(program, program.module->clone(), compile);
  Variant other = tryVariant(program, std::move(lifted), compile);
  bool isTaken = succeeded(other.result) &&
                 (failed(plain.result) || isBetter(other, plain, options.objective));
  return take(program, isTaken ? std::move(other) : std::move(plain));
}
