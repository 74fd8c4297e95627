//===- DistPipeline.td - Segments of a pipeline ------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIST_PIPELINE
#define TESSERA_DIST_PIPELINE

include "tessera/Dialect/Dist/IR/DistBase.td"

def Dist_SegmentOp : Op<Dist_Dialect, "segment"> {
  let summary = "Marks the start of one pass of one micro-batch through one stage";
  let description = [{
    ```mlir
    dist.segment "forward" of 0 in 1
    ```
    `dist-schedule-pipeline` inserts it in functions of the local view, before the ops of each segment: the
    `"forward"` or `"backward"` pass of a micro-batch through a stage, its `"weight"` gradients, or the `"update"` at
    the end of the step, which belongs to no micro-batch. It has no effect at run time. No kernel fuses ops of two
    segments, so that a program computes the same bits in every schedule.
  }];
  let arguments = (ins StrAttr:$pass, I64Attr:$micro_batch, I64Attr:$stage);
  let assemblyFormat = "$pass `of` $micro_batch `in` $stage attr-dict";
  let hasVerifier = 1;
}

#endif // TESSERA_DIST_PIPELINE
