//===- Pipeline.h - The phases by name --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_PIPELINE_H
#define TESSERA_DRIVER_PIPELINE_H

#include "tessera/Driver/Commands.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace tessera {

/// The phases of a program, in order. A phase is the IR after the passes that lead to it.
enum class Phase {
  input,       ///< as parsed
  normalized,  ///< dist-guard, dist-normalize
  propagated,  ///< dist-propagate, or dist-search
  resharded,   ///< dist-sink-partials, dist-insert-reshards, dist-widen-partials
  planned,     ///< dist-plan-reshards
  partitioned, ///< dist-partition, dist-canonicalize-collectives
  fused,       ///< dist-limit-memory under a budget, dist-fuse-collectives
  scheduled,   ///< dist-overlap-collectives; input of code generation
};

/// "input", "normalized", …
llvm::StringRef toString(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef name);
/// "input, normalized, …", for messages.
std::string phaseNames();

/// Options of the passes from phase `from` to phase `to`.
struct PipelineOptions {
  Phase from = Phase::input;
  Phase to = Phase::scheduled;
  std::string objective = "time"; ///< of reshard plans: time or bytes
  bool recuts = true;             ///< of dist-propagate
  bool marksRecuts = false;       ///< of dist-propagate
  bool narrowReductions = false;  ///< 16-bit contributions are rounded before they are added
  std::string attentionSequence = "auto"; ///< gather, ring; auto: gather, the driver tries both
  std::vector<int64_t> rings;             ///< kinds of attentions (dist-ring-attention); empty: all
  std::string schedule;                   ///< of a pipeline's micro-batches, empty: the program's
  bool overlaps = false;                  ///< overlap computation with collectives
  bool dividesUpdates = true;             ///< among the devices whose gradients are summed
  std::string topology;                   ///< file of the machine, empty for the default
  bool remarks = false;                   ///< on choices and their reasons
  SearchRequest search;                   ///< without a mode annotations decide
  bool takeLeast = false;                 ///< exceed the memory budget instead of failing
  std::string fusion = ""; ///< options of dist-fuse-collectives, empty for its defaults
};

/// Whether this is auto, gather or ring.
bool isAttentionSequence(llvm::StringRef name);

/// The parts of the phases `fused` and `scheduled`: the order of the ops before collectives are
/// joined, the joins, and the overlap.
void addLocalOrder(mlir::OpPassManager &manager, const PipelineOptions &options);
mlir::LogicalResult addFusion(mlir::OpPassManager &manager, const PipelineOptions &options);
void addOverlap(mlir::OpPassManager &manager, const PipelineOptions &options);

/// Adds the passes that lead from one phase to the other. Fails on unknown option values.
mlir::LogicalResult buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

/// Registers the pipeline as `--tessera-pipeline="compile-from=… compile-to=…"`.
void registerPipeline();
/// Registers every dialect that a program may use, and the extensions for inlining and interfaces.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace tessera

#endif // TESSERA_DRIVER_PIPELINE_H
