//===- Variants.cpp - Which choices a program gets ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Variants.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/LocalPeak.h"

using namespace mlir;
using namespace tessera;

Variant tessera::tryVariant(PhasedProgram &program, OwningOpRef<ModuleOp> start,
                            llvm::function_ref<LogicalResult()> compile) {
  Variant variant;
  PhaseTimes before = program.seconds;
  std::swap(program.module, start);
  {
    ScopedDiagnosticHandler handler(program.context(), [&](Diagnostic &message) {
      variant.messages.push_back(std::move(message));
    });
    variant.result = compile();
    if (succeeded(variant.result)) {
      FailureOr<Report> report = program.report();
      variant.result = report;
      if (succeeded(report))
        variant.report = std::move(*report);
    }
  }
  variant.module = std::move(program.module);
  variant.seconds = std::move(program.seconds);
  program.module = std::move(start);
  program.seconds = std::move(before);
  return variant;
}

double tessera::peakOf(ModuleOp module) {
  double bytes = 0;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (dist::isLocalView(function))
      bytes = std::max(bytes, dist::localPeakOf(function).bytes);
  return bytes;
}

void tessera::emit(MLIRContext *context, std::vector<Diagnostic> messages) {
  for (Diagnostic &message : messages)
    context->getDiagEngine().emit(std::move(message));
}

LogicalResult tessera::take(PhasedProgram &program, Variant variant) {
  program.module = std::move(variant.module);
  program.seconds = std::move(variant.seconds);
  emit(program.context(), std::move(variant.messages));
  return variant.result;
}

LogicalResult tessera::compileBest(PhasedProgram &program, const PipelineOptions &options,
                                   Phase from, Phase to) {
  const SearchRequest &search = options.search;
  bool mayHaveRings = options.overlaps || search.memoryBudget || search.mode.empty() ||
                      search.minimise == Minimise::memory;
  if (options.attentionSequence == AttentionSequence::automatic && to == Phase::scheduled &&
      from < Phase::propagated && mayHaveRings)
    return chooseAttention(program, options, from);
  return compilePlan(program, options, from, to);
}

LogicalResult tessera::compilePlan(PhasedProgram &program, const PipelineOptions &options,
                                   Phase from, Phase to) {
  const SearchRequest &search = options.search;
  bool minimises = !search.mode.empty() && search.minimise == Minimise::memory;
  bool isLimited = search.memoryBudget.has_value() != minimises; // the search rejects both
  if (!search.mode.empty() && search.minimise == Minimise::time && to == Phase::scheduled &&
      from < Phase::propagated)
    return comparePlans(program, options, from);
  if (isLimited && to == Phase::scheduled && from < Phase::scheduled) {
    Phase start = std::max(from, Phase::normalized);
    if (failed(program.run(options, from, start)))
      return failure();
    return fitMemory(program, options, start, /*mayFail=*/false);
  }
  // Whoever asks for rings wants no plan without them.
  if (search.mode.empty() && to == Phase::scheduled && from < Phase::propagated &&
      options.attentionSequence != AttentionSequence::ring)
    return chooseGroups(program, options, from);
  return runPhases(program, options, from, to);
}

LogicalResult tessera::runPhases(PhasedProgram &program, const PipelineOptions &options, Phase from,
                                 Phase to) {
  bool isOpen = options.overlaps && options.fusion.empty() && to == Phase::scheduled;
  Phase choice =
      options.dividesUpdates && from <= Phase::propagated ? Phase::propagated : Phase::partitioned;
  if (!isOpen || from > choice)
    return program.run(options, from, to);
  if (failed(program.run(options, from, choice)))
    return failure();
  return choice == Phase::propagated ? chooseDivision(program, options)
                                     : chooseOverlap(program, options);
}
