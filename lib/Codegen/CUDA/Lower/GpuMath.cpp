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
// and a series, the others in terms of these two. Exponentials and tanh of f32 use the instruction
// that approximates 2^x, whose error is two units in the last place (CUDA's manual, exp2f).
//
//===----------------------------------------------------------------------===//

#include "../Emit/GpuLaunchBuilder.h"
#include "../GpuStages.h"
#include "../Stub/GpuRetarget.h"
#include "GpuFormula.h"

#include "../../Kernels/Trigonometry.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numbers>

using namespace mlir;

namespace tessera::codegen {
namespace {

/// Functions of f32 by the instructions that approximate 2^x and tanh.
class Approximation : public ElementBuilder {
public:
  using ElementBuilder::ElementBuilder;

  /// Null if `op` needs its formula in f64.
  Value expand(Operation *op) {
    auto vector = dyn_cast<VectorType>(type);
    if (vector && vector.getRank() != 1)
      return {};
    Value x = op->getOperand(0);
    // Only rounded to 16 bits: instructions without reduction of the argument.
    bool isCoarse = isa<math::ExpOp, math::Exp2Op, math::TanhOp>(op) &&
                    bitEnumContainsAll(
                        cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr().getValue(),
                        arith::FastMathFlags::afn);
    if (isa<math::Exp2Op>(op))
      return math::Exp2Op::create(b, loc, x, arith::FastMathFlags::afn);
    if (isa<math::ExpOp>(op) && op->hasAttr(kTermAttr))
      return power(mul(x, c(std::numbers::log2e)));
    if (isa<math::ExpOp>(op))
      return isCoarse ? math::Exp2Op::create(b, loc, mul(x, c(std::numbers::log2e)),
                                             arith::FastMathFlags::afn)
                            .getResult()
                      : exp(x);
    if (isa<math::TanhOp>(op))
      return isCoarse ? math::TanhOp::create(b, loc, x, arith::FastMathFlags::afn).getResult()
                      : tanh(x);
    return {};
  }

private:
  /// 2^x, for results that are normal numbers.
  Value power(Value x) {
    auto one = [&](Value element) -> Value {
      return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(), b.getStringAttr(kExp2Intrinsic),
                                           element)
          .getResult(0);
    };
    auto vector = dyn_cast<VectorType>(type);
    if (!vector)
      return one(x);
    SmallVector<Value> elements;
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      elements.push_back(one(vector::ExtractOp::create(b, loc, x, i)));
    return vector::FromElementsOp::create(b, loc, vector, elements);
  }

  /// 2^k 2^(x log2(e) - k), where k is an integer for which 2^k is a normal number. The addition of
  /// 1.5 2^23 rounds k to an integer in the last bits, which the bias makes its exponent.
  Value exp(Value x) {
    constexpr float kLog2e = std::numbers::log2e_v<float>;
    constexpr double kRound = 0x1.8p23 + 127;
    Value rounded = fma(x, c(kLog2e), c(kRound));
    rounded = arith::MaxNumFOp::create(b, loc, rounded, c(kRound - 126));
    rounded = arith::MinNumFOp::create(b, loc, rounded, c(kRound + 127));
    Value rest = fma(x, c(kLog2e), sub(c(kRound), rounded));
    rest = fma(x, c(std::numbers::log2e - kLog2e), rest);
    return mul(power(rest), floats(left(bits(rounded), 23)));
  }

  /// x + x^3 p(x^2), or 1 - 2 / (1 + exp(2 x)) where that subtraction keeps the digits.
  Value tanh(Value x) {
    constexpr double kBound = 0.6;
    Value a = abs(x), square = mul(x, x);
    Value polynomial =
        series(square, {-0.33333298563957214, 0.13331958651542664, -0.05378668010234833,
                        0.020805370062589645, -0.005905853118747473});
    Value small = fma(mul(polynomial, square), x, x);
    Value large = power(mul(a, c(2 * std::numbers::log2e)));
    large = sub(c(1), div(c(2), add(large, c(1))));
    return pick(less(a, c(kBound)), small, sign(large, x));
  }
};

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
    if (Value result = element.isF32() ? Approximation(b, loc, type).expand(op) : Value()) {
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
      continue;
    }
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
