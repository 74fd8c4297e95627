//===- StepOps.cpp - Classify ops of the prepared local view as steps -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepOps.h"

#include "tessera/Codegen/Gemm.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Planning/Views.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

std::optional<GemmForm> codegen::matchGemm(Operation *op) {
  if (auto product = dyn_cast<rt::ProductOp>(op)) {
    std::optional<GemmForm> form = matchGemm(product.getMapValues(), product.getLoopExtents());
    bool wants = form && product.getBias();
    if (wants && (!hasWholeRows(*form) ||
                  cast<RankedTensorType>(product.getBias().getType()).getNumElements() != form->n))
      return std::nullopt;
    return form;
  }
  auto contraction = dyn_cast<linalg::LinalgOp>(op);
  return contraction ? matchGemm(contraction) : std::nullopt;
}

SmallVector<linalg::LinalgOp> codegen::gemmLikeOps(Operation *function) {
  SmallVector<linalg::LinalgOp> ops;
  function->walk([&](linalg::LinalgOp op) {
    if (isGemmLike(op))
      ops.push_back(op);
  });
  return ops;
}

/// A slice that only kernels read is computed inside each of them, where it is free.
static bool isCutByReaders(Operation *op) {
  return isa<tensor::ExtractSliceOp>(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
           // Not in a branch or loop, whose ops are grouped separately.
           Operation *reader = isa<rt::GroupOp>(user->getParentOp()) ? user->getParentOp() : user;
           bool here = reader->getBlock() == op->getBlock() || user->getBlock() == op->getBlock();
           return here && isa<linalg::LinalgOp>(user) && classify(user) == StepKind::compute;
         });
}

/// `tensor.from_elements` of only a coordinate or an induction variable.
static bool wrapsCounter(tensor::FromElementsOp op) {
  if (op.getElements().size() != 1)
    return false;
  Value element = op.getElements().front();
  return isa<BlockArgument>(element) || element.getDefiningOp<dist::AxisIndexOp>();
}

StepKind codegen::classify(Operation *op) {
  if (isa<rt::GroupOp, func::CallOp, rt::CallBlocksOp, scf::ForOp, scf::WhileOp, scf::IfOp, dist::AxisIndexOp>(op) ||
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
  if (succeeded(dist::viewOffset(op)))
    return StepKind::view;
  if (isCutByReaders(op))
    return StepKind::free;
  if (isa<rt::ContractionOp>(op))
    return StepKind::gemm;
  if (isa<rt::ProductOp>(op))
    return matchGemm(op) ? StepKind::gemm : StepKind::other;
  if (isa<linalg::LinalgOp>(op))
    return matchGemm(op) ? StepKind::gemm : StepKind::compute;
  if (op->getNumResults() > 0 && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
      llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); }))
    return StepKind::scalar;
  if (op->hasTrait<ext::KernelOp>())
    return StepKind::compute;
  bool known = isa<tensor::TensorDialect, arith::ArithDialect, math::MathDialect>(op->getDialect());
  return known ? StepKind::compute : StepKind::other;
}
