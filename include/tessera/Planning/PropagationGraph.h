//===- PropagationGraph.h - Tensors and the rules between them --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_PROPAGATIONGRAPH_H
#define TESSERA_PLANNING_PROPAGATIONGRAPH_H

#include "tessera/Planning/ShardingPool.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/RuleTable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>

namespace tessera::dist {

class MeshAssignment;

/// The state of one tensor. Values tied by a loop (its argument and its result) are one tensor.
struct TensorState {
  const sharding::Mesh *mesh;
  mlir::FlatSymbolRefAttr meshName;
  mlir::RankedTensorType type;
  const sharding::TensorSharding &given;    ///< the annotation; all open without one
  const sharding::TensorSharding *sharding; ///< from the pool; `open`: axes that may still be added
  bool isFixed;                             ///< of control flow: keeps the propagated sharding
  int64_t bytes;
  int64_t priority;                ///< round in which its annotation starts to spread
  mlir::Location loc;              ///< where it is defined, for origins
  std::string name;                ///< for arguments and results
  mlir::Operation *loop = nullptr; ///< that carries it: fixed, unless the whole loop is cut again
};

/// A rule over tensors: operands first, then results; -1 for values that are not tensors. Nodes
/// with the same rule have tensors of the same types.
struct RuleNode {
  mlir::Operation *op; ///< null for a tie of control flow
  const sharding::ShardingRule &rule;
  llvm::SmallVector<int64_t, 4> tensors;
};

/// The tensors of one function and the rules between them, in program order.
class PropagationGraph {
public:
  /// Fails with a located error if the operands of an op are on different meshes.
  static mlir::FailureOr<std::unique_ptr<PropagationGraph>> build(mlir::func::FuncOp function,
                                                                  const MeshTable &meshes);
  /// For a function in which the operands of each op are known to be on one mesh.
  PropagationGraph(mlir::func::FuncOp function, const MeshTable &meshes);

  /// The function's ops in program order, without the bodies of linalg ops.
  std::vector<mlir::Operation *> ops;
  std::vector<TensorState> tensors;
  std::vector<RuleNode> nodes;
  /// For each tensor its nodes, ascending.
  std::vector<llvm::SmallVector<int64_t, 4>> nodesOf;
  /// Tensors of the function's results, -1 for scalars.
  std::vector<int64_t> results;
  /// For each result the argument on the same mesh that it feeds, else -1.
  std::vector<int64_t> fed;

  /// The tensor that is returned as a result of the function.
  int64_t returned(size_t result) const;
  /// Whether a result of the function has no placement: none on itself, on the returned value, or
  /// on the argument that it feeds.
  bool isOpenResult(size_t result) const;
  /// The axes that neither a result nor the argument that it feeds has a placement on.
  sharding::AxisList openAxesOfState(size_t result) const;

  /// The rule of a node and the shardings of its tensors: the key for caching a propagation step.
  AddressKey keyOf(const RuleNode &node) const;
  /// The pool's copy, valid as long as the graph and its copies.
  const sharding::TensorSharding *keep(sharding::TensorSharding sharding) const {
    return shared->pool.keep(std::move(sharding));
  }
  /// -1 when the value is not a tensor.
  int64_t tensorOf(mlir::Value value) const;

private:
  PropagationGraph(mlir::func::FuncOp function, const MeshTable &meshes,
                   const MeshAssignment &assignment);
  int64_t addTensor(mlir::RankedTensorType type, mlir::FlatSymbolRefAttr mesh, ShardingAttr given,
                    mlir::Location loc, std::string name = {});
  void addValue(mlir::Value value, mlir::FlatSymbolRefAttr mesh, ShardingAttr given = {});
  void tie(int64_t a, int64_t b);
  int64_t fedArgument(mlir::func::FuncOp function, unsigned index, int64_t result) const;
  void define(mlir::Operation *op, const MeshAssignment &assignment);
  void addOp(mlir::Operation *op);
  void addReturn(mlir::func::FuncOp function, mlir::func::ReturnOp ret);
  void addControlFlow(mlir::RegionBranchOpInterface op);

  const sharding::TensorSharding *allOpen(const sharding::Mesh &mesh, int64_t rank);
  bool isOpen(int64_t tensor) const; ///< whether it has no annotation

  const MeshTable &meshes;
  /// Data that nodes and tensors refer to; shared by copies of a graph.
  struct Shared {
    RuleTable rules;
    ShardingPool pool;
    /// By mesh and rank; looked up only.
    llvm::DenseMap<std::pair<const sharding::Mesh *, int64_t>, const sharding::TensorSharding *>
        open;
  };
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  llvm::DenseMap<mlir::Value, int64_t> index;
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_PROPAGATIONGRAPH_H
