//===- NarrowPartials.cpp - Round contributions to 16 bits ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The optional opposite of dist-widen-partials. Frontends write a product of bf16
// as a product in f32 and a rounding; contributions cannot pass the rounding, so
// they are reduced in f32. A marked rounding forwards them (Rules/Rounding.h), and
// later passes reduce them where that sends the fewest bytes: after the rounding.
//
// Without the option this holds for what a loop adds up alone, as gradients of
// micro-batches: they are reduced once, in f32, not in each iteration. One device
// rounds each of the sums, n devices their parts of them.
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Rounding.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTNARROWPARTIALS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Whether an op computes element by element and rounds floats to 16 bits.
static bool roundsElements(linalg::LinalgOp op) {
  return op.getNumParallelLoops() == op.getNumLoops() &&
         llvm::any_of(op.getBlock()->getOps<arith::TruncFOp>(), [](arith::TruncFOp rounding) {
           return rounding.getType().isBF16() || rounding.getType().isF16();
         });
}

/// Whether an op computes each element from one of its operand: extensions, scalings.
static bool scalesElements(linalg::LinalgOp op) {
  auto isNumber = [&](Value value) {
    return value.getDefiningOp<arith::ConstantOp>() || value.getParentBlock() != op.getBlock();
  };
  return op.getNumDpsInputs() == 1 && op.getNumParallelLoops() == op.getNumLoops() &&
         !op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) &&
         llvm::all_of(op.getBlock()->without_terminator(), [&](Operation &each) {
           if (isa<arith::MulFOp>(each)) // no square
             return isNumber(each.getOperand(0)) || isNumber(each.getOperand(1));
           if (isa<arith::DivFOp>(each))
             return isNumber(each.getOperand(1));
           return isa<arith::ExtFOp, arith::TruncFOp, arith::ConstantOp>(each);
         });
}

/// The carry to which an op adds a value of at least 32 bits, if the sum is the next one.
static bool addsToCarry(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op->getNumResults() != 1 || !op->getResult(0).hasOneUse() ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth() < 32 ||
      !llvm::all_of(op.getBlock()->without_terminator(),
                    llvm::IsaPred<arith::AddFOp, arith::ExtFOp>))
    return false;
  OpOperand &use = *op->getResult(0).getUses().begin();
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  return loop && isa<scf::YieldOp>(use.getOwner()) && use.getOwner()->getParentOp() == loop &&
         llvm::is_contained(op.getDpsInputs(), loop.getRegionIterArg(use.getOperandNumber()));
}

/// Whether a value is only added to what loops carry, behind moves, extensions, and stacks that
/// other loops make of it.
static bool isAccumulated(Value rounded) {
  llvm::SetVector<Value> values;
  values.insert(rounded);
  bool isAdded = false;
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *op = use.getOwner();
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      if (linalgOp && addsToCarry(linalgOp)) {
        isAdded = true;
      } else if (isa<linalg::TransposeOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) ||
                 (linalgOp && linalgOp.isDpsInput(&use) && scalesElements(linalgOp))) {
        values.insert(op->getResult(0));
      } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op);
                 insert && use.get() == insert.getSource()) {
        values.insert(insert.getResult());
      } else if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
                 loop && isa<scf::YieldOp>(op)) {
        // A carry that is only written to is the stack of what the iterations make.
        BlockArgument carry = loop.getRegionIterArg(use.getOperandNumber());
        if (!llvm::all_of(carry.getUses(), [](OpOperand &read) {
              auto insert = dyn_cast<tensor::InsertSliceOp>(read.getOwner());
              return insert && read.get() == insert.getDest();
            }))
          return false;
        values.insert(loop.getResult(use.getOperandNumber()));
      } else {
        return false;
      }
    }
  return isAdded;
}

namespace {

struct DistNarrowPartials : dist::impl::DistNarrowPartialsBase<DistNarrowPartials> {
  using Base::Base;

  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        function.walk([&](linalg::LinalgOp op) {
          if (roundsElements(op) &&
              (!accumulated || (op->getNumResults() == 1 && isAccumulated(op->getResult(0)))))
            op->setAttr(kRoundsPartials, UnitAttr::get(op->getContext()));
        });
  }
};

} // namespace
