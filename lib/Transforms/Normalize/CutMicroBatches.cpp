//===- CutMicroBatches.cpp - Devices that share a micro-batch -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CutsBehind.h"

#include "tessera/Transforms/MicroBatches.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// The dimension of a tensor of which a loop takes one element in each iteration.
static std::optional<int64_t> dimOfIterations(tensor::ExtractSliceOp op) {
  for (int64_t d = 0; d < op.getSourceType().getRank(); ++d) {
    auto loop = dyn_cast_or_null<scf::ForOp>(op->getParentOp());
    OpFoldResult offset = op.getMixedOffsets()[d];
    if (loop && isa<Value>(offset) && cast<Value>(offset) == loop.getInductionVar() &&
        op.getStaticSizes()[d] == 1)
      return d;
  }
  return std::nullopt;
}

/// Whether indices are some of others, which a program takes in turn.
static bool arePart(Value indices) {
  for (;;) {
    Operation *op = indices.getDefiningOp();
    if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op)) {
      if (slice.getType().getNumElements() < slice.getSourceType().getNumElements())
        return true;
      indices = slice.getSource();
    } else if (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op)) {
      indices = op->getOperand(0);
    } else {
      // Corrections of negative ones, and clamps: the last operand is what they correct.
      auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
      if (!linalgOp || linalgOp.getNumReductionLoops() > 0 || linalgOp.getNumDpsInputs() == 0)
        return false;
      indices = linalgOp.getDpsInputs().back();
    }
  }
}

/// Parts of a batch: the reshape that divides it where a loop takes one in each iteration, or the
/// look-up of its rows by part of a permutation.
static llvm::SetVector<Operation *> findParts(ModuleOp module) {
  llvm::SetVector<Operation *> parts;
  module.walk([&](tensor::ExtractSliceOp op) {
    auto expand = op.getSource().getDefiningOp<tensor::ExpandShapeOp>();
    std::optional<int64_t> dim = dimOfIterations(op);
    if (!expand || !dim)
      return;
    for (const ReassociationIndices &group : expand.getReassociationIndices())
      if (group.size() > 1 && group.front() == *dim)
        parts.insert(expand);
  });
  module.walk([&](linalg::GenericOp op) {
    OpOperand *table = hasPlainMaps(op) ? tableOf(op) : nullptr;
    if (table && llvm::any_of(op.getDpsInputs(),
                              [&](Value input) { return input != table->get() && arePart(input); }))
      parts.insert(op);
  });
  return parts;
}

/// The axes that shall cut each dimension of the parts: those of the rows that they are made of.
/// None unless they cut a dimension anew.
static std::optional<Cuts> cutsOfParts(Operation *op, const MeshTable &meshes) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  std::optional<Cuts> wanted;
  llvm::SmallDenseSet<int64_t> divided;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    std::optional<Cuts> batch = cutsBehind(expand.getSrc(), meshes);
    if (!batch || !type.hasStaticShape())
      return std::nullopt;
    wanted = Cuts{batch->mesh, SmallVector<sharding::AxisList>(type.getRank())};
    for (auto [d, group] : llvm::enumerate(expand.getReassociationIndices())) {
      // Dimensions that are not divided keep their cuts.
      int64_t to = group.size() > 1 ? group[1] : group[0];
      wanted->dims[to] = batch->dims[d];
      if (group.size() > 1)
        divided.insert(to);
    }
  } else {
    auto generic = cast<linalg::GenericOp>(op);
    wanted = cutsBehind(op->getResult(0), meshes);
    AffineMap table = generic.getMatchingIndexingMap(tableOf(generic)),
              map = generic.getMatchingIndexingMap(generic.getDpsInitOperand(0));
    for (auto [d, expr] : llvm::enumerate(map.getResults()))
      if (!table.getResultPosition(expr))
        divided.insert(d);
  }
  if (!wanted)
    return std::nullopt;
  bool isCut = false;
  for (auto [d, axes] : llvm::enumerate(wanted->dims)) {
    int64_t devices = sharding::sizeOf(axes);
    if (devices > 1 && type.getDimSize(d) % devices == 0)
      isCut |= divided.contains(d);
    else
      axes.clear();
  }
  return isCut ? wanted : std::nullopt;
}

bool dist::cutMicroBatches(ModuleOp module) {
  MeshTable meshes(module);
  bool hasCut = false;
  for (Operation *op : findParts(module)) {
    std::optional<Cuts> wanted = cutsOfParts(op, meshes);
    if (!wanted)
      continue;
    Value value = op->getResult(0);
    const sharding::Mesh &mesh = meshes.get(wanted->mesh);
    auto parts = sharding::TensorSharding::allOpen(mesh, wanted->dims.size());
    for (auto [dim, axes] : llvm::zip_equal(parts.dims, wanted->dims)) {
      dim = axes;
      llvm::erase_if(parts.open, [&](const sharding::AxisRef &axis) {
        return llvm::any_of(axes,
                            [&](const sharding::AxisRef &cut) { return cut.axis == axis.axis; });
      });
    }
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto cut =
        ShardTensorOp::create(builder, op->getLoc(), value.getType(), value,
                              ShardingAttr::get(wanted->mesh, mesh, parts, op->getContext()));
    value.replaceAllUsesExcept(cut, cut);
    hasCut = true;
  }
  return hasCut;
}
