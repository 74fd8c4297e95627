//===- StepOps.cpp - What an op of the prepared local view becomes ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepOps.h"

#include "ArenaPlan.h"
#include "tessera/Codegen/Gemm.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

FailureOr<int64_t> codegen::viewOffset(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return 0;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice || llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(slice.getStaticSizes(), ShapedType::isDynamic))
    return failure();
  // Contiguous: after the first dimension that has more than one index, every one is whole.
  ArrayRef<int64_t> shape = slice.getSourceType().getShape();
  int64_t offset = 0;
  bool many = false;
  for (auto [extent, first, size, stride] : llvm::zip_equal(
           shape, slice.getStaticOffsets(), slice.getStaticSizes(), slice.getStaticStrides())) {
    if ((many && size != extent) || (size > 1 && stride != 1))
      return failure();
    many |= size > 1;
    offset = offset * extent + first;
  }
  // Kernels take aligned buffers.
  if (offset * dist::bytesPerElement(slice.getType().getElementType()) % kArenaAlignment != 0)
    return failure();
  return offset;
}

/// A slice that only kernels read is cut inside each of them, where it costs nothing.
static bool isCutByReaders(Operation *op) {
  return isa<tensor::ExtractSliceOp>(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
           // Not one in a branch or loop: it is grouped by itself, without what lies around.
           Operation *reader = isa<rt::GroupOp>(user->getParentOp()) ? user->getParentOp() : user;
           bool here = reader->getBlock() == op->getBlock() || user->getBlock() == op->getBlock();
           return here && isa<linalg::LinalgOp>(user) && classify(user) == StepKind::compute;
         });
}

/// `tensor.from_elements` that only names a coordinate or an induction variable.
static bool wrapsCounter(tensor::FromElementsOp op) {
  if (op.getElements().size() != 1)
    return false;
  Value element = op.getElements().front();
  return isa<BlockArgument>(element) || element.getDefiningOp<dist::AxisIndexOp>();
}

StepKind codegen::classify(Operation *op) {
  if (isa<rt::GroupOp, func::CallOp, scf::ForOp, scf::WhileOp, scf::IfOp, dist::AxisIndexOp>(op) ||
      op->hasTrait<OpTrait::IsTerminator>() || isa<dist::DistDialect>(op->getDialect()))
    return StepKind::other;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (!isa<TensorType>(constant.getType()))
      return StepKind::scalar;
    return isa<SplatElementsAttr>(constant.getValue()) ? StepKind::free : StepKind::other;
  }
  if (isa<tensor::EmptyOp, linalg::FillOp>(op))
    return StepKind::free;
  if (auto elements = dyn_cast<tensor::FromElementsOp>(op))
    return wrapsCounter(elements) ? StepKind::other : StepKind::compute;
  if (succeeded(viewOffset(op)))
    return StepKind::view;
  if (isCutByReaders(op))
    return StepKind::free;
  if (isa<rt::ProductOp>(op))
    return matchGemm(op) ? StepKind::gemm : StepKind::other;
  if (isa<linalg::LinalgOp>(op))
    return matchGemm(op) ? StepKind::gemm : StepKind::compute;
  if (op->getNumResults() > 0 && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
      llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); }))
    return StepKind::scalar;
  bool known = isa<tensor::TensorDialect, arith::ArithDialect, math::MathDialect>(op->getDialect());
  return known ? StepKind::compute : StepKind::other;
}
