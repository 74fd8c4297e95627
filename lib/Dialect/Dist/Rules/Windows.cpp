//===- Windows.cpp - Ops that compute windows of their results ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/Windows.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Sharding/Buffers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static Attribute paddingOf(tensor::PadOp op) {
  return cast<ShardingRuleOpInterface>(op.getOperation()).getWindowFill(0);
}

bool dist::computesWindows(Operation *op) {
  if (movesWindows(op) ||
      isa<tensor::EmptyOp, tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
          op))
    return true;
  // What it reads at computed indices is whole on every device.
  auto linalg = dyn_cast<linalg::LinalgOp>(op);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return linalg && op->getNumResults() == 1 && !(generic && !selectedLoops(generic).empty()) &&
         !op->walk([](tensor::ExtractOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool dist::movesWindows(Operation *op) {
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return paddingOf(pad) != nullptr;
  SplatElementsAttr splat;
  return isa<RearrangeOp>(op) || matchPattern(op, m_Constant(&splat));
}

Attribute dist::fillOf(Value value) {
  Operation *op = value.getDefiningOp();
  while (auto reshard = dyn_cast_or_null<ReshardOp>(op)) {
    auto move = reshard->getAttrOfType<MoveAttr>(DistDialect::kMove);
    if (reshard.getFill() || !move || sharding::isByBoxes(move.getKind()))
      return reshard.getFillAttr();
    op = reshard.getOperand().getDefiningOp(); // the windows are those of the operand
  }
  if (auto pad = dyn_cast_or_null<tensor::PadOp>(op))
    return paddingOf(pad);
  if (auto rearrange = dyn_cast_or_null<RearrangeOp>(op))
    return rearrange.getFillAttr();
  SplatElementsAttr splat;
  if (op && matchPattern(op, m_Constant(&splat)))
    return splat.getSplatValue<Attribute>();
  return {};
}
