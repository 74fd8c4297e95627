//===- GpuBranches.cpp - Turn branches of bodies into selects -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A body that loads an element only if its index is in bounds,
//
//   %r = scf.if %c -> f32 { %e = memref.load %t[%i]   yield %e } else { yield %zero }
//
// becomes a load at the clamped index and a select. Such a body has a vector form, and the rows of
// a table sharded over devices are read as wide as any others.
//
//===----------------------------------------------------------------------===//

#include "../GpuStages.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tessera::codegen {

static bool isLookUp(Operation &op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  return load && load.getMemRefType().hasStaticShape() && load.getMemRefType().getNumElements() > 0;
}

/// Whether both branches only compute, and are safe to execute unconditionally.
static bool isChoice(scf::IfOp op) {
  if (op.getNumResults() == 0)
    return false;
  for (Block *block : {op.thenBlock(), op.elseBlock()})
    for (Operation &inner : block->without_terminator())
      if (inner.getNumRegions() != 0 || !(isLookUp(inner) || isPure(&inner)))
        return false;
  return true;
}

/// Moves the op before its branch, and clamps the indices of loads to their buffers.
static void moveOut(Operation &op, scf::IfOp branch, OpBuilder &b) {
  op.moveBefore(branch);
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load)
    return;
  b.setInsertionPoint(load);
  for (auto [index, extent] :
       llvm::zip_equal(load.getIndicesMutable(), load.getMemRefType().getShape())) {
    Value at = index.get();
    // The loop's own index is in bounds already.
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
