//===- Partitioner.h - State of a partition ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_PARTITION_PARTITIONER_H
#define TESSERA_LIB_TRANSFORMS_PARTITION_PARTITIONER_H

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Planning/CostOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::dist {

/// The local function of one distinct set of devices, under construction.
struct Part {
  Part(mlir::MLIRContext *context, mlir::FlatSymbolRefAttr mesh, mlir::SmallVector<int64_t> devices)
      : mesh(mesh), devices(std::move(devices)), builder(context) {}

  mlir::FlatSymbolRefAttr mesh;       ///< the first mesh seen with these devices
  mlir::SmallVector<int64_t> devices; ///< process ids, ascending
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  mlir::IRMapping mapping;             ///< global values to local ones
  llvm::DenseSet<mlir::Value> missing; ///< scalars that this part cannot compute
};

/// Rewrites one function of the global view into its local functions.
class Partitioner {
public:
  Partitioner(mlir::func::FuncOp global, const MeshTable &meshes, const CostOptions &cost,
              bool remarks)
      : global(global), meshes(meshes), shardings(meshes),
        planner(plannerOf(global.getContext(), cost.objective, cost.topology)), remarks(remarks) {}

  mlir::LogicalResult run();

private:
  // Structure (Partition.cpp).
  void createParts();
  void createFunction(Part &part, unsigned index);
  Part &partOf(mlir::FlatSymbolRefAttr mesh);
  /// The parts whose devices execute any of `op`.
  mlir::SmallVector<Part *> partsOf(mlir::Operation *op);
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerReturn(mlir::func::ReturnOp op);
  mlir::LogicalResult checkAvailable(mlir::Operation *op, Part &part);

  // Scalars (PartitionScalars.cpp).
  /// Fills `part.missing`: each part with all operands of a scalar computes it.
  void findMissing(Part &part);
  /// Whether `part` has this value: a tensor of its mesh, or a scalar that it computes.
  bool has(Part &part, mlir::Value value);
  /// The part whose function returns operand `index` of `op`; null if there is none.
  Part *returnedBy(mlir::func::ReturnOp op, unsigned index);

  // Loops and branches (PartitionControlFlow.cpp).
  /// The parts that execute a loop or branch: those with tensors in it, which need `controlValues`
  /// (bounds, conditions), and those that compute a scalar by it.
  mlir::FailureOr<mlir::SmallVector<Part *>> activeParts(mlir::Operation *op,
                                                         mlir::ValueRange controlValues);
  /// Indices of the values that a part has.
  mlir::SmallVector<unsigned> keptBy(Part &part, mlir::ValueRange values);
  /// The type that a value has in a part.
  mlir::Type typeIn(mlir::Value value);
  /// The operands of a loop or branch, or of the end of one of its regions, that a part has.
  mlir::SmallVector<mlir::Value> operandsIn(Part &part, mlir::Operation *op);
  /// A part's loop or branch with empty regions, and its mapping of a region's arguments.
  mlir::Operation *openControlFlow(Part &part, mlir::Operation *op);
  void openRegion(Part &part, mlir::Region &from, mlir::Region &to);
  mlir::LogicalResult lowerControlFlow(mlir::RegionBranchOpInterface op);

  // Ops on tensors (PartitionOp.cpp).
  class OpContext;
  mlir::LogicalResult checkOperands(mlir::Operation *op);
  mlir::LogicalResult lowerOnTensors(mlir::Operation *op, Part &part);

  // Reshards (PartitionReshard.cpp).
  mlir::LogicalResult lowerReshard(ReshardOp op);
  /// Converts a value to another mesh over the same devices.
  mlir::Value exchangeMeshes(Part &part, ReshardOp op, mlir::Value local, ShardingAttr from,
                             ShardingAttr to, mlir::Attribute reason);
  /// Emits the collectives of a chain within one part.
  mlir::Value emitSteps(Part &part, mlir::Location loc, mlir::Value local,
                        mlir::RankedTensorType global, mlir::FlatSymbolRefAttr mesh,
                        llvm::ArrayRef<sharding::Move> steps, mlir::Attribute reason,
                        mlir::Attribute fill = {});
  mlir::Value emit(Part &part, mlir::Location loc, mlir::Value local, mlir::RankedTensorType global,
                   mlir::FlatSymbolRefAttr mesh, const sharding::Move &move, mlir::Attribute reason,
                   mlir::Attribute fill);
  /// Plans and emits the collectives by which an op communicates inside. Only the op's `partition`
  /// makes the values that they move, so dist-plan-reshards cannot plan them.
  mlir::Value moveInside(Part &part, mlir::Operation *op, mlir::Value local,
                         mlir::RankedTensorType global, mlir::FlatSymbolRefAttr mesh,
                         const sharding::TensorSharding &source,
                         const sharding::TensorSharding &target, const mlir::Twine &reason);

  // Moves of selected elements (PartitionSelection.cpp).
  /// A tensor of selected elements, a device's part of it, and its move.
  struct Selected {
    mlir::Value local;
    mlir::RankedTensorType global;
    sharding::TensorSharding source, target;
  };
  /// Whether a move needs to select elements.
  static bool selects(const sharding::TensorSharding &source,
                      const sharding::TensorSharding &target);
  /// The sharding of the dense tensor of a layout's (possibly selected) elements.
  static sharding::TensorSharding denseShardingOf(const sharding::Layout &layout);
  /// The move of the elements that the target selects, collected from the device's buffer.
  Selected select(Part &part, mlir::Location loc, mlir::Value local, mlir::RankedTensorType global,
                  mlir::FlatSymbolRefAttr mesh, const sharding::TensorSharding &source,
                  const sharding::TensorSharding &target);
  /// Packs the elements of `held` from a buffer with layout `has`.
  mlir::Value collect(Part &part, mlir::Location loc, mlir::Value local,
                      mlir::FlatSymbolRefAttr mesh, const sharding::Layout &has,
                      const sharding::Layout &held);

  // Helpers.
  sharding::TensorSharding shardingOf(mlir::Value value);
  mlir::RankedTensorType localTypeOf(mlir::Value value);
  /// Annotates a local value with sharding and global type, and maps the global value to it.
  void define(Part &part, mlir::Value global, mlir::Value local);
  void annotate(mlir::Value local, ShardingAttr sharding, mlir::RankedTensorType global);
  /// This device's linear index over axes, computed once at the head of the function.
  mlir::Value axisIndex(Part &part, mlir::FlatSymbolRefAttr mesh, const sharding::AxisList &axes);

  mlir::func::FuncOp global;
  const MeshTable &meshes;
  OpShardings shardings;
  sharding::ReshardPlanner &planner; ///< of ops that communicate inside
  bool remarks;                      ///< on their collectives
  std::vector<std::unique_ptr<Part>> parts;
  /// The part of each mesh: meshes of the same devices share one.
  llvm::DenseMap<mlir::Attribute, Part *> partsOfMeshes;
  std::map<std::pair<Part *, std::pair<std::string, sharding::AxisList>>, mlir::Value> axisIndices;
  /// The parts that execute each visited loop and branch (looked up, never iterated).
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Part *>> executed;
  int64_t nextTransfer = 0;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_PARTITION_PARTITIONER_H
