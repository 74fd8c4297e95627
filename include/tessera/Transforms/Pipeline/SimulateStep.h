//===- SimulateStep.h - Simulate a step on all meshes -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PIPELINE_SIMULATESTEP_H
#define TESSERA_TRANSFORMS_PIPELINE_SIMULATESTEP_H

#include "tessera/Planning/StepTimeline.h"
#include "tessera/Sharding/Topology.h"
#include "tessera/Transforms/Pipeline/Timeline.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera::pipeline {

/// The timeline of a device of one function.
struct PartTimeline {
  mlir::func::FuncOp function;
  double seconds = 0;        ///< until its end
  double computeSeconds = 0; ///< of these
  std::vector<dist::StepTimeline::Entry> entries;
};

/// All functions of the local view.
struct StepReport {
  std::vector<PartTimeline> parts; ///< in the order of the module
  double seconds = 0;              ///< until the last part of a program ends; sum over programs
  std::optional<PipelineTimeline> pipeline; ///< if functions have segments
};

/// Simulates a step: each function executes its ops in order, a receive waits for its send. Fails
/// with an error if a collective does not fit its mesh.
mlir::FailureOr<StepReport> simulateStep(mlir::ModuleOp module, const sharding::Topology &topology);

} // namespace tessera::pipeline

#endif // TESSERA_TRANSFORMS_PIPELINE_SIMULATESTEP_H
