//===- Passes.td - Pipelines -------------------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PIPELINE_PASSES
#define TESSERA_TRANSFORMS_PIPELINE_PASSES

include "mlir/Pass/PassBase.td"

def DistSchedulePipeline : Pass<"dist-schedule-pipeline", "::mlir::ModuleOp"> {
  let summary = "Order the micro-batches of a pipeline on each mesh";
  let description = [{
    Derives stages and micro-batches from the parts of a program in the local view whose function has `dist.schedule`: the
    ops of a micro-batch on one mesh between two transfers are a segment, the forward or the backward pass of a stage, or
    the gradients of its weights. The pass puts the segments of each part in the order of the schedule, each after a
    `dist.segment`, so that a stage computes one micro-batch while the next stage computes the previous one. A send does not
    block, and a receive is placed before its first reader. The program computes the same bits in every schedule.

    The meshes must form a chain. Micro-batches must not read each other's values, except that sums over micro-batches are
    accumulated in order.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"",
           "sequential, gpipe, 1f1b, interleaved, zb-h1, or auto: the one with the shortest modelled step within the budget; "
           "default what the functions say">,
    Option<"memoryBudget", "memory-budget", "double", "0", "GiB per device; 0: no budget">,
    Option<"topology", "topology", "std::string", "\"\"", "of auto: topology file (JSON)">,
  ];
  let dependentDialects = ["::tessera::dist::DistDialect"];
}

#endif // TESSERA_TRANSFORMS_PIPELINE_PASSES
