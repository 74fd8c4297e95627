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

namespace {

struct DistNarrowPartials : dist::impl::DistNarrowPartialsBase<DistNarrowPartials> {
  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function))
        function.walk([](linalg::LinalgOp op) {
          if (roundsElements(op))
            op->setAttr(kRoundsPartials, UnitAttr::get(op->getContext()));
        });
  }
};

} // namespace
