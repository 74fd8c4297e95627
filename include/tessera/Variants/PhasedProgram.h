//===- PhasedProgram.h - A program between two phases -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_VARIANTS_PHASEDPROGRAM_H
#define TESSERA_VARIANTS_PHASEDPROGRAM_H

#include "tessera/Phases/Pipeline.h"
#include "tessera/Report/Report.h"

#include "mlir/IR/OwningOpRef.h"

namespace tessera {

/// Seconds by phase, in order.
using PhaseTimes = std::vector<std::pair<std::string, double>>;

/// A program on its way to the local view. Errors have been emitted when a function fails.
class PhasedProgram {
public:
  /// `topology`: the file of the machine that reports are for, empty for the default.
  PhasedProgram(mlir::MLIRContext *context, std::string topology)
      : origins(context), ofContext(context), machine(std::move(topology)) {}

  /// Runs the passes of each phase, without any choice, and verifies the result.
  mlir::LogicalResult run(PipelineOptions options, Phase from, Phase to);
  /// Of the module, which is in the local view, or of a variant of it.
  mlir::FailureOr<Report> report() { return report(*module); }
  mlir::FailureOr<Report> report(mlir::ModuleOp variant) const;

  mlir::MLIRContext *context() const { return ofContext; }

  mlir::OwningOpRef<mlir::ModuleOp> module;
  PhaseTimes seconds;
  OriginRecorder origins;

private:
  mlir::MLIRContext *ofContext;
  std::string machine;
};

/// Runs the phases in the ways that the options leave open, and keeps the best: the shortest
/// modelled step, the least memory where that is minimised, only programs within the budget.
mlir::LogicalResult compileBest(PhasedProgram &program, const PipelineOptions &options, Phase from,
                                Phase to);

} // namespace tessera

#endif // TESSERA_VARIANTS_PHASEDPROGRAM_H
