//===- FormUpdates.cpp - Products that are added to an argument -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// argument + factor * (a · b) becomes a product that starts from the argument: a gradient is
// neither written nor read. The smaller operand is scaled, mostly in the kernel that makes it.
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/Updates.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMUPDATES
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

static Value scaled(OpBuilder &b, Location loc, Value operand, double factor) {
  auto type = cast<RankedTensorType>(operand.getType());
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &inner, Location loc, ValueRange elements) {
    Value number =
        arith::ConstantOp::create(inner, loc, inner.getFloatAttr(type.getElementType(), factor));
    Value product = arith::MulFOp::create(inner, loc, elements[0], number);
    linalg::YieldOp::create(inner, loc, product);
  };
  return linalg::GenericOp::create(b, loc, TypeRange(type), operand, empty, maps, loops, body)
      .getResult(0);
}

namespace {
struct CodegenFormUpdates : codegen::impl::CodegenFormUpdatesBase<CodegenFormUpdates> {
  void runOnOperation() override {
    if (!dist::isLocalView(getOperation()))
      return;
    for (dist::Update &update : dist::updatesOf(getOperation())) {
      linalg::LinalgOp product = update.product;
      OpOperand &operand = product->getOpOperand(update.scaled);
      OpBuilder b(product);
      if (update.after != product)
        product->moveAfter(update.after);
      b.setInsertionPoint(product);
      operand.set(scaled(b, update.result.getLoc(), operand.get(), update.factor));
      product.getDpsInitsMutable()[0].set(update.argument);
      Operation *last = update.result.getDefiningOp();
      update.result.replaceAllUsesWith(product->getResult(0));
      while (last && last != product && isOpTriviallyDead(last)) {
        Operation *before = nullptr;
        for (Value input : last->getOperands())
          if (Operation *op = input.getDefiningOp();
              op && isa<linalg::GenericOp>(op) && input.hasOneUse())
            before = op;
        last->erase();
        last = before;
      }
    }
  }
};
} // namespace
