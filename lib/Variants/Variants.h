//===- Variants.h - Ways to compile a program -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each choice is a file: it compiles the program in some ways and keeps one. The
// choices are nested in the order below; the innermost are the passes alone. What they
// compare depends on the program and the options, never on the clock.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_VARIANTS_VARIANTS_H
#define TESSERA_LIB_VARIANTS_VARIANTS_H

#include "tessera/Variants/PhasedProgram.h"

namespace tessera {

/// A program compiled in one way.
struct Variant {
  mlir::LogicalResult result = mlir::failure();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Report report;
  std::vector<mlir::Diagnostic> messages; ///< of its passes, errors included
  PhaseTimes seconds;
};

/// Compiles `start` to the local view: `compile` works on `program`, which afterwards is what it
/// was before, except for recorded origins. Messages are withheld.
Variant tryVariant(PhasedProgram &program, mlir::OwningOpRef<mlir::ModuleOp> start,
                   llvm::function_ref<mlir::LogicalResult()> compile);
/// Replaces the program by a variant of it and emits the variant's messages. Its result.
mlir::LogicalResult take(PhasedProgram &program, Variant variant);

/// Estimated bytes of the device that needs most, of a program in the local view.
double peakOf(mlir::ModuleOp module);

/// Emits withheld messages.
void emit(mlir::MLIRContext *context, std::vector<mlir::Diagnostic> messages);

//===----------------------------------------------------------------------===//
// The choices, up to `scheduled`
//===----------------------------------------------------------------------===//

/// Keys of cut sequences gathered, or in a ring: the variant that fits into the memory budget and
/// has the shorter step. (AttentionSequence.cpp)
mlir::LogicalResult chooseAttention(PhasedProgram &program, const PipelineOptions &options,
                                    Phase from);
/// By the options: with the search, within the memory budget, or propagated.
mlir::LogicalResult compilePlan(PhasedProgram &program, const PipelineOptions &options, Phase from,
                                Phase to);
/// The searched plan or a plain one: the shortest step among those within the budget, if there is
/// one. (PlanComparison.cpp)
mlir::LogicalResult comparePlans(PhasedProgram &program, const PipelineOptions &options,
                                 Phase from);
/// Propagated, with rows of groups computed where the matrices of their groups are, if that makes
/// the step shorter or sends less. (MovedLess.cpp)
mlir::LogicalResult chooseGroups(PhasedProgram &program, const PipelineOptions &options,
                                 Phase from);
/// Propagated, with what follows from one row of a rotating state computed for all rows, if that
/// makes the step shorter or sends less. (MovedLess.cpp)
mlir::LogicalResult chooseRows(PhasedProgram &program, const PipelineOptions &options, Phase from);
/// Propagated, with shifts of a value read from blocks with borders, if that makes the step shorter
/// or sends less. (MovedLess.cpp)
mlir::LogicalResult chooseShifts(PhasedProgram &program, const PipelineOptions &options,
                                 Phase from);
/// Propagated, with loops along cut dimensions in a block of iterations for each device, if that
/// makes the step shorter or sends less. (CutScans.cpp)
mlir::LogicalResult chooseScans(PhasedProgram &program, const PipelineOptions &options, Phase from);
/// Propagated, with the parts of a batch that a loop takes in turn cut over all devices, if that
/// makes the step shorter. (MicroBatches.cpp)
mlir::LogicalResult chooseMicroBatches(PhasedProgram &program, const PipelineOptions &options,
                                       Phase from);
/// As propagated. A program with many small collectives is also compiled without recuts; a small
/// program that communicates is also searched with the arguments and results that propagation has.
/// (SearchWithin.cpp)
mlir::LogicalResult searchWithin(PhasedProgram &program, const PipelineOptions &options,
                                 Phase from);
/// With choices that keep the planned arena within the memory budget, or without a budget as small
/// as possible. If nothing fits, fails with an error, or returns false if it `mayFail`, which then
/// skips the search for the least memory. (FitMemory.cpp)
mlir::FailureOr<bool> fitMemory(PhasedProgram &program, const PipelineOptions &options, Phase start,
                                bool mayFail);
/// The phases, where the options overlap collectives with the two choices below. (Variants.cpp)
mlir::LogicalResult runPhases(PhasedProgram &program, const PipelineOptions &options, Phase from,
                              Phase to);
/// From `propagated`: divides updates among devices if that makes the step with overlap shorter.
/// (DivideUpdates.cpp)
mlir::LogicalResult chooseDivision(PhasedProgram &program, PipelineOptions options);
/// From `partitioned`: joins collectives and prefetches in loops such that the step is shortest.
/// (BestOverlap.cpp)
mlir::LogicalResult chooseOverlap(PhasedProgram &program, const PipelineOptions &options);
/// From `fused`, or better from `ordered`, the same program before its collectives are joined, if
/// the arena stays within the budget. (BestOverlap.cpp)
mlir::LogicalResult chooseOverlapWithin(PhasedProgram &program, const PipelineOptions &options,
                                        mlir::OwningOpRef<mlir::ModuleOp> ordered);

} // namespace tessera

#endif // TESSERA_LIB_VARIANTS_VARIANTS_H
