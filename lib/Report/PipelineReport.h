//===- PipelineReport.h - A pipeline in the report --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_REPORT_PIPELINEREPORT_H
#define TESSERA_LIB_REPORT_PIPELINEREPORT_H

#include "tessera/Transforms/Pipeline/RolledPipelines.h"
#include "tessera/Transforms/Pipeline/Timeline.h"

#include "llvm/Support/JSON.h"

namespace tessera {

/// The object `pipeline` of docs/report.md.
llvm::json::Object toJson(const pipeline::PipelineTimeline &timeline);
/// The list `rolled_pipelines`.
llvm::json::Array toJson(const std::vector<pipeline::RolledPipeline> &pipelines);

} // namespace tessera

#endif // TESSERA_LIB_REPORT_PIPELINEREPORT_H
