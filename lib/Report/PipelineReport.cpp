//===- PipelineReport.cpp - A pipeline in the report ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineReport.h"

#include "tessera/Report/Report.h"

#include "llvm/Support/Format.h"

using namespace tessera;
using namespace tessera::pipeline;

llvm::json::Object tessera::toJson(const PipelineTimeline &timeline) {
  using llvm::json::Array;
  using llvm::json::Object;
  const Shape &shape = timeline.shape;
  Array meshes;
  for (const MeshTimeline &mesh : timeline.meshes) {
    Array seconds;
    for (const Times &times : mesh.seconds)
      seconds.push_back(Object{
          {"forward", times.forward}, {"backward", times.backward}, {"weight", times.weight}});
    meshes.push_back(Object{{"mesh", mesh.mesh},
                            {"order", text(mesh.segments, shape.chunks > 1)},
                            {"micro_batches_alive", mesh.alive},
                            {"modelled_busy_seconds", mesh.busy},
                            {"modelled_seconds", std::move(seconds)}});
  }
  return Object{{"schedule", std::string(toString(timeline.schedule))},
                {"stages", shape.meshes * shape.chunks},
                {"micro_batches", shape.microBatches},
                {"bubble_formula", timeline.formulaIdle},
                {"bubble_modelled", timeline.modelledIdle},
                {"modelled_seconds", timeline.span},
                {"meshes", std::move(meshes)}};
}

llvm::json::Array tessera::toJson(const std::vector<RolledPipeline> &pipelines) {
  llvm::json::Array list;
  for (const RolledPipeline &each : pipelines)
    list.push_back(llvm::json::Object{{"loc", each.loc},
                                      {"stages", each.stages},
                                      {"micro_batches", each.microBatches()},
                                      {"iterations", each.iterations},
                                      {"bubble", each.bubble()}});
  return list;
}

void Report::printRolledPipelines(llvm::raw_ostream &os) const {
  for (const RolledPipeline &each : rolledPipelines)
    os << "pipeline in a loop" << (each.loc.empty() ? "" : " at " + each.loc) << ": " << each.stages
       << " stages, " << each.microBatches()
       << (each.microBatches() == 1 ? " micro-batch" : " micro-batches")
       << llvm::format("; bubble %.1f %%, which computes unused values\n", 100 * each.bubble());
}

void Report::printPipeline(llvm::raw_ostream &os) const {
  const Shape &shape = pipeline->shape;
  os << "pipeline: " << std::string(toString(pipeline->schedule)) << ", "
     << shape.meshes * shape.chunks << " stages on " << shape.meshes << " meshes, "
     << shape.microBatches << " micro-batches; bubble "
     << llvm::format("%.1f %% by formula, %.1f %% modelled", 100 * pipeline->formulaIdle,
                     100 * pipeline->modelledIdle)
     << "\n";
  for (const MeshTimeline &mesh : pipeline->meshes)
    os << "  @" << mesh.mesh << "  " << mesh.alive
       << (mesh.alive == 1 ? " micro-batch" : " micro-batches") << " alive  "
       << text(mesh.segments, shape.chunks > 1) << "\n";
}
