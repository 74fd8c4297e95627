//===- CutMicroBatches.cpp - Devices that share a micro-batch -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Transforms/MicroBatches.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// The annotation of a value, or of one that it is computed from element by element.
static ShardingAttr annotationBehind(Value value) {
  for (;;) {
    if (isa<BlockArgument>(value) || value.getDefiningOp<ShardTensorOp>())
      return getSharding(value);
    auto op = value.getDefiningOp<linalg::LinalgOp>();
    if (!op || op.getNumDpsInputs() != 1 ||
        !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
      return {};
    value = op.getDpsInputs()[0];
  }
}

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

bool dist::cutMicroBatches(ModuleOp module) {
  MeshTable meshes(module);
  llvm::SetVector<Operation *> batches;
  module.walk([&](tensor::ExtractSliceOp op) {
    auto expand = op.getSource().getDefiningOp<tensor::ExpandShapeOp>();
    std::optional<int64_t> dim = dimOfIterations(op);
    if (!expand || !dim)
      return;
    for (const ReassociationIndices &group : expand.getReassociationIndices())
      if (group.size() > 1 && group.front() == *dim)
        batches.insert(expand);
  });
  bool hasCut = false;
  for (Operation *op : batches) {
    auto expand = cast<tensor::ExpandShapeOp>(op);
    ShardingAttr annotation = annotationBehind(expand.getSrc());
    if (!annotation || !expand.getResultType().hasStaticShape())
      continue;
    const sharding::Mesh &mesh = meshes.get(annotation.getMesh());
    sharding::TensorSharding batch = resolveVerified(annotation, meshes, expand.getSrc().getType());
    sharding::TensorSharding parts =
        sharding::TensorSharding::allOpen(mesh, expand.getResultType().getRank());
    sharding::AxisList taken;
    bool isCut = false;
    for (auto [d, group] : llvm::enumerate(expand.getReassociationIndices())) {
      // Dimensions that are not divided keep their cuts.
      int64_t to = group.size() > 1 ? group[1] : group[0];
      const sharding::AxisList &axes = batch.dims[d];
      int64_t devices = sharding::sizeOf(axes);
      if (devices == 1 || expand.getResultType().getDimSize(to) % devices != 0)
        continue;
      parts.dims[to] = axes;
      taken.insert(taken.end(), axes.begin(), axes.end());
      isCut |= group.size() > 1;
    }
    llvm::erase_if(parts.open, [&](const sharding::AxisRef &axis) {
      return llvm::any_of(taken,
                          [&](const sharding::AxisRef &cut) { return cut.axis == axis.axis; });
    });
    if (!isCut)
      continue;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto cut = ShardTensorOp::create(
        builder, op->getLoc(), expand.getResultType(), expand.getResult(),
        ShardingAttr::get(annotation.getMesh(), mesh, parts, op->getContext()));
    expand.getResult().replaceAllUsesExcept(cut, cut);
    hasCut = true;
  }
  return hasCut;
}
