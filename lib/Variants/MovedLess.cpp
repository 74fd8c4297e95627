//===- MovedLess.cpp - Forms of a program that may send less --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a pipeline written as a rotating state stores of one stage is cut by rows, or
// whole on all devices; then the state may be, too. Or each stage stores its own, and
// the state stays where its stages are. Which is less depends on the sizes of the state
// and of what is stored.
//
// A stencil exchanges each shift of a value at once, or one dimension after the other,
// which is less for corners but takes one latency for each dimension.
//
// Rows of groups, as those of experts, are computed where the rows are, or cut otherwise, or
// where the matrices of their groups are, for which all devices get all rows.
//
// Both programs are compiled.
//
//===----------------------------------------------------------------------===//

#include "Variants.h"

#include "tessera/Transforms/BlockShifts.h"
#include "tessera/Transforms/GroupOwners.h"
#include "tessera/Transforms/LiftRows.h"

using namespace mlir;
using namespace tessera;

/// The part of the step, or of the bytes, that must be saved.
static constexpr double kLeastGain = 0.05;
/// Steps that are taken for equally long.
static constexpr double kAsLong = 1.01;
/// Far fewer bytes are worth a step that is little longer, since links are shared.
static constexpr double kFewBytes = 1.0 / 3, kLittleLonger = 1.1;
/// The memory that a rewrite may take: the stage that others wait for keeps whole what they keep
/// parts of.
static constexpr double kMostMemory = 2;
/// Bytes that a device has to spare.
static constexpr double kLittleMemory = 1 << 26;

/// Whether a program is better in step or bytes and worse in none of them, or little longer with
/// far fewer bytes; by bytes alone, if that is the objective.
static bool isBetter(const Variant &found, const Variant &plain, sharding::Objective objective) {
  if (plain.report.wireBytesTotal() == 0 ||
      peakOf(*found.module) > std::max(kMostMemory * peakOf(*plain.module), kLittleMemory))
    return false;
  double step = found.report.stepSeconds / plain.report.stepSeconds;
  double bytes = static_cast<double>(found.report.wireBytesTotal()) /
                 static_cast<double>(plain.report.wireBytesTotal());
  if (objective == sharding::Objective::bytes)
    return bytes <= 1 - kLeastGain;
  if (bytes <= kFewBytes && step <= kLittleLonger)
    return true;
  return step <= kAsLong && bytes <= 1 && std::min(step, bytes) <= 1 - kLeastGain;
}

using Compile = LogicalResult(PhasedProgram &, const PipelineOptions &, Phase);

/// Compiles a program as it is and rewritten, and takes the better one.
static LogicalResult chooseForm(PhasedProgram &program, const PipelineOptions &options, Phase from,
                                bool (&rewrite)(ModuleOp), Compile &compile,
                                Compile &compileOther) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(program.run(options, from, start)))
    return failure();
  OwningOpRef<ModuleOp> rewritten = program.module->clone();
  if (!rewrite(*rewritten))
    return compile(program, options, start);
  Variant plain = tryVariant(program, program.module->clone(),
                             [&] { return compile(program, options, start); });
  Variant other = tryVariant(program, std::move(rewritten),
                             [&] { return compileOther(program, options, start); });
  bool isTaken = succeeded(other.result) &&
                 (failed(plain.result) || isBetter(other, plain, options.objective));
  return take(program, isTaken ? std::move(other) : std::move(plain));
}

/// As propagated: the rewritten program follows the cuts that it has.
static LogicalResult propagate(PhasedProgram &program, const PipelineOptions &options,
                               Phase start) {
  return runPhases(program, options, start, Phase::scheduled);
}

LogicalResult tessera::chooseGroups(PhasedProgram &program, const PipelineOptions &options,
                                    Phase from) {
  return chooseForm(program, options, from, dist::computeAtGroupOwners, chooseRows, chooseRows);
}

LogicalResult tessera::chooseRows(PhasedProgram &program, const PipelineOptions &options,
                                  Phase from) {
  return chooseForm(program, options, from, dist::liftRows, chooseShifts, chooseShifts);
}

LogicalResult tessera::chooseShifts(PhasedProgram &program, const PipelineOptions &options,
                                    Phase from) {
  return chooseForm(program, options, from, dist::blockShifts, chooseScans, propagate);
}
