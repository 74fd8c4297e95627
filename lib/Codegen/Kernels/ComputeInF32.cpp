//===- ComputeInF32.cpp - Operations of 16-bit floats ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each operation of f16 or bf16 is computed in f32 and rounded:
//
//   z = maximumf(mulf(a, b), c) : bf16
//
//   m = truncf (mulf (extf a), (extf b))         the rounding stays
//   z = truncf (maximumf (extf m), (extf c))     this one changes nothing
//
// Upstream's passes emit this, and mark every conversion `contract`, which lets folders drop
// a truncation before an extension. Here the mark is kept only where the rounding is the
// identity.
//
// GPUs add, subtract and multiply pairs of 16-bit floats by one instruction. It rounds once, and so
// does f32: it has more than twice the digits, so a sum or product rounded to it rounds to 16 bits
// like the exact one ("When is double rounding innocuous?", Figueroa 1995).
//
//===----------------------------------------------------------------------===//

#include "NarrowFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// Upstream's passes do not convert multiply-adds.
void computeMultiplyAdd(math::FmaOp fma) {
  Type type = fma.getType(), element = getElementTypeOrSelf(type);
  if (!element.isBF16() && !element.isF16())
    return;
  OpBuilder b(fma);
  Type wide = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    wide = vector.clone(wide);
  SmallVector<Value> operands;
  for (Value operand : fma->getOperands())
    operands.push_back(arith::ExtFOp::create(b, fma.getLoc(), wide, operand));
  Value result = math::FmaOp::create(b, fma.getLoc(), wide, operands);
  fma.replaceAllUsesWith(arith::TruncFOp::create(b, fma.getLoc(), type, result).getResult());
  fma.erase();
}

/// Whether the result of `op` on 16-bit floats is a 16-bit float.
bool isExact(Operation *op) {
  return isa<arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::SelectOp, math::AbsFOp, math::CopySignOp, math::CeilOp,
             math::FloorOp, math::RoundOp, math::RoundEvenOp, math::TruncOp>(op);
}

/// Whether a processor computes `op` with one instruction, whose NaN is that of an operand, or the
/// default one: both have zeros where f32 is longer than bf16.
bool isOneInstruction(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, math::FmaOp, math::SqrtOp>(
      op);
}

/// Whether all floats that `op` reads were extended from `narrow`.
bool readsOnly(Operation *op, Type narrow) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    if (!isa<FloatType>(getElementTypeOrSelf(operand)))
      return true;
    auto extension = operand.getDefiningOp<arith::ExtFOp>();
    return extension && getElementTypeOrSelf(extension.getIn()) == narrow;
  });
}

} // namespace

/// Undoes the conversion of additions, subtractions and multiplications.
static void computeInPairs(ModuleOp module) {
  SmallVector<arith::TruncFOp> roundings;
  module.walk([&](arith::TruncFOp op) { roundings.push_back(op); });
  for (arith::TruncFOp op : roundings) {
    Operation *made = op.getIn().getDefiningOp();
    if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp>(made) || !made->hasOneUse() ||
        !readsOnly(made, getElementTypeOrSelf(op.getType())))
      continue;
    OpBuilder b(op);
    IRMapping narrow;
    for (Value operand : made->getOperands())
      narrow.map(operand, operand.getDefiningOp<arith::ExtFOp>().getIn());
    Operation *again = b.clone(*made, narrow);
    again->getResult(0).setType(op.getType());
    op.replaceAllUsesWith(again->getResult(0));
    op.erase();
    made->erase();
  }
}

LogicalResult computeInF32(ModuleOp module, bool zeroExtendsNaN, bool inPairs) {
  module.walk(computeMultiplyAdd);
  PassManager passes(module.getContext());
  math::MathExtendToSupportedTypesOptions extend;
  extend.extraTypeStrs = {};
  extend.targetTypeStr = "f32";
  passes.addNestedPass<func::FuncOp>(math::createMathExtendToSupportedTypes(extend));
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = SmallVector<std::string>{"bf16", "f16"};
  emulate.targetTypeStr = "f32";
  passes.addNestedPass<func::FuncOp>(arith::createArithEmulateUnsupportedFloats(emulate));
  if (failed(passes.run(module)))
    return failure();

  if (inPairs)
    computeInPairs(module);
  module.walk([&](arith::ExtFOp op) { op.setFastmath(arith::FastMathFlags::contract); });
  module.walk([&](arith::TruncFOp op) {
    Operation *made = op.getIn().getDefiningOp();
    bool narrow = made && readsOnly(made, getElementTypeOrSelf(op.getType()));
    op.setFastmath(narrow && isExact(made) ? arith::FastMathFlags::contract
                                           : arith::FastMathFlags::none);
    if (zeroExtendsNaN && narrow && isOneInstruction(made))
      op->setAttr(kKeepsNaNAttr, UnitAttr::get(op.getContext()));
  });
  return success();
}

} // namespace tessera::codegen
