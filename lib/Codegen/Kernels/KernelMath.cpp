//===- KernelMath.cpp - Arithmetic for LLVM -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"
#include "NarrowFloats.h"
#include "Trigonometry.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {

/// Whether anything in `module` has an element of type T.
template <typename T> static bool uses(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        auto is = [](Type type) { return isa<T>(getElementTypeOrSelf(type)); };
        return llvm::any_of(op->getOperandTypes(), is) || llvm::any_of(op->getResultTypes(), is)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {

/// exp(x) - 1 as (u - 1) x / log(u), u = exp(x): the errors of exp and log cancel, so that small x
/// keep their digits (W. Kahan; N. Higham, "Accuracy and Stability of Numerical
/// Algorithms", 1.14.1). LLVM's own lowering subtracts and gives 0.
struct ExpandExpM1 : OpRewritePattern<math::ExpM1Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpM1Op op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ElementBuilder f(rewriter, loc, op.getType());
    Value x = op.getOperand(), u = math::ExpOp::create(rewriter, loc, x);
    Value difference = f.sub(u, f.c(1));
    Value result = f.div(f.mul(difference, x), math::LogOp::create(rewriter, loc, u));
    // Where exp is infinite so is the result, not inf * x / inf.
    result = f.pick(f.equal(u, f.c(std::numeric_limits<double>::infinity())), u, result);
    result = f.pick(f.equal(difference, f.c(-1)), f.c(-1), result);
    result = f.pick(f.equal(u, f.c(1)), x, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Sine and cosine of f32, in f64. Upstream's polynomials reduce the argument in f32, which loses
/// all digits of a large one.
template <typename Op, int64_t shift> struct ExpandSine : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Location loc = op.getLoc();
    Type wide = ElementBuilder(rewriter, loc, type).like(rewriter.getF64Type());
    ElementBuilder f(rewriter, loc, wide);
    Value x = arith::ExtFOp::create(rewriter, loc, wide, op.getOperand());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, sine(f, x, shift, /*wasF32=*/true));
    return success();
  }
};

/// Half of t + t / (t + 1), t = exp|x| - 1, which keeps the digits of small x (sinh); half of
/// u + 1 / u, u = exp|x| (cosh). Where exp|x| would be infinite, half the square of exp|x/2|.
template <typename Op> struct ExpandHyperbolic : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Location loc = op.getLoc();
    ElementBuilder f(rewriter, loc, op.getType());
    constexpr double kLargest = 88; // exp of it is finite
    Value x = op.getOperand(), a = f.abs(x);
    Value isLarge = f.less(f.c(kLargest), a), some = f.pick(isLarge, f.c(kLargest), a);
    Value small;
    if constexpr (std::is_same_v<Op, math::SinhOp>) {
      Value t = math::ExpM1Op::create(rewriter, loc, some);
      small = f.mul(f.c(0.5), f.add(t, f.div(t, f.add(t, f.c(1)))));
    } else {
      Value u = math::ExpOp::create(rewriter, loc, some);
      small = f.add(f.mul(f.c(0.5), u), f.div(f.c(0.5), u));
    }
    Value root = math::ExpOp::create(rewriter, loc, f.mul(f.c(0.5), a));
    Value result = f.pick(isLarge, f.mul(f.mul(f.c(0.5), root), root), small);
    if constexpr (std::is_same_v<Op, math::SinhOp>)
      result = f.sign(result, x);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Logarithms of f32: x = 2^k m with m in [sqrt(1/2), sqrt(2)), for a subnormal x from 2^23 x;
/// then the polynomial of Cephes (S. Moshier, logf.c) for log(m), in three independent parts.
/// Upstream's treats a subnormal number as the least normal one.
template <typename Op, bool isBase2> struct ExpandLog : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    ElementBuilder f(rewriter, op.getLoc(), op.getType());
    Value x = op.getOperand(), isSmall = f.less(x, f.c(0x1p-126));
    Value raised = f.minus(f.bits(f.mul(x, f.c(0x1p23))), f.n(23 << 23));
    Value bits = f.pick(isSmall, raised, f.bits(x));
    constexpr int32_t kRootOfHalf = 0x3f3504f3;
    Value power = f.mask(f.minus(bits, f.n(kRootOfHalf)), f.n(-(1 << 23)));
    Value k = f.toFloat(f.rightSigned(power, 23));
    Value m = f.sub(f.floats(f.minus(bits, power)), f.c(1));
    Value square = f.mul(m, m), cube = f.mul(square, m);
    Value high = f.series(m, {1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2});
    Value middle = f.series(m, {-1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1});
    Value low = f.series(m, {3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1});
    Value rest = f.mul(f.fma(f.fma(high, cube, middle), cube, low), cube);
    Value result = f.add(m, f.fma(f.c(-0.5), square, rest));
    result = isBase2 ? f.fma(result, f.c(1.44269504088896340736), k)
                     : f.fma(k, f.c(0.69314718055994530942), result);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Value invalid = f.is(arith::CmpFPredicate::ULT, x, f.c(0));
    result = f.pick(f.equal(x, f.c(kInfinity)), x, result);
    result = f.pick(invalid, f.c(std::numeric_limits<double>::quiet_NaN()), result);
    rewriter.replaceOp(op, f.pick(f.equal(x, f.c(0)), f.c(-kInfinity), result));
    return success();
  }
};

/// The polynomial of erf loses the sign of -0.
void keepSignOfErf(ModuleOp module) {
  SmallVector<math::ErfOp> ops;
  module.walk([&](math::ErfOp op) { ops.push_back(op); });
  for (math::ErfOp op : ops) {
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Value result = math::CopySignOp::create(b, op.getLoc(), op, op.getOperand());
    op.getResult().replaceAllUsesExcept(result, result.getDefiningOp());
  }
}

/// Marks functions of f32 whose results are only rounded to 16 bits, so that an approximation is
/// within a unit in the last place of these (docs/numerics.md).
void markApproximable(ModuleOp module) {
  module.walk([](Operation *op) {
    if (!isa<math::ExpOp, math::Exp2Op, math::TanhOp>(op) ||
        !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
      return;
    bool isRounded = llvm::all_of(op->getUsers(), [](Operation *user) {
      auto rounding = dyn_cast<arith::TruncFOp>(user);
      return rounding && getElementTypeOrSelf(rounding.getType()).getIntOrFloatBitWidth() == 16;
    });
    if (isRounded)
      cast<arith::ArithFastMathInterface>(op)->setAttr(
          "fastmath", arith::FastMathFlagsAttr::get(op->getContext(), arith::FastMathFlags::afn));
  });
}

/// Replaces the greater and the lesser of two f32, instructions of a GPU, by LLVM's intrinsics.
/// Upstream's patterns would expand them to comparisons.
template <typename Op, typename Intrinsic> void keepInstructions(ModuleOp module) {
  SmallVector<Op> ops;
  module.walk([&](Op op) {
    auto vector = dyn_cast<VectorType>(op.getType());
    if (getElementTypeOrSelf(op.getType()).isF32() && !(vector && vector.getRank() != 1))
      ops.push_back(op);
  });
  for (Op op : ops) {
    OpBuilder b(op);
    Value result =
        Intrinsic::create(b, op.getLoc(), op.getType(), op.getLhs(), op.getRhs()).getResult();
    op.getResult().replaceAllUsesWith(result);
    op.erase();
  }
}

} // namespace

LogicalResult expandKernelMath(ModuleOp module, const MathTarget &target) {
  MLIRContext *context = module.getContext();
  bool bf16 = uses<BFloat16Type>(module), f16 = uses<Float16Type>(module);
  if ((bf16 || f16) && failed(computeInF32(module, target.zeroExtendsNaN, target.isGpu)))
    return failure();
  if (target.isGpu)
    markApproximable(module);

  GreedyRewriteConfig config;
  config.setMaxIterations(10);
  if (target.approximate) {
    {
      // Expands functions into those with polynomials.
      RewritePatternSet patterns(context);
      SmallVector<StringRef> expanded{"rsqrt", "powi"};
      if (!target.isGpu)
        expanded.push_back("exp2f");
      math::populateExpansionPatterns(patterns, expanded);
      patterns.add<ExpandSine<math::SinOp, 0>, ExpandSine<math::CosOp, 1>,
                   ExpandHyperbolic<math::SinhOp>, ExpandHyperbolic<math::CoshOp>>(context);
      if (failed(applyPatternsGreedily(module, std::move(patterns), config)))
        return failure();
    }
    keepSignOfErf(module);
    RewritePatternSet patterns(context);
    patterns.add<ExpandLog<math::LogOp, false>, ExpandLog<math::Log2Op, true>>(context,
                                                                               /*benefit=*/2);
    // The polynomials are for f32 and check the type themselves; pow and the arc tangents would
    // lose digits.
    populateMathPolynomialApproximationPatterns(patterns, [&](StringRef name) {
      return llvm::is_contained(
                 {"math.erf", "math.erfc", "math.log1p", "math.expm1", "math.asin", "math.acos"},
                 name) ||
             (!target.isGpu && llvm::is_contained({"math.exp", "math.tanh"}, name));
    });
    if (failed(applyPatternsGreedily(module, std::move(patterns), config)))
      return failure();
  }
  if (target.isGpu) {
    keepInstructions<arith::MaximumFOp, LLVM::MaximumOp>(module);
    keepInstructions<arith::MinimumFOp, LLVM::MinimumOp>(module);
    keepInstructions<arith::MaxNumFOp, LLVM::MaxNumOp>(module);
    keepInstructions<arith::MinNumFOp, LLVM::MinNumOp>(module);
  }
  RewritePatternSet patterns(context);
  patterns.add<ExpandExpM1>(context);
  math::populateExpansionPatterns(patterns, {"rsqrt", "ctlz", "powi"});
  arith::populateArithExpandOpsPatterns(patterns);
  if (bf16 && !target.isGpu)
    arith::populateExpandBFloat16Patterns(patterns);
  if (bf16 || f16)
    populateNarrowFloatPatterns(patterns, target.f16InIntegers, !target.isGpu);
  return applyPatternsGreedily(module, std::move(patterns), config);
}

} // namespace tessera::codegen
