//===- TakeSlices.cpp - Parts of arguments are read in place --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TakeSlices.h"

#include "StepOps.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// Whether only kernels of the same block read a part of an argument.
static bool isReadInPlace(dist::SliceOp op, Value operand, Value result) {
  auto argument = dyn_cast<BlockArgument>(operand);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp()) &&
         llvm::all_of(result.getUsers(), [&](Operation *user) {
           return user->getBlock() == op->getBlock() && isa<linalg::LinalgOp>(user) &&
                  classify(user) == StepKind::compute;
         });
}

void codegen::takeSlices(func::FuncOp function) {
  SmallVector<dist::SliceOp> slices(function.getOps<dist::SliceOp>());
  if (slices.empty())
    return;
  dist::MeshTable meshes(function->getParentOfType<ModuleOp>());
  for (dist::SliceOp op : slices) {
    auto dim = static_cast<int64_t>(op.getDim());
    auto axes = dist::resolveAxes(op.getAxesAttr(), meshes.get(op.getMeshAttr()),
                                  [&]() { return op.emitError(); });
    if (failed(axes))
      continue; // the verifier has rejected it
    int64_t devices = sharding::sizeOf(*axes);
    OpBuilder b(op);
    Location loc = op.getLoc();
    bool takesAll = true;
    for (auto [operand, result] : llvm::zip_equal(op.getOperands(), op.getResults())) {
      auto whole = cast<RankedTensorType>(operand.getType());
      auto part = cast<RankedTensorType>(result.getType());
      takesAll &= part.getDimSize(dim) * devices == whole.getDimSize(dim) &&
                  isReadInPlace(op, operand, result);
    }
    if (!takesAll)
      continue;
    Value index =
        dist::AxisIndexOp::create(b, loc, b.getIndexType(), op.getMeshAttr(), op.getAxesAttr());
    for (auto [operand, result] : llvm::zip_equal(op.getOperands(), op.getResults())) {
      auto part = cast<RankedTensorType>(result.getType());
      Value size = arith::ConstantIndexOp::create(b, loc, part.getDimSize(dim));
      SmallVector<OpFoldResult> offsets(part.getRank(), b.getIndexAttr(0)), sizes;
      offsets[dim] = arith::MulIOp::create(b, loc, index, size).getResult();
      for (int64_t extent : part.getShape())
        sizes.push_back(b.getIndexAttr(extent));
      SmallVector<OpFoldResult> strides(part.getRank(), b.getIndexAttr(1));
      result.replaceAllUsesWith(
          tensor::ExtractSliceOp::create(b, loc, part, operand, offsets, sizes, strides));
    }
    op.erase();
  }
}
