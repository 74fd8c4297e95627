//===- ArithOps.cpp - arith on one element --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::interpreter;

std::optional<ElementType> tessera::interpreter::elementOf(Type type) {
  return ElementType::get(getElementTypeOrSelf(type));
}

ScalarKernel tessera::interpreter::getScalarKernel(Operation *op) {
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return {};
  for (Type type : op->getOperandTypes())
    if (!elementOf(type))
      return {};
  for (Type type : op->getResultTypes())
    if (!elementOf(type))
      return {};
  if (ScalarKernel kernel = getArithKernel(op))
    return kernel;
  return getMathKernel(op);
}

//===----------------------------------------------------------------------===//
// Shapes of kernels
//===----------------------------------------------------------------------===//

/// A float operation of two operands, rounded to its type.
template <typename F> static ScalarKernel floatBinary(ElementType type, F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    *out = Scalar::ofFloat(roundTo(type, function(in[0].f, in[1].f)));
    return nullptr;
  };
}

/// An integer operation that is defined for all sign-extended operands, modulo 2^width.
template <typename F> static ScalarKernel intBinary(ElementType type, F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    *out = Scalar::ofInt(wrapTo(type, function(in[0].i, in[1].i)));
    return nullptr;
  };
}

/// The same for zero-extended operands.
template <typename F> static ScalarKernel unsignedBinary(ElementType type, F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    uint64_t a = zeroExtended(type, in[0].i), b = zeroExtended(type, in[1].i);
    *out = Scalar::ofInt(wrapTo(type, static_cast<int64_t>(function(a, b))));
    return nullptr;
  };
}

/// The least value of a signed type.
static int64_t leastOf(ElementType type) {
  return wrapTo(type, static_cast<int64_t>(uint64_t(1) << (type.width - 1)));
}

/// A signed quotient: division by zero gives -1, the least value by -1 gives itself
/// (docs/numerics.md).
template <typename F> static ScalarKernel signedQuotient(ElementType type, F function) {
  return intBinary(type, [=, least = leastOf(type)](int64_t a, int64_t b) -> int64_t {
    return b == 0 ? -1 : b == -1 && a == least ? least : function(a, b);
  });
}

/// An unsigned quotient: division by zero gives all ones.
template <typename F> static ScalarKernel unsignedQuotient(ElementType type, F function) {
  return unsignedBinary(type, [=](uint64_t a, uint64_t b) { return b ? function(a, b) : ~0ULL; });
}

/// A shift by an unsigned amount. An amount of at least the width gives 0, or the sign.
template <typename F> static ScalarKernel shift(ElementType type, bool keepsSign, F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    uint64_t amount = zeroExtended(type, in[1].i);
    bool nothing = amount >= type.width;
    *out = Scalar::ofInt(nothing ? (keepsSign && in[0].i < 0 ? -1 : 0)
                                 : wrapTo(type, function(in[0].i, amount)));
    return nullptr;
  };
}

/// One operand to one result of any types; `function` rounds or wraps itself.
template <typename F> static ScalarKernel unary(F function) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    *out = function(in[0]);
    return nullptr;
  };
}

static Scalar truth(bool value) {
  return Scalar::ofInt(value ? -1 : 0);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

double tessera::interpreter::maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

double tessera::interpreter::minimum(double a, double b) {
  return -maximum(-a, -b);
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static int64_t ceilDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

static bool compareInts(arith::CmpIPredicate predicate, int64_t a, int64_t b, uint64_t ua,
                        uint64_t ub) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  llvm_unreachable("all predicates are listed");
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  }
  llvm_unreachable("all predicates are listed");
}

/// Float to integer towards zero; saturates, and NaN gives 0.
static Scalar toInt(ElementType to, double value, bool isSigned) {
  if (std::isnan(value))
    return Scalar::ofInt(0);
  unsigned bits = isSigned ? to.width - 1 : to.width;
  double bound = std::ldexp(1.0, static_cast<int>(bits));
  double least = isSigned ? -bound : 0;
  double whole = std::trunc(value);
  if (whole < least)
    whole = least;
  if (whole >= bound)
    return Scalar::ofInt(wrapTo(to, static_cast<int64_t>(llvm::maskTrailingOnes<uint64_t>(bits))));
  uint64_t integer =
      isSigned ? static_cast<uint64_t>(static_cast<int64_t>(whole)) : static_cast<uint64_t>(whole);
  return Scalar::ofInt(wrapTo(to, static_cast<int64_t>(integer)));
}

/// Reinterprets the bits as another type of the same width.
static ScalarKernel bitcast(Operation *op) {
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Type to = getElementTypeOrSelf(op->getResult(0).getType());
  return [=](const Scalar *in, Scalar *out) -> const char * {
    Tensor before = Tensor::scalar(from, in[0]);
    Tensor after(to, {});
    llvm::copy(before.bytes(), after.mutableBytes().begin());
    *out = after.item();
    return nullptr;
  };
}

static ScalarKernel conversion(Operation *op, ElementType from, ElementType to) {
  return TypeSwitch<Operation *, ScalarKernel>(op)
      .Case([=](arith::ExtFOp) { return unary([](Scalar x) { return x; }); })
      .Case([=](arith::TruncFOp) {
        return unary([=](Scalar x) { return Scalar::ofFloat(roundOnceTo(to, x.f)); });
      })
      .Case([=](arith::SIToFPOp) {
        return unary([=](Scalar x) {
          // 64-bit integers do not fit into a double: round to f32 directly, then to 16 bits.
          return Scalar::ofFloat(to.kind == ElementType::f64
                                     ? static_cast<double>(x.i)
                                     : roundTo(to, static_cast<float>(x.i)));
        });
      })
      .Case([=](arith::UIToFPOp) {
        return unary([=](Scalar x) {
          uint64_t value = zeroExtended(from, x.i);
          return Scalar::ofFloat(to.kind == ElementType::f64
                                     ? static_cast<double>(value)
                                     : roundTo(to, static_cast<float>(value)));
        });
      })
      .Case([=](arith::FPToSIOp) { return unary([=](Scalar x) { return toInt(to, x.f, true); }); })
      .Case([=](arith::FPToUIOp) { return unary([=](Scalar x) { return toInt(to, x.f, false); }); })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [=](auto) { return unary([=](Scalar x) { return Scalar::ofInt(wrapTo(to, x.i)); }); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([=](auto) {
        return unary([=](Scalar x) {
          return Scalar::ofInt(wrapTo(to, static_cast<int64_t>(zeroExtended(from, x.i))));
        });
      })
      .Case([=](arith::BitcastOp cast) { return bitcast(cast); })
      .Default([](Operation *) { return ScalarKernel(); });
}

static ScalarKernel floatOp(Operation *op, ElementType type) {
  return TypeSwitch<Operation *, ScalarKernel>(op)
      .Case([=](arith::AddFOp) { return floatBinary(type, std::plus<double>()); })
      .Case([=](arith::SubFOp) { return floatBinary(type, std::minus<double>()); })
      .Case([=](arith::MulFOp) { return floatBinary(type, std::multiplies<double>()); })
      .Case([=](arith::DivFOp) { return floatBinary(type, std::divides<double>()); })
      .Case([=](arith::RemFOp) {
        return floatBinary(type, [](double a, double b) { return std::fmod(a, b); });
      })
      .Case([=](arith::MaximumFOp) { return floatBinary(type, maximum); })
      .Case([=](arith::MinimumFOp) { return floatBinary(type, minimum); })
      .Case([=](arith::MaxNumFOp) {
        return floatBinary(type, [](double a, double b) { return std::fmax(a, b); });
      })
      .Case([=](arith::MinNumFOp) {
        return floatBinary(type, [](double a, double b) { return std::fmin(a, b); });
      })
      .Case([=](arith::NegFOp) { return unary([](Scalar x) { return Scalar::ofFloat(-x.f); }); })
      .Case([=](arith::CmpFOp cmp) -> ScalarKernel {
        arith::CmpFPredicate predicate = cmp.getPredicate();
        return [=](const Scalar *in, Scalar *out) -> const char * {
          *out = truth(compareFloats(predicate, in[0].f, in[1].f));
          return nullptr;
        };
      })
      .Default([](Operation *) { return ScalarKernel(); });
}

/// Both halves of the product of two integers.
static ScalarKernel wideProduct(ElementType type, bool isSigned) {
  return [=](const Scalar *in, Scalar *out) -> const char * {
    APInt a(type.width, zeroExtended(type, in[0].i)), b(type.width, zeroExtended(type, in[1].i));
    unsigned wide = 2 * type.width;
    APInt product = isSigned ? a.sext(wide) * b.sext(wide) : a.zext(wide) * b.zext(wide);
    out[0] = Scalar::ofInt(product.trunc(type.width).getSExtValue());
    out[1] = Scalar::ofInt(product.lshr(type.width).trunc(type.width).getSExtValue());
    return nullptr;
  };
}

static ScalarKernel integerDivision(Operation *op, ElementType type) {
  return TypeSwitch<Operation *, ScalarKernel>(op)
      .Case([=](arith::DivSIOp) { return signedQuotient(type, std::divides<int64_t>()); })
      .Case([=](arith::FloorDivSIOp) { return signedQuotient(type, floorDivide); })
      .Case([=](arith::CeilDivSIOp) { return signedQuotient(type, ceilDivide); })
      .Case([=](arith::DivUIOp) { return unsignedQuotient(type, std::divides<uint64_t>()); })
      .Case([=](arith::CeilDivUIOp) {
        return unsignedQuotient(
            type, [](uint64_t a, uint64_t b) { return a / b + static_cast<uint64_t>(a % b != 0); });
      })
      // The remainder of a division by zero is the dividend.
      .Case([=](arith::RemSIOp) {
        return intBinary(type, [](int64_t a, int64_t b) {
          return b == 0 ? a : b == -1 ? 0 : a % b;
        });
      })
      .Case([=](arith::RemUIOp) {
        return unsignedBinary(type, [](uint64_t a, uint64_t b) { return b ? a % b : a; });
      })
      .Default([](Operation *) { return ScalarKernel(); });
}

static ScalarKernel integerOp(Operation *op, ElementType type) {
  // Sums and products wrap around: compute them unsigned, where overflow is defined.
  return TypeSwitch<Operation *, ScalarKernel>(op)
      .Case([=](arith::AddIOp) { return unsignedBinary(type, std::plus<uint64_t>()); })
      .Case([=](arith::SubIOp) { return unsignedBinary(type, std::minus<uint64_t>()); })
      .Case([=](arith::MulIOp) { return unsignedBinary(type, std::multiplies<uint64_t>()); })
      .Case([=](arith::AndIOp) { return unsignedBinary(type, std::bit_and<uint64_t>()); })
      .Case([=](arith::OrIOp) { return unsignedBinary(type, std::bit_or<uint64_t>()); })
      .Case([=](arith::XOrIOp) { return unsignedBinary(type, std::bit_xor<uint64_t>()); })
      .Case([=](arith::MinSIOp) {
        return intBinary(type, [](int64_t a, int64_t b) { return std::min(a, b); });
      })
      .Case([=](arith::MaxSIOp) {
        return intBinary(type, [](int64_t a, int64_t b) { return std::max(a, b); });
      })
      .Case([=](arith::MinUIOp) {
        return unsignedBinary(type, [](uint64_t a, uint64_t b) { return std::min(a, b); });
      })
      .Case([=](arith::MaxUIOp) {
        return unsignedBinary(type, [](uint64_t a, uint64_t b) { return std::max(a, b); });
      })
      .Case([=](arith::ShLIOp) {
        return shift(type, /*keepsSign=*/false, [](int64_t a, uint64_t n) {
          return static_cast<int64_t>(static_cast<uint64_t>(a) << n);
        });
      })
      .Case([=](arith::ShRSIOp) {
        return shift(type, /*keepsSign=*/true, [](int64_t a, uint64_t n) { return a >> n; });
      })
      .Case([=](arith::ShRUIOp) {
        return shift(type, /*keepsSign=*/false, [=](int64_t a, uint64_t n) {
          return static_cast<int64_t>(zeroExtended(type, a) >> n);
        });
      })
      .Case([=](arith::CmpIOp cmp) -> ScalarKernel {
        arith::CmpIPredicate predicate = cmp.getPredicate();
        return [=](const Scalar *in, Scalar *out) -> const char * {
          *out = truth(compareInts(predicate, in[0].i, in[1].i, zeroExtended(type, in[0].i),
                                   zeroExtended(type, in[1].i)));
          return nullptr;
        };
      })
      .Case([=](arith::AddUIExtendedOp) -> ScalarKernel {
        return [=](const Scalar *in, Scalar *out) -> const char * {
          uint64_t a = zeroExtended(type, in[0].i);
          uint64_t sum = zeroExtended(type, static_cast<int64_t>(a + zeroExtended(type, in[1].i)));
          out[0] = Scalar::ofInt(wrapTo(type, static_cast<int64_t>(sum)));
          out[1] = truth(sum < a);
          return nullptr;
        };
      })
      .Case([=](arith::MulSIExtendedOp) { return wideProduct(type, true); })
      .Case([=](arith::MulUIExtendedOp) { return wideProduct(type, false); })
      .Default([=](Operation *other) { return integerDivision(other, type); });
}

ScalarKernel tessera::interpreter::getWideKernel(Operation *op) {
  return floatOp(op, ElementType{ElementType::f32, 32});
}

ScalarKernel tessera::interpreter::getArithKernel(Operation *op) {
  if (op->getNumOperands() == 0)
    return {};
  if (isa<arith::SelectOp>(op))
    return [](const Scalar *in, Scalar *out) -> const char * {
      *out = in[0].i ? in[1] : in[2];
      return nullptr;
    };
  ElementType from = *elementOf(op->getOperand(0).getType());
  ElementType to = *elementOf(op->getResult(0).getType());
  if (ScalarKernel kernel = conversion(op, from, to))
    return kernel;
  return from.isFloat() ? floatOp(op, from) : integerOp(op, from);
}
