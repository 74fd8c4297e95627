//===- GpuMath.cpp - Functions without a GPU instruction ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the CPU, a math library provides what KernelMath.cpp does not expand: functions of f64, and
// powers, roots and inverse hyperbolic functions of f32. For GPUs this file expands them in f64,
// with an error of some units in the last place: exponential and logarithm by argument reduction
// and a series, the others in terms of these two.
//
//===----------------------------------------------------------------------===//

#include "GpuFormula.h"
#include "GpuStages.h"

#include "../Kernels/Trigonometry.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// The function of `op` in f64; null for any other op.
Value expand(Operation *op, Formula &f, ValueRange x, bool wasF32) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<math::ExpOp>([&](auto) { return f.exp(x[0]); })
      .Case<math::Exp2Op>([&](auto) { return f.exp2(x[0]); })
      .Case<math::ExpM1Op>([&](auto) { return f.expm1(x[0]); })
      .Case<math::LogOp>([&](auto) { return f.log(x[0]); })
      .Case<math::Log2Op>([&](auto) { return f.mul(f.log(x[0]), f.c(1.4426950408889634074)); })
      .Case<math::Log10Op>([&](auto) { return f.mul(f.log(x[0]), f.c(0.43429448190325182765)); })
      .Case<math::Log1pOp>([&](auto) { return f.log1p(x[0]); })
      .Case<math::TanhOp>([&](auto) { return f.tanh(x[0]); })
      .Case<math::SinhOp>([&](auto) { return f.sinh(x[0]); })
      .Case<math::CoshOp>([&](auto) { return f.cosh(x[0]); })
      .Case<math::AsinhOp>([&](auto) { return f.asinh(x[0]); })
      .Case<math::AcoshOp>([&](auto) { return f.acosh(x[0]); })
      .Case<math::AtanhOp>([&](auto) { return f.atanh(x[0]); })
      .Case<math::SinOp>([&](auto) { return sine(f, x[0], 0, wasF32); })
      .Case<math::CosOp>([&](auto) { return sine(f, x[0], 1, wasF32); })
      .Case<math::TanOp>(
          [&](auto) { return f.div(sine(f, x[0], 0, wasF32), sine(f, x[0], 1, wasF32)); })
      .Case<math::AtanOp>([&](auto) { return f.atan(x[0]); })
      .Case<math::Atan2Op>([&](auto) { return f.atan2(x[0], x[1]); })
      .Case<math::AsinOp>([&](auto) { return f.atan2(x[0], f.cosineOf(x[0])); })
      .Case<math::AcosOp>([&](auto) { return f.atan2(f.cosineOf(x[0]), x[0]); })
      .Case<math::CbrtOp>([&](auto) { return f.cbrt(x[0]); })
      .Case<math::RsqrtOp>([&](auto) { return f.div(f.c(1), f.sqrt(x[0])); })
      .Case<math::PowFOp>([&](auto) { return f.pow(x[0], x[1]); })
      .Case<math::ErfOp>([&](auto) { return f.erf(x[0], /*complement=*/false); })
      .Case<math::ErfcOp>([&](auto) { return f.erf(x[0], /*complement=*/true); })
      .Default([](Operation *) { return Value(); });
}

} // namespace

LogicalResult expandGpuMath(ModuleOp launches) {
  SmallVector<Operation *> ops;
  launches.walk([&](Operation *op) {
    if (isa<math::MathDialect>(op->getDialect()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
    if (!element.isF32() && !element.isF64())
      continue;
    OpBuilder b(op);
    Location loc = op->getLoc();
    auto vector = dyn_cast<VectorType>(type);
    Type wide = vector ? Type(vector.clone(b.getF64Type())) : b.getF64Type();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      Type from = getElementTypeOrSelf(operand.getType());
      if (isa<IntegerType>(from)) // the exponent of fpowi
        operand = arith::SIToFPOp::create(b, loc, wide, operand);
      else if (from.isF32())
        operand = arith::ExtFOp::create(b, loc, wide, operand);
      operands.push_back(operand);
    }
    Formula formula(b, loc, wide);
    bool wasF32 = element.isF32();
    if (isa<math::SincosOp>(op)) {
      for (auto [shift, from] : llvm::enumerate(op->getResults())) {
        Value result = sine(formula, operands[0], static_cast<int64_t>(shift), wasF32);
        from.replaceAllUsesWith(
            element.isF32() ? arith::TruncFOp::create(b, loc, type, result).getResult() : result);
      }
      op->erase();
      continue;
    }
    Value result = isa<math::FPowIOp>(op) ? formula.pow(operands[0], operands[1])
                                          : expand(op, formula, operands, wasF32);
    if (!result)
      continue;
    if (element.isF32())
      result = arith::TruncFOp::create(b, loc, type, result);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
  // Folds redundant extensions.
  RewritePatternSet none(launches.getContext());
  return applyPatternsGreedily(launches, std::move(none));
}

} // namespace tessera::codegen
