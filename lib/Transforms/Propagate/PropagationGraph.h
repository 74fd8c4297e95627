//===- PropagationGraph.h - Tensors and the rules that tie them -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATIONGRAPH_H
#define TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATIONGRAPH_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Sharding/ShardingRule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::dist {

/// What is known of one tensor so far. Values that a loop keeps equal (its argument and its result)
/// are one tensor.
struct TensorState {
  const sharding::Mesh *mesh = nullptr;
  mlir::FlatSymbolRefAttr meshName;
  mlir::RankedTensorType type;
  sharding::TensorSharding sharding; ///< `open`: the axes that may still be added
  sharding::TensorSharding given{};  ///< what the user wrote; all open where nothing
  bool isFixed = false;              ///< control flow hands it on: it lies as propagated
  int64_t bytes = 0;
  int64_t priority = 0; ///< round in which what the user wrote on it begins to spread
  mlir::Location loc;   ///< where it is defined, for origins
  std::string name;     ///< for arguments and results
};

/// A rule over tensors: operands first, then results; -1 for what is no tensor.
struct RuleNode {
  mlir::Operation *op = nullptr; ///< null for a tie of control flow
  sharding::ShardingRule rule;
  std::vector<int64_t> tensors;
};

/// The tensors of one function and the rules between them, in program order.
class PropagationGraph {
public:
  PropagationGraph(mlir::func::FuncOp function, const MeshTable &meshes);

  std::vector<TensorState> tensors;
  std::vector<RuleNode> nodes;
  /// For each tensor the nodes that it belongs to, ascending.
  std::vector<std::vector<int64_t>> nodesOf;
  /// Tensors of the function's results, -1 for scalars.
  std::vector<int64_t> results;
  /// For each result the argument on the same mesh that it feeds, else -1.
  std::vector<int64_t> fed;

  /// -1 when the value is no tensor.
  int64_t tensorOf(mlir::Value value) const;

private:
  int64_t addTensor(mlir::RankedTensorType type, mlir::FlatSymbolRefAttr mesh, ShardingAttr given,
                    mlir::Location loc, std::string name = {});
  void addValue(mlir::Value value, mlir::FlatSymbolRefAttr mesh, ShardingAttr given = {});
  void tie(mlir::Operation *at, int64_t a, int64_t b);
  int64_t fedArgument(mlir::func::FuncOp function, unsigned index, int64_t result) const;
  void addOp(mlir::Operation *op);
  void addControlFlow(mlir::Operation *op);

  const MeshTable &meshes;
  llvm::DenseMap<mlir::Value, int64_t> index;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_PROPAGATE_PROPAGATIONGRAPH_H
