//===- Pipeline.h - The phases by name --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PHASES_PIPELINE_H
#define TESSERA_PHASES_PIPELINE_H

#include "tessera/Phases/Options.h"

#include "mlir/Pass/PassManager.h"

#include <string>

namespace tessera {

/// The phases of a program, in order. A phase is the IR after the passes that lead to it
/// (docs/architecture.md has all of them); here the main one.
enum class Phase {
  input,       ///< as parsed
  normalized,  ///< canonical forms: dist-normalize
  propagated,  ///< shardings everywhere: dist-propagate or dist-search
  resharded,   ///< explicit changes of sharding: dist-insert-reshards
  planned,     ///< chains of collectives: dist-plan-reshards
  partitioned, ///< the local view: dist-partition
  fused,       ///< joined collectives: dist-fuse-collectives
  scheduled,   ///< overlapped collectives: dist-overlap-collectives; input of code generation
};

/// "input", "normalized", …
llvm::StringRef toString(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef name);
/// "input, normalized, …", for messages.
std::string phaseNames();

/// Options of the passes from phase `from` to phase `to`.
struct PipelineOptions : PlanOptions {
  PipelineOptions() = default;
  explicit PipelineOptions(const PlanOptions &plan) : PlanOptions(plan) {}

  Phase from = Phase::input;
  Phase to = Phase::scheduled;
  bool overlaps = false;       ///< overlap computation with collectives
  bool recuts = true;          ///< of dist-propagate
  bool latencies = false;      ///< of dist-propagate
  bool marksRecuts = false;    ///< of dist-propagate
  std::vector<int64_t> rings;  ///< kinds of attentions (dist-ring-attention); empty: all
  bool dividesUpdates = true;  ///< among the devices whose gradients are summed
  bool keepsAttention = false; ///< as one op, for targets with kernels for it
  bool takeLeast = false;      ///< exceed the memory budget instead of failing
};

/// The parts of the phases `fused` and `scheduled`: the order of the ops before collectives are
/// joined, the joins, and the overlap.
void addLocalOrder(mlir::OpPassManager &manager, const PipelineOptions &options);
mlir::LogicalResult addFusion(mlir::OpPassManager &manager, const PipelineOptions &options);
void addOverlap(mlir::OpPassManager &manager, const PipelineOptions &options);

/// Adds the passes that lead from one phase to the other. Fails on unknown option values.
mlir::LogicalResult buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

} // namespace tessera

#endif // TESSERA_PHASES_PIPELINE_H
