//===- NarrowFloats.cpp - Conversions of 16-bit floats --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NarrowFloats.h"

#include "ElementBuilder.h"

#include <cmath>

using namespace mlir;

namespace tessera::codegen {
namespace {

bool converts(Type from, bool (Type::*isFrom)() const, Type to, bool (Type::*isTo)() const) {
  return (getElementTypeOrSelf(from).*isFrom)() && (getElementTypeOrSelf(to).*isTo)();
}

/// Rounds f32 to bf16 in integers. Unlike upstream's, the select for NaN is on integers: a select
/// of bf16 values would become a library call on CPUs without bf16.
struct TruncateToBF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!converts(x.getType(), &Type::isF32, op.getType(), &Type::isBF16))
      return rewriter.notifyMatchFailure(op, "not f32 to bf16");
    ElementBuilder f(rewriter, op.getLoc(), x.getType());
    Value bits = f.bits(x), rounded = bits;
    if (op.getFastmath() != arith::FastMathFlags::contract) {
      // Round to nearest even: add half of the last place, less one when it is even.
      Value last = f.mask(f.right(bits, 16), f.n(1));
      rounded = f.plus(f.plus(bits, f.n(0x7fff)), last);
      if (!op->hasAttr(kKeepsNaNAttr))
        rounded = f.pick(f.isNaN(x), f.n(0x7fc00000), rounded);
    }
    Value high = arith::TruncIOp::create(rewriter, op.getLoc(), f.like(rewriter.getI16Type()),
                                         f.right(rounded, 16));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), high);
    return success();
  }
};

/// Rounding twice, f64 to f32 to 16 bits, is correct if the first rounds to odd: inexact values get
/// an odd last place, so that they are not ties of the second.
struct TruncateFromF64 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!converts(x.getType(), &Type::isF64, op.getType(), &Type::isBF16) &&
        !converts(x.getType(), &Type::isF64, op.getType(), &Type::isF16))
      return rewriter.notifyMatchFailure(op, "not f64 to 16 bits");
    Location loc = op.getLoc();
    ElementBuilder wide(rewriter, loc, x.getType());
    ElementBuilder f(rewriter, loc, wide.like(rewriter.getF32Type()));
    Value y = arith::TruncFOp::create(rewriter, loc, wide.like(rewriter.getF32Type()), x);
    Value back = arith::ExtFOp::create(rewriter, loc, x.getType(), y);
    Value inexact = wide.is(arith::CmpFPredicate::ONE, back, x);
    Value away = wide.less(wide.abs(x), wide.abs(back));
    Value bits = f.minus(f.bits(y), f.pick(away, f.n(1), f.n(0)));
    bits = f.join(bits, f.pick(inexact, f.n(1), f.n(0)));
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), f.floats(bits));
    return success();
  }
};

/// bf16 is the upper half of f32. LLVM would move operations on an extended bf16 before the
/// extension, and call a library to round their results.
struct ExtendBF16 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!getElementTypeOrSelf(x.getType()).isBF16())
      return rewriter.notifyMatchFailure(op, "not from bf16");
    Location loc = op.getLoc();
    ElementBuilder narrow(rewriter, loc, x.getType());
    ElementBuilder f(rewriter, loc, narrow.like(rewriter.getF32Type()));
    Value bits =
        arith::ExtUIOp::create(rewriter, loc, f.like(rewriter.getI32Type()), narrow.bits(x));
    Value result = f.floats(f.left(bits, 16));
    if (getElementTypeOrSelf(op.getType()).isF64())
      result = arith::ExtFOp::create(rewriter, loc, op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Shifts the exponent into place and raises it by a product, which normalizes denormal numbers;
/// infinities and NaN get the largest exponent.
struct ExtendF16 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!getElementTypeOrSelf(x.getType()).isF16())
      return rewriter.notifyMatchFailure(op, "not from f16");
    Location loc = op.getLoc();
    ElementBuilder half(rewriter, loc, x.getType());
    ElementBuilder f(rewriter, loc, half.like(rewriter.getF32Type()));
    Value bits = arith::ExtUIOp::create(rewriter, loc, f.like(rewriter.getI32Type()), half.bits(x));
    Value amount = f.left(f.mask(bits, f.n(0x7fff)), 13);
    Value raised = f.bits(f.mul(f.floats(amount), f.c(0x1p112)));
    Value isLargest = f.compare(arith::CmpIPredicate::uge, amount, f.n(0x7c00 << 13));
    raised = f.pick(isLargest, f.join(amount, f.n(0x7f800000)), raised);
    Value result = f.floats(f.join(raised, f.left(f.mask(bits, f.n(0x8000)), 16)));
    if (getElementTypeOrSelf(op.getType()).isF64())
      result = arith::ExtFOp::create(rewriter, loc, op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Rounds normal numbers to nearest even as integers, denormal ones by adding a number with the
/// same last place.
struct TruncateToF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!converts(x.getType(), &Type::isF32, op.getType(), &Type::isF16))
      return rewriter.notifyMatchFailure(op, "not f32 to f16");
    Location loc = op.getLoc();
    ElementBuilder f(rewriter, loc, x.getType());
    constexpr int32_t kInfinity = 0x7c00, kNaN = 0x7e00;
    constexpr int32_t kOverflow = 0x477ff000; // 65520, half way to what would be 65536
    constexpr int32_t kSmallestNormal = 0x38800000;
    constexpr int32_t kBias = (127 - 15) << 23;
    Value a = f.abs(x), amount = f.bits(a);
    Value odd = f.mask(f.right(amount, 13), f.n(1));
    Value normal = f.right(f.plus(f.plus(f.minus(amount, f.n(kBias)), f.n(0xfff)), odd), 13);
    // 0.5 has the last place 2^-24, which is f16's smallest number.
    Value denormal = f.minus(f.bits(f.add(a, f.c(0.5))), f.n(0x3f000000));
    auto atLeast = [&](int32_t bound) {
      return f.compare(arith::CmpIPredicate::uge, amount, f.n(bound));
    };
    Value result = f.pick(atLeast(kSmallestNormal), normal, denormal);
    result = f.pick(atLeast(kOverflow), f.n(kInfinity), result);
    result = f.pick(f.isNaN(x), f.n(kNaN), result);
    result = f.join(result, f.mask(f.right(f.bits(x), 16), f.n(0x8000)));
    Value low = arith::TruncIOp::create(rewriter, loc, f.like(rewriter.getI16Type()), result);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), low);
    return success();
  }
};

} // namespace

void populateNarrowFloatPatterns(RewritePatternSet &patterns, bool f16, bool bf16) {
  patterns.add<TruncateFromF64, ExtendBF16>(patterns.getContext(), /*benefit=*/2);
  if (bf16)
    patterns.add<TruncateToBF16>(patterns.getContext(), /*benefit=*/2);
  if (f16)
    patterns.add<ExtendF16, TruncateToF16>(patterns.getContext(), /*benefit=*/2);
}

} // namespace tessera::codegen
