//===- SimulateStep.h - When the meshes of a program work -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PIPELINE_SIMULATESTEP_H
#define TESSERA_TRANSFORMS_PIPELINE_SIMULATESTEP_H

#include "tessera/Sharding/Topology.h"
#include "tessera/Transforms/Pipeline/Timeline.h"
#include "tessera/Transforms/StepTimeline.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera::pipeline {

/// What a device of one function does.
struct PartTimeline {
  mlir::func::FuncOp function;
  double seconds = 0;        ///< until its end
  double computeSeconds = 0; ///< of that
  std::vector<dist::StepTimeline::Entry> entries;
};

/// All functions of the local view.
struct StepReport {
  std::vector<PartTimeline> parts; ///< in the order of the module
  double seconds = 0; ///< until the last part of a program ends; programs one after the other
  std::optional<PipelineTimeline> pipeline; ///< where functions have segments
};

/// Simulates a step: each function does its ops in their order, a receive waits for its send.
/// Fails, with an error, where a collective is not one of its mesh.
mlir::FailureOr<StepReport> simulateStep(mlir::ModuleOp module, const sharding::Topology &topology);

} // namespace tessera::pipeline

#endif // TESSERA_TRANSFORMS_PIPELINE_SIMULATESTEP_H
