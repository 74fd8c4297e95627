//===- CutsBehind.cpp - Cuts of what a value is read from -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CutsBehind.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

OpOperand *dist::tableOf(linalg::LinalgOp op) {
  auto generic = dyn_cast<linalg::GenericOp>(*op);
  if (!generic || generic.getNumReductionLoops() == 0 || generic.getNumDpsInits() != 1)
    return nullptr;
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (isLookedUp(generic, *operand))
      return operand;
  return nullptr;
}

bool dist::hasPlainMaps(linalg::LinalgOp op) {
  return op.getNumDpsInits() == 1 && llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
           return map.isProjectedPermutation();
         });
}

/// The cuts of a result by those of an operand. The rows that a look-up takes of a cut dimension
/// are cut as that is, in the first dimension of the result that the operand does not have.
static SmallVector<sharding::AxisList> cutsOfResult(linalg::LinalgOp op, OpOperand &operand,
                                                    ArrayRef<sharding::AxisList> cuts) {
  AffineMap from = op.getMatchingIndexingMap(&operand),
            to = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<sharding::AxisList> result(to.getNumResults());
  std::optional<unsigned> rows;
  for (auto [d, expr] : llvm::enumerate(to.getResults())) {
    if (std::optional<unsigned> at = from.getResultPosition(expr))
      result[d] = cuts[*at];
    else if (!rows)
      rows = d;
  }
  for (auto [axes, expr] : llvm::zip_equal(cuts, from.getResults()))
    if (rows && !to.getResultPosition(expr))
      llvm::append_range(result[*rows], axes);
  return result;
}

std::optional<Cuts> dist::cutsBehind(Value value, const MeshTable &meshes) {
  if (isa<BlockArgument>(value) || value.getDefiningOp<ShardTensorOp>()) {
    ShardingAttr attr = getSharding(value);
    if (!attr)
      return std::nullopt;
    return Cuts{attr.getMesh(),
                llvm::to_vector(resolveVerified(attr, meshes, value.getType()).dims)};
  }
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
    std::optional<Cuts> cuts = cutsBehind(collapse.getSrc(), meshes);
    if (!cuts)
      return std::nullopt;
    SmallVector<sharding::AxisList> merged;
    for (const ReassociationIndices &group : collapse.getReassociationIndices()) {
      merged.emplace_back();
      for (int64_t d : group)
        llvm::append_range(merged.back(), cuts->dims[d]);
    }
    return Cuts{cuts->mesh, std::move(merged)};
  }
  if (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>()) {
    std::optional<Cuts> cuts = cutsBehind(slice.getSource(), meshes);
    if (!cuts || slice.getDroppedDims().any())
      return std::nullopt;
    for (auto [axes, size, all] :
         llvm::zip_equal(cuts->dims, slice.getStaticSizes(), slice.getSourceType().getShape()))
      if (size != all)
        axes.clear();
    return cuts;
  }
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || !hasPlainMaps(op))
    return std::nullopt;
  OpOperand *read = op.getNumReductionLoops() > 0 ? tableOf(op)
                    : op.getNumDpsInputs() == 1   ? op.getDpsInputOperand(0)
                                                  : nullptr;
  std::optional<Cuts> cuts = read ? cutsBehind(read->get(), meshes) : std::nullopt;
  if (!cuts)
    return std::nullopt;
  return Cuts{cuts->mesh, cutsOfResult(op, *read, cuts->dims)};
}
