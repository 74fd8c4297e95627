//===- RolledPipelines.h - Pipelines that are loops -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pipeline on one mesh: a loop carries a state with a dimension of stages, which a mesh
// axis cuts. Each iteration computes every stage, moves the results by one stage, and
// replaces what the first stage reads. A value passes S stages in S iterations, so of T
// iterations S - 1 fill and drain the pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PIPELINE_ROLLEDPIPELINES_H
#define TESSERA_TRANSFORMS_PIPELINE_ROLLEDPIPELINES_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace tessera::pipeline {

/// Such a loop, as the report describes it.
struct RolledPipeline {
  std::string loc; ///< of the loop: file, line and column
  int64_t stages = 1;
  int64_t iterations = 1; ///< of the loop, at least as many as stages

  int64_t microBatches() const { return iterations - stages + 1; }
  /// Share of the iterations' work with unused results.
  double bubble() const {
    return static_cast<double>(stages - 1) / static_cast<double>(iterations);
  }
};

/// Whether a dimension of a carry is one of stages: a product has different weights for each, the
/// results move by one, and one of them is replaced.
bool isOfStages(mlir::scf::ForOp loop, unsigned carry, int64_t dim);

/// The loops of a module in the global view that are pipelines, in program order: those of a
/// derivative, which move values back, too. Values must have shardings.
std::vector<RolledPipeline> findRolledPipelines(mlir::ModuleOp module);

/// On modules: what `findRolledPipelines` found, for the report of later phases.
inline constexpr llvm::StringLiteral kRolledPipelines = "dist.rolled_pipelines";
/// Writes the attribute, if there are any.
void setRolledPipelines(mlir::ModuleOp module, const std::vector<RolledPipeline> &pipelines);
std::vector<RolledPipeline> getRolledPipelines(mlir::ModuleOp module);

} // namespace tessera::pipeline

#endif // TESSERA_TRANSFORMS_PIPELINE_ROLLEDPIPELINES_H
