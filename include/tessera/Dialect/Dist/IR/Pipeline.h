//===- Pipeline.h - Micro-batches, stages and their segments ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pipeline is a program on several meshes whose ops are marked with their
// micro-batch:
//
//   func.call @step(%w, %x0) {dist.micro_batch = 0 : i64}     every op of the callee
//   func.func @main(…) attributes {dist.schedule = "1f1b"}    the order of its parts
//
// `dist-normalize` copies the mark of a call to the inlined ops, `dist-autodiff` marks
// the ops that it creates with `dist.backward`, and `dist-partition` keeps both. Data
// flow restores marks that a rewrite drops (lib/Transforms/Pipeline/StageGraph.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_IR_PIPELINE_H
#define TESSERA_DIALECT_DIST_IR_PIPELINE_H

#include "tessera/Dialect/Dist/IR/Dist.h"

#define GET_OP_CLASSES
#include "tessera/Dialect/Dist/IR/DistPipeline.h.inc"

namespace tessera::dist {

/// The number of the micro-batch to which an op, or all of a call, belongs.
inline constexpr llvm::StringLiteral kMicroBatch = "dist.micro_batch";
/// On ops of a derivative.
inline constexpr llvm::StringLiteral kBackward = "dist.backward";
/// On functions: the name of the schedule of their micro-batches.
inline constexpr llvm::StringLiteral kSchedule = "dist.schedule";

inline constexpr llvm::StringLiteral kForwardPass = "forward";
inline constexpr llvm::StringLiteral kBackwardPass = "backward";
inline constexpr llvm::StringLiteral kWeightPass = "weight";
inline constexpr llvm::StringLiteral kUpdatePass = "update";

/// Copies the marks of `from` that `to` lacks.
void copyPipelineMarks(mlir::Operation *from, mlir::Operation *to);

/// Verifies one of these attributes; std::nullopt for other attributes.
std::optional<mlir::LogicalResult> verifyPipelineMark(mlir::Operation *op,
                                                      mlir::NamedAttribute attribute);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_IR_PIPELINE_H
