//===- Passes.td - Pipelines --------------------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PIPELINE_PASSES
#define TESSERA_TRANSFORMS_PIPELINE_PASSES

include "mlir/Pass/PassBase.td"

def DistSchedulePipeline : Pass<"dist-schedule-pipeline", "::mlir::ModuleOp"> {
  let summary = "Order the micro-batches of a pipeline, mesh by mesh";
  let description = [{
    Reads stages and micro-batches off the parts of a program in the local view whose function has `dist.schedule`: what
    a micro-batch does on one mesh between two transfers is a segment, the forward or the backward pass of a stage, or
    its weights' gradients. The pass puts the segments of each part in the order of the schedule, each behind a
    `dist.segment`, so that a stage works on one micro-batch while the next stage works on the one before: a send waits
    for nobody, a receive stands where its value is read. It computes the same bits in every schedule.

    The meshes must form a chain; micro-batches must not read each other's values, but sums over them are theirs in order.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"",
           "sequential, gpipe, 1f1b, interleaved, zb-h1, or auto: the one with the shortest modelled step within the budget; "
           "default what the functions say">,
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB a device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "of auto: topology file (JSON)">,
  ];
  let dependentDialects = ["::tessera::dist::DistDialect"];
}

#endif // TESSERA_TRANSFORMS_PIPELINE_PASSES
