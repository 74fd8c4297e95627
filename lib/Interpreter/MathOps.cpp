//===- MathOps.cpp - math on one element ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarOps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace tessera::interpreter;

/// A float function of one variable, computed in double and rounded to its type.
template <typename F> static ScalarKernel unary(ElementType type, F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    *out = Scalar::ofFloat(roundTo(type, function(in[0].f)));
    return nullptr;
  };
}

template <typename F> static ScalarKernel binary(ElementType type, F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    *out = Scalar::ofFloat(roundTo(type, function(in[0].f, in[1].f)));
    return nullptr;
  };
}

template <typename F> static ScalarKernel predicate(F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    *out = Scalar::ofInt(function(in[0].f) ? -1 : 0);
    return nullptr;
  };
}

template <typename F> static ScalarKernel integer(ElementType type, F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    *out = Scalar::ofInt(wrapTo(type, static_cast<int64_t>(function(in[0].i))));
    return nullptr;
  };
}

/// base^exponent modulo 2^width; a negative exponent gives 1 divided by the positive power.
static int64_t integerPower(ElementType type, int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : base == 0 ? -1 : 0;
  uint64_t value = 1;
  for (uint64_t square = static_cast<uint64_t>(base); exponent; exponent >>= 1, square *= square)
    if (exponent & 1)
      value *= square;
  return wrapTo(type, static_cast<int64_t>(value));
}

static double roundEven(double x) {
  // Ties go to the even neighbor; `nearbyint` would depend on the rounding mode.
  double below = std::floor(x), difference = x - below;
  double result = difference < 0.5               ? below
                  : difference > 0.5             ? below + 1
                  : std::fmod(below, 2.0) == 0.0 ? below
                                                 : below + 1;
  return std::copysign(result, x);
}

// The C functions are overloaded, so each is wrapped in a lambda.
#define UNARY(Op, function)                                                                        \
  .Case([=](math::Op) { return unary(type, [](double x) { return function(x); }); })

/// Roots, rounding, exponentials, logarithms.
static ScalarKernel elementaryOp(Operation *op, ElementType type) {
  return TypeSwitch<Operation *, ScalarKernel>(op) //
      UNARY(AbsFOp, std::fabs)                     //
      UNARY(CbrtOp, std::cbrt)                     //
      UNARY(CeilOp, std::ceil)                     //
      UNARY(FloorOp, std::floor)                   //
      UNARY(RoundOp, std::round)                   //
      UNARY(RoundEvenOp, roundEven)                //
      UNARY(TruncOp, std::trunc)                   //
      UNARY(SqrtOp, std::sqrt)                     //
      UNARY(RsqrtOp, 1.0 / std::sqrt)              //
      UNARY(ExpOp, std::exp)                       //
      UNARY(Exp2Op, std::exp2)                     //
      UNARY(ExpM1Op, std::expm1)                   //
      UNARY(LogOp, std::log)                       //
      UNARY(Log2Op, std::log2)                     //
      UNARY(Log10Op, std::log10)                   //
      UNARY(Log1pOp, std::log1p)                   //
      UNARY(ErfOp, std::erf)                       //
      UNARY(ErfcOp, std::erfc)                     //
          .Default([](Operation *) { return ScalarKernel(); });
}

static ScalarKernel trigonometricOp(Operation *op, ElementType type) {
  return TypeSwitch<Operation *, ScalarKernel>(op) //
      UNARY(SinOp, std::sin)                       //
      UNARY(CosOp, std::cos)                       //
      UNARY(TanOp, std::tan)                       //
      UNARY(AsinOp, std::asin)                     //
      UNARY(AcosOp, std::acos)                     //
      UNARY(AtanOp, std::atan)                     //
      UNARY(SinhOp, std::sinh)                     //
      UNARY(CoshOp, std::cosh)                     //
      UNARY(TanhOp, std::tanh)                     //
      UNARY(AsinhOp, std::asinh)                   //
      UNARY(AcoshOp, std::acosh)                   //
      UNARY(AtanhOp, std::atanh)                   //
          .Case([=](math::SincosOp) -> ScalarKernel {
            return [=](const Scalar *in, Scalar *out) -> const char * {
              out[0] = Scalar::ofFloat(roundTo(type, std::sin(in[0].f)));
              out[1] = Scalar::ofFloat(roundTo(type, std::cos(in[0].f)));
              return nullptr;
            };
          })
          .Default([](Operation *) { return ScalarKernel(); });
}
#undef UNARY

static ScalarKernel severalOperandsOp(Operation *op, ElementType type) {
  return TypeSwitch<Operation *, ScalarKernel>(op)
      .Case([=](math::Atan2Op) {
        return binary(type, [](double a, double b) { return std::atan2(a, b); });
      })
      .Case([=](math::PowFOp) {
        return binary(type, [](double a, double b) { return std::pow(a, b); });
      })
      .Case([=](math::CopySignOp) {
        return binary(type, [](double a, double b) { return std::copysign(a, b); });
      })
      .Case([=](math::FmaOp) -> ScalarKernel {
        return [=](const Scalar *in, Scalar *out) -> const char * {
          *out = Scalar::ofFloat(roundTo(type, std::fma(in[0].f, in[1].f, in[2].f)));
          return nullptr;
        };
      })
      .Case([=](math::ClampFOp) -> ScalarKernel {
        return [=](const Scalar *in, Scalar *out) -> const char * {
          *out = Scalar::ofFloat(minimum(maximum(in[0].f, in[1].f), in[2].f));
          return nullptr;
        };
      })
      .Case([=](math::FPowIOp) -> ScalarKernel {
        return [=](const Scalar *in, Scalar *out) -> const char * {
          *out = Scalar::ofFloat(roundTo(type, std::pow(in[0].f, static_cast<double>(in[1].i))));
          return nullptr;
        };
      })
      .Case([=](math::IPowIOp) -> ScalarKernel {
        return [=](const Scalar *in, Scalar *out) -> const char * {
          *out = Scalar::ofInt(wrapTo(type, integerPower(type, in[0].i, in[1].i)));
          return nullptr;
        };
      })
      .Default([](Operation *) { return ScalarKernel(); });
}

ScalarKernel tessera::interpreter::getMathKernel(Operation *op) {
  if (op->getNumOperands() == 0)
    return {};
  ElementType type = *elementOf(op->getOperand(0).getType());
  if (ScalarKernel kernel = elementaryOp(op, type))
    return kernel;
  if (ScalarKernel kernel = trigonometricOp(op, type))
    return kernel;
  if (ScalarKernel kernel = severalOperandsOp(op, type))
    return kernel;
  return TypeSwitch<Operation *, ScalarKernel>(op)
      .Case([=](math::IsNaNOp) { return predicate([](double x) { return std::isnan(x); }); })
      .Case([=](math::IsInfOp) { return predicate([](double x) { return std::isinf(x); }); })
      .Case([=](math::IsFiniteOp) { return predicate([](double x) { return std::isfinite(x); }); })
      .Case([=](math::IsNormalOp) {
        // By the exponents of the type: a subnormal f32 is a normal double.
        int least = type.kind == ElementType::f64   ? -1022
                    : type.kind == ElementType::f16 ? -14
                                                    : -126;
        return predicate(
            [=](double x) { return std::isfinite(x) && std::fabs(x) >= std::ldexp(1.0, least); });
      })
      .Case([=](math::AbsIOp) {
        return integer(type, [](int64_t x) {
          return x < 0 ? uint64_t(0) - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
        });
      })
      .Case([=](math::CountLeadingZerosOp) {
        return integer(type, [=](int64_t x) {
          return static_cast<int>(type.width) - llvm::bit_width(zeroExtended(type, x));
        });
      })
      .Case([=](math::CountTrailingZerosOp) {
        return integer(type, [=](int64_t x) {
          uint64_t bits = zeroExtended(type, x);
          return bits ? llvm::countr_zero(bits) : static_cast<int>(type.width);
        });
      })
      .Case([=](math::CtPopOp) {
        return integer(type, [=](int64_t x) { return llvm::popcount(zeroExtended(type, x)); });
      })
      .Default([](Operation *) { return ScalarKernel(); });
}
