//===- StageGraph.h - Stages and micro-batches of a program -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Classifies the ops of the parts of a program in the local view:
//
//   head       no micro-batch, and several read it: weights that are converted
//   segment    a pass of a micro-batch through a stage
//   update     what follows the last micro-batch: the last sums, the optimizer
//
// An op without a mark belongs to the latest micro-batch that it reads, or to its only
// reader. The level of an op is the number of transfers on the longest path to it within
// its micro-batch; with T stages, stage t runs forward at level t and backward at level 2
// (T - 1) - t. The ops of a backward pass that lead to no send compute the weight
// gradients.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PIPELINE_STAGEGRAPH_H
#define TESSERA_LIB_TRANSFORMS_PIPELINE_STAGEGRAPH_H

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Transforms/Pipeline/Schedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <map>

namespace tessera::pipeline {

/// The ops of one part, each list in program order.
struct StageOps {
  mlir::func::FuncOp function;
  std::vector<mlir::Operation *> head, update;
  /// By pass, micro-batch and chunk; a segment may have no ops.
  std::map<std::tuple<Pass, int64_t, int64_t>, std::vector<mlir::Operation *>> segments;
};

class StageGraph {
public:
  /// Reads the parts of one program, functions of one block. Emits an error and fails if they are
  /// not a pipeline.
  mlir::LogicalResult read(llvm::ArrayRef<mlir::func::FuncOp> functions);

  const Shape &getShape() const { return shape; }
  /// In the order in which a micro-batch visits them, without other parts.
  const std::vector<StageOps> &getStages() const { return stages; }

private:
  struct Node {
    size_t part = 0;
    bool isMarked = false, leadsToMarked = false, isBackward = false;
    int64_t microBatch = -1; ///< -1: none; the number of micro-batches: the update
    int64_t level = 0;
    llvm::SmallVector<mlir::Operation *> sources;
  };
  Node &at(mlir::Operation *op) { return nodes.find(op)->second; }

  mlir::LogicalResult sortOps();
  void visit(mlir::Operation *op, size_t part);
  void findLeading();
  void followSources();
  void joinReaders();
  void followReaders(Node &node, llvm::ArrayRef<mlir::Operation *> readers);
  mlir::LogicalResult findLevels();
  mlir::LogicalResult checkChain();
  void sortIntoSegments();
  mlir::Operation *firstAt(size_t part, int64_t level) const;
  llvm::StringRef meshOf(size_t part);

  std::vector<mlir::func::FuncOp> parts;
  std::vector<mlir::Operation *> ops;            ///< of all parts, operands first
  llvm::DenseMap<mlir::Operation *, Node> nodes; ///< looked up, never iterated
  std::map<int64_t, mlir::Operation *> sends;    ///< by id
  /// By part: the levels at which it works on micro-batches.
  std::vector<std::vector<int64_t>> levels;
  std::vector<size_t> chain; ///< parts by the level at which they are first
  int64_t lastForward = 0;   ///< level
  Shape shape;
  std::vector<StageOps> stages;
};

} // namespace tessera::pipeline

#endif // TESSERA_LIB_TRANSFORMS_PIPELINE_STAGEGRAPH_H
