//===- Models.h - Models of ShardingRuleOpInterface -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_DIST_RULES_MODELS_H
#define TESSERA_LIB_DIALECT_DIST_RULES_MODELS_H

#include "tessera/Dialect/Dist/Rules/BlockReshapes.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// Attach the models of ops of loaded dialects; those of the tensor dialect are in two files.
void attachElementwiseRules(mlir::MLIRContext *context);
void attachLinalgRules(mlir::MLIRContext *context);
void attachRearrangeRules(mlir::MLIRContext *context);
void attachSliceRules(mlir::MLIRContext *context);
void attachTensorRules(mlir::MLIRContext *context);

/// Whether a factor is a dimension of every tensor of an op, of which it reads the same iteration.
bool isInAllTensors(mlir::Operation *op, int64_t factor);

/// An op that only moves elements.
template <typename Model, typename Op>
struct TensorModel : ShardingRuleOpInterface::ExternalModel<Model, Op> {
  int64_t getOperationsPerIteration(mlir::Operation *) const { return 0; }
  bool isEquivariant(mlir::Operation *op, int64_t factor) const {
    return isInAllTensors(op, factor);
  }
};

/// Linearity of a linalg op, derived from its body (Linearity.cpp).
bool passesPartialThroughBody(mlir::linalg::LinalgOp op, sharding::ReduceKind kind,
                              llvm::ArrayRef<int64_t> operands, llvm::ArrayRef<int64_t> unknown);
/// The same for an `arith` or `math` op on tensors, for sums.
bool passesSumElementwise(mlir::Operation *op, llvm::ArrayRef<int64_t> operands,
                          llvm::ArrayRef<int64_t> unknown);

/// A device's part of a result made of segments of the operands, one per operand, along dimension
/// `dim`, which `factor` cuts; the operands have been moved to the windows that its rule requires.
/// Elements outside of all segments are `fill`, null if there are none.
mlir::Value assembleSegments(PartitionContext &context, int64_t dim, int64_t factor,
                             llvm::ArrayRef<sharding::Segment> segments, mlir::Attribute fill);

/// A reshape between a dimension and its blocks (BlockReshapes.h): its rule, the time of its
/// exchange, and the op on a device's part if the dimension is cut.
sharding::ShardingRule blockReshapeRule(const BlockReshape &reshape);
double blockReshapeSeconds(const BlockReshape &reshape, const sharding::FactorAxes &axes,
                           const sharding::Mesh &mesh, sharding::ReshardPlanner &planner);
mlir::Value partitionBlockReshape(const BlockReshape &reshape, PartitionContext &context);

/// A linalg op on a device's part of its tensors (LinalgPartition.cpp).
mlir::FailureOr<llvm::SmallVector<mlir::Value>> partitionLinalg(mlir::linalg::LinalgOp op,
                                                                PartitionContext &context);

} // namespace tessera::dist

#endif // TESSERA_LIB_DIALECT_DIST_RULES_MODELS_H
