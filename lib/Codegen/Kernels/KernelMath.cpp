//===- KernelMath.cpp - Arithmetic for LLVM -----------------------------===//
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

/// Sine and cosine of f32, in f64. Upstream's polynomials reduce the argument in f32, which
/// leaves no digits of a large one.
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

/// Logarithms of f32 for the polynomials, which take a subnormal number for the least normal one:
/// log x is log(2^24 x) - 24 log 2 there.
template <typename Op> void raiseSubnormals(ModuleOp module, double logOfTwo) {
  SmallVector<Op> ops;
  module.walk([&](Op op) {
    if (getElementTypeOrSelf(op.getType()).isF32())
      ops.push_back(op);
  });
  for (Op op : ops) {
    OpBuilder b(op);
    ElementBuilder f(b, op.getLoc(), op.getType());
    Value x = op.getOperand(), isSmall = f.less(x, f.c(0x1p-126));
    // The compiler makes masked operations of the two choices.
    op.getOperandMutable().assign(f.pick(isSmall, f.mul(x, f.c(0x1p24)), x));
    b.setInsertionPointAfter(op);
    Value lowered = f.sub(op, f.c(24 * logOfTwo)), result = f.pick(isSmall, lowered, op);
    SmallPtrSet<Operation *, 2> own{lowered.getDefiningOp(), result.getDefiningOp()};
    op.getResult().replaceAllUsesExcept(result, own);
  }
}

/// The polynomial of erf begins with 0, whatever the sign of its argument.
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

} // namespace

LogicalResult expandKernelMath(ModuleOp module, const MathTarget &target) {
  MLIRContext *context = module.getContext();
  bool bf16 = uses<BFloat16Type>(module), f16 = uses<Float16Type>(module);
  if ((bf16 || f16) && failed(computeInF32(module, target.zeroExtendsNaN)))
    return failure();

  GreedyRewriteConfig config;
  config.setMaxIterations(10);
  if (target.approximate) {
    {
      // What other functions say in terms of those that have polynomials.
      RewritePatternSet patterns(context);
      math::populateExpansionPatterns(patterns, {"exp2f", "rsqrt", "powi"});
      patterns.add<ExpandSine<math::SinOp, 0>, ExpandSine<math::CosOp, 1>,
                   ExpandHyperbolic<math::SinhOp>, ExpandHyperbolic<math::CoshOp>>(context);
      if (failed(applyPatternsGreedily(module, std::move(patterns), config)))
        return failure();
    }
    keepSignOfErf(module);
    raiseSubnormals<math::LogOp>(module, 0.69314718055994530942);
    raiseSubnormals<math::Log2Op>(module, 1);
    RewritePatternSet patterns(context);
    // The polynomials are for f32 and check the type themselves; pow and the arc tangents would
    // lose digits.
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.tanh", "math.erf", "math.erfc", "math.log",
                                 "math.log2", "math.log1p", "math.expm1", "math.asin", "math.acos"},
                                name);
    });
    if (failed(applyPatternsGreedily(module, std::move(patterns), config)))
      return failure();
  }
  RewritePatternSet patterns(context);
  patterns.add<ExpandExpM1>(context);
  math::populateExpansionPatterns(patterns, {"rsqrt", "ctlz", "powi"});
  arith::populateArithExpandOpsPatterns(patterns);
  if (bf16)
    arith::populateExpandBFloat16Patterns(patterns);
  if (bf16 || f16)
    populateNarrowFloatPatterns(patterns, target.f16InIntegers);
  return applyPatternsGreedily(module, std::move(patterns), config);
}

} // namespace tessera::codegen
