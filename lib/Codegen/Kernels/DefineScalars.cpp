//===- DefineScalars.cpp - Define results of all scalar operations --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// arith and LLVM leave some results undefined: of divisions by zero, shifts by the width, casts out
// of range. docs/numerics.md defines them; this file expands them into operations that LLVM
// defines, for all targets. It rewrites only the scalar ops of bodies, so that later divisions in
// address computations are unaffected.
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace tessera::codegen {
namespace {

/// Writes formulas on scalar integers of one type.
class Integers {
public:
  Integers(OpBuilder &b, Location loc, Type type)
      : b(b), loc(loc), type(type), width(ConstantIntRanges::getStorageBitwidth(type)) {}

  Value c(const APInt &value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }
  Value c(int64_t value) { return c(APInt(width, static_cast<uint64_t>(value), true, true)); }
  Value least() { return c(APInt::getSignedMinValue(width)); }
  Value is(CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value is(CmpIPredicate predicate, Value x, int64_t y) { return is(predicate, x, c(y)); }
  Value pick(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  template <typename Op> Value make(Value x, Value y) { return Op::create(b, loc, x, y); }

  OpBuilder &b;
  Location loc;
  Type type;
  unsigned width;
};

/// A divisor that is never zero, and never -1 where that overflows; selects handle those cases.
struct Divisor {
  Value safe;
  Value isZero; ///< null: it never is
};

Divisor safeDivisor(Integers &f, Value x, Value y, bool isSigned) {
  ConstantIntRanges range = dist::rangeOf(y);
  Divisor divisor{y, Value()};
  Value replaced;
  if (range.umin().isZero())
    replaced = divisor.isZero = f.is(CmpIPredicate::eq, y, 0);
  // The least integer divided by -1 becomes a division by 1: itself, remainder 0.
  if (isSigned && range.smin().sle(-1) && range.smax().sge(-1)) {
    Value overflows = f.make<arith::AndIOp>(f.is(CmpIPredicate::eq, y, -1),
                                            f.is(CmpIPredicate::eq, x, f.least()));
    replaced = replaced ? f.make<arith::OrIOp>(replaced, overflows) : overflows;
  }
  if (replaced)
    divisor.safe = f.pick(replaced, f.c(1), y);
  return divisor;
}

/// The quotient rounded up or down, from the one towards zero.
Value roundedQuotient(Integers &f, Value x, Value y, Value quotient, bool up, bool isSigned) {
  Value left = f.make<arith::SubIOp>(x, f.make<arith::MulIOp>(quotient, y));
  Value inexact = f.is(CmpIPredicate::ne, left, 0);
  if (isSigned)
    inexact = f.make<arith::AndIOp>(inexact, f.is(up ? CmpIPredicate::sge : CmpIPredicate::slt,
                                                  f.make<arith::XOrIOp>(x, y), 0));
  Value next =
      up ? f.make<arith::AddIOp>(quotient, f.c(1)) : f.make<arith::SubIOp>(quotient, f.c(1));
  return f.pick(inexact, next, quotient);
}

Value defineDivision(OpBuilder &b, Operation *op) {
  Value x = op->getOperand(0), y = op->getOperand(1);
  Integers f(b, op->getLoc(), x.getType());
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(op);
  bool remainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
  if (f.width == 1) {
    // The only divisor besides zero is all ones: 1, or -1.
    Value isZero = f.make<arith::XOrIOp>(y, f.c(-1));
    return remainder ? f.make<arith::AndIOp>(x, isZero) : f.make<arith::OrIOp>(x, isZero);
  }
  Divisor divisor = safeDivisor(f, x, y, isSigned);
  Value result;
  if (remainder)
    result = isSigned ? f.make<arith::RemSIOp>(x, divisor.safe)
                      : f.make<arith::RemUIOp>(x, divisor.safe);
  else
    result = isSigned ? f.make<arith::DivSIOp>(x, divisor.safe)
                      : f.make<arith::DivUIOp>(x, divisor.safe);
  if (isa<arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
    result = roundedQuotient(f, x, divisor.safe, result, !isa<arith::FloorDivSIOp>(op), isSigned);
  return divisor.isZero ? f.pick(divisor.isZero, remainder ? x : f.c(-1), result) : result;
}

/// A shift by the width or more leaves no bits of the value, or its sign.
Value defineShift(OpBuilder &b, Operation *op) {
  Value x = op->getOperand(0), amount = op->getOperand(1);
  Integers f(b, op->getLoc(), x.getType());
  ConstantIntRanges range = dist::rangeOf(amount);
  if (range.umax().ult(f.width))
    return Value();
  int64_t last = f.width - 1;
  // The width of i1 does not fit the type.
  Value inside = f.is(CmpIPredicate::ule, amount, last);
  if (isa<arith::ShRSIOp>(op))
    return f.make<arith::ShRSIOp>(x, f.pick(inside, amount, f.c(last)));
  Value safe = f.pick(inside, amount, f.c(0));
  Value shifted =
      isa<arith::ShLIOp>(op) ? f.make<arith::ShLIOp>(x, safe) : f.make<arith::ShRUIOp>(x, safe);
  return f.pick(inside, shifted, f.c(0));
}

/// Towards zero; the nearest bound beyond the range, 0 for NaN.
Value defineFloatToInt(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  if (x.getType().getIntOrFloatBitWidth() < 32) // their infinity is below the bounds
    x = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  Integers f(b, loc, op->getResult(0).getType());
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(x.getType(), value));
  };
  auto is = [&](CmpFPredicate predicate, double value) -> Value {
    return arith::CmpFOp::create(b, loc, predicate, x, number(value));
  };
  bool isSigned = isa<arith::FPToSIOp>(op);
  if (f.width == 1)
    return isSigned ? is(CmpFPredicate::OLE, -1) : is(CmpFPredicate::OGE, 1);
  double end = std::ldexp(1.0, static_cast<int>(f.width) - (isSigned ? 1 : 0));
  Value inside = arith::AndIOp::create(
      b, loc, isSigned ? is(CmpFPredicate::OGE, -end) : is(CmpFPredicate::OGT, -1),
      is(CmpFPredicate::OLT, end));
  Value safe = arith::SelectOp::create(b, loc, inside, x, number(0));
  Value whole = isSigned ? arith::FPToSIOp::create(b, loc, f.type, safe).getResult()
                         : arith::FPToUIOp::create(b, loc, f.type, safe).getResult();
  Value beyond = isSigned ? f.pick(is(CmpFPredicate::OLT, 0), f.least(), f.c(0)) : f.c(0);
  Value greatest = f.c(isSigned ? APInt::getSignedMaxValue(f.width) : APInt::getMaxValue(f.width));
  beyond = f.pick(is(CmpFPredicate::OGT, 0), greatest, beyond);
  return f.pick(inside, whole, beyond);
}

/// By squaring, modulo 2^width. To a negative power it is 1 divided by the positive one.
Value definePower(OpBuilder &b, math::IPowIOp op) {
  Value base = op.getLhs(), exponent = op.getRhs();
  Integers f(b, op.getLoc(), base.getType());
  ConstantIntRanges range = dist::rangeOf(exponent);
  unsigned bits = range.umax().isNegative() ? f.width - 1 : range.umax().getActiveBits();
  Value result = f.c(1), square = base;
  for (unsigned bit = 0; bit < bits; ++bit) {
    Value taken = f.is(CmpIPredicate::ne,
                       f.make<arith::AndIOp>(exponent, f.c(APInt::getOneBitSet(f.width, bit))), 0);
    result = f.pick(taken, f.make<arith::MulIOp>(result, square), result);
    if (bit + 1 < bits)
      square = f.make<arith::MulIOp>(square, square);
  }
  if (range.smin().isNonNegative())
    return result;
  Value odd = f.is(CmpIPredicate::ne, f.make<arith::AndIOp>(exponent, f.c(1)), 0);
  Value inverse = f.pick(f.is(CmpIPredicate::eq, base, 1), f.c(1), f.c(0));
  inverse = f.pick(f.is(CmpIPredicate::eq, base, -1), f.pick(odd, f.c(-1), f.c(1)), inverse);
  inverse = f.pick(f.is(CmpIPredicate::eq, base, 0), f.c(-1), inverse);
  return f.pick(f.is(CmpIPredicate::slt, exponent, 0), inverse, result);
}

/// In f64, which represents every 32-bit exponent, and in which no intermediate power of f32
/// overflows unless the result does. A constant exponent becomes products.
Value definePower(OpBuilder &b, math::FPowIOp op) {
  if (matchPattern(op.getRhs(), m_Constant()))
    return Value();
  Location loc = op.getLoc();
  Type f64 = b.getF64Type();
  Value base = op.getLhs();
  bool isNarrow = base.getType() != f64;
  if (isNarrow)
    base = arith::ExtFOp::create(b, loc, f64, base);
  Value power =
      math::PowFOp::create(b, loc, base, arith::SIToFPOp::create(b, loc, f64, op.getRhs()));
  return isNarrow ? arith::TruncFOp::create(b, loc, op.getType(), power).getResult() : power;
}

/// The class of a number, by comparing its magnitude.
Value defineClass(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  auto type = cast<FloatType>(x.getType());
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  auto is = [&](CmpFPredicate predicate, Value amount, const APFloat &bound) -> Value {
    Value constant = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, bound));
    return arith::CmpFOp::create(b, loc, predicate, amount, constant);
  };
  if (isa<math::IsNaNOp>(op))
    return arith::CmpFOp::create(b, loc, CmpFPredicate::UNO, x, x);
  Value amount = math::AbsFOp::create(b, loc, x);
  APFloat infinity = APFloat::getInf(semantics);
  if (isa<math::IsInfOp>(op))
    return is(CmpFPredicate::OEQ, amount, infinity);
  Value finite = is(CmpFPredicate::OLT, amount, infinity);
  if (isa<math::IsFiniteOp>(op))
    return finite;
  Value large = is(CmpFPredicate::OGE, amount, APFloat::getSmallestNormalized(semantics));
  return arith::AndIOp::create(b, loc, large, finite);
}

/// The larger of value and min, then the smaller of that and max. Upstream's expansion follows the
/// op's description, which applies the two in the other order.
Value defineClamp(OpBuilder &b, math::ClampFOp op) {
  Value raised = arith::MaximumFOp::create(b, op.getLoc(), op.getValue(), op.getMin());
  return arith::MinimumFOp::create(b, op.getLoc(), raised, op.getMax());
}

/// Null if the op is already defined.
Value define(OpBuilder &b, Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp,
            arith::CeilDivSIOp, arith::CeilDivUIOp>([&](auto) { return defineDivision(b, op); })
      .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>([&](auto) { return defineShift(b, op); })
      .Case<arith::FPToSIOp, arith::FPToUIOp>([&](auto) { return defineFloatToInt(b, op); })
      .Case<math::IPowIOp, math::FPowIOp>([&](auto power) { return definePower(b, power); })
      .Case<math::IsNaNOp, math::IsInfOp, math::IsFiniteOp, math::IsNormalOp>(
          [&](auto) { return defineClass(b, op); })
      .Case([&](math::ClampFOp clamp) { return defineClamp(b, clamp); })
      .Default([](Operation *) { return Value(); });
}

} // namespace

void defineScalars(func::FuncOp kernel) {
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) {
    if (llvm::none_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    Value defined = define(b, op);
    if (!defined)
      continue;
    op->getResult(0).replaceAllUsesWith(defined);
    op->erase();
  }
}

} // namespace tessera::codegen
