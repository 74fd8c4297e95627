//===- GpuBranches.cpp - Branches of bodies as choices --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A body that looks an element up only where its place is one,
//
//   %r = scf.if %c -> f32 { %e = memref.load %t[%i]   yield %e } else { yield %zero }
//
// looks it up at the nearest place there is, and chooses afterwards. Such a body has a form on
// vectors, and rows of a table that is cut over devices are read as wide as any others.
//
//===----------------------------------------------------------------------===//

#include "GpuStages.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tessera::codegen {

static bool isLookUp(Operation &op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  return load && load.getMemRefType().hasStaticShape() && load.getMemRefType().getNumElements() > 0;
}

/// Whether both branches only compute, and could always do so.
static bool isChoice(scf::IfOp op) {
  if (op.getNumResults() == 0)
    return false;
  for (Block *block : {op.thenBlock(), op.elseBlock()})
    for (Operation &inner : block->without_terminator())
      if (inner.getNumRegions() != 0 || !(isLookUp(inner) || isPure(&inner)))
        return false;
  return true;
}

/// Moves the op in front of the branch that it is in; a look-up stays within its buffer.
static void moveOut(Operation &op, scf::IfOp branch, OpBuilder &b) {
  op.moveBefore(branch);
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load)
    return;
  b.setInsertionPoint(load);
  for (auto [index, extent] :
       llvm::zip_equal(load.getIndicesMutable(), load.getMemRefType().getShape())) {
    Value at = index.get();
    // The loop's own index is within already.
    if (getConstantIntValue(at) || at.getDefiningOp<linalg::IndexOp>())
      continue;
    Value least = arith::ConstantIndexOp::create(b, load.getLoc(), 0);
    Value most = arith::ConstantIndexOp::create(b, load.getLoc(), extent - 1);
    at = arith::MaxSIOp::create(b, load.getLoc(), at, least);
    index.set(arith::MinSIOp::create(b, load.getLoc(), at, most));
  }
}

void chooseInBranches(func::FuncOp kernel) {
  SmallVector<scf::IfOp> branches;
  kernel.walk([&](linalg::GenericOp op) {
    op.getBody()->walk([&](scf::IfOp branch) { branches.push_back(branch); });
  });
  OpBuilder b(kernel.getContext());
  for (scf::IfOp branch : branches) { // inner ones first
    if (!isChoice(branch))
      continue;
    for (Block *block : {branch.thenBlock(), branch.elseBlock()})
      for (Operation &inner : llvm::make_early_inc_range(block->without_terminator()))
        moveOut(inner, branch, b);
    b.setInsertionPoint(branch);
    for (auto [result, yes, no] :
         llvm::zip_equal(branch.getResults(), branch.thenYield().getOperands(),
                         branch.elseYield().getOperands()))
      result.replaceAllUsesWith(
          arith::SelectOp::create(b, branch.getLoc(), branch.getCondition(), yes, no));
    branch.erase();
  }
}

} // namespace tessera::codegen
