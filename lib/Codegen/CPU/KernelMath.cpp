//===- KernelMath.cpp - Arithmetic for LLVM -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

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

/// Rounds f32 to bf16 in integers. Unlike upstream's, the choice for NaN is made on integers: a
/// select of bf16 values would become a library call on CPUs that have no bf16.
struct TruncateToBF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType(), from = op.getIn().getType();
    if (!getElementTypeOrSelf(type).isBF16() || !getElementTypeOrSelf(from).isF32())
      return rewriter.notifyMatchFailure(op, "not f32 to bf16");
    Location loc = op.getLoc();
    auto like = [&](Type element) -> Type {
      auto vector = dyn_cast<VectorType>(type);
      return vector ? Type(vector.clone(element)) : element;
    };
    Type i32 = like(rewriter.getI32Type()), i16 = like(rewriter.getI16Type());
    auto constant = [&](int32_t value) -> Value {
      TypedAttr attribute = rewriter.getI32IntegerAttr(value);
      if (auto vector = dyn_cast<VectorType>(i32))
        attribute = DenseElementsAttr::get(vector, attribute);
      return arith::ConstantOp::create(rewriter, loc, attribute);
    };
    // Round to nearest even: add half of the last place, less one when it is even.
    Value bits = arith::BitcastOp::create(rewriter, loc, i32, op.getIn());
    Value sixteen = constant(16);
    Value last = arith::ShRUIOp::create(rewriter, loc, bits, sixteen);
    last = arith::AndIOp::create(rewriter, loc, last, constant(1));
    Value rounded = arith::AddIOp::create(rewriter, loc, bits, constant(0x7fff));
    rounded = arith::AddIOp::create(rewriter, loc, rounded, last);
    Value nan =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, op.getIn(), op.getIn());
    rounded = arith::SelectOp::create(rewriter, loc, nan, constant(0x7fc00000), rounded);
    Value high = arith::ShRUIOp::create(rewriter, loc, rounded, sixteen);
    high = arith::TruncIOp::create(rewriter, loc, i16, high);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, high);
    return success();
  }
};

/// exp(x) - 1 as (u - 1) x / log(u), u = exp(x): the errors of exp and log cancel, so that small x
/// keep their digits (W. Kahan; N. Higham, "Accuracy and Stability of Numerical
/// Algorithms", 1.14.1). LLVM's own lowering subtracts and gives 0.
struct ExpandExpM1 : OpRewritePattern<math::ExpM1Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpM1Op op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getType();
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    auto constant = [&](double value) -> Value {
      TypedAttr attribute = rewriter.getFloatAttr(element, value);
      if (auto vector = dyn_cast<VectorType>(type))
        attribute = DenseElementsAttr::get(vector, attribute);
      return arith::ConstantOp::create(rewriter, loc, attribute);
    };
    auto equal = [&](Value a, Value b) -> Value {
      return arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OEQ, a, b);
    };
    Value x = op.getOperand(), one = constant(1.0), minusOne = constant(-1.0);
    Value u = math::ExpOp::create(rewriter, loc, x);
    Value difference = arith::SubFOp::create(rewriter, loc, u, one);
    Value product = arith::MulFOp::create(rewriter, loc, difference, x);
    Value quotient =
        arith::DivFOp::create(rewriter, loc, product, math::LogOp::create(rewriter, loc, u));
    // Where exp is infinite so is the result, not inf * x / inf.
    Value infinite = constant(std::numeric_limits<double>::infinity());
    Value result = arith::SelectOp::create(rewriter, loc, equal(u, infinite), u, quotient);
    result = arith::SelectOp::create(rewriter, loc, equal(difference, minusOne), minusOne, result);
    result = arith::SelectOp::create(rewriter, loc, equal(u, one), x, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

LogicalResult expandKernelMath(ModuleOp module, const KernelTarget &target, bool approximate) {
  MLIRContext *context = module.getContext();
  bool bf16 = uses<BFloat16Type>(module), f16 = uses<Float16Type>(module);
  if (bf16 || f16) {
    // Every operation in f32, rounded after each: what the types mean, without library calls.
    // Upstream's passes leave multiply-adds alone.
    module.walk([](math::FmaOp fma) {
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
    });
    PassManager passes(context);
    SmallVector<std::string> narrow{"bf16", "f16"};
    math::MathExtendToSupportedTypesOptions extend;
    extend.extraTypeStrs = {};
    extend.targetTypeStr = "f32";
    passes.addNestedPass<func::FuncOp>(math::createMathExtendToSupportedTypes(extend));
    arith::ArithEmulateUnsupportedFloatsOptions emulate;
    emulate.sourceTypeStrs = narrow;
    emulate.targetTypeStr = "f32";
    passes.addNestedPass<func::FuncOp>(arith::createArithEmulateUnsupportedFloats(emulate));
    if (failed(passes.run(module)))
      return failure();
  }

  GreedyRewriteConfig config;
  config.setMaxIterations(10);
  if (approximate) {
    {
      // What other functions say in terms of those that have polynomials.
      RewritePatternSet patterns(context);
      math::populateExpansionPatterns(patterns,
                                      {"exp2f", "sinh", "cosh", "rsqrt", "powi", "clampf"});
      if (failed(applyPatternsGreedily(module, std::move(patterns), config)))
        return failure();
    }
    RewritePatternSet patterns(context);
    // The polynomials are for f32 and check the type themselves; pow would lose digits.
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.tanh", "math.erf", "math.erfc", "math.log",
                                 "math.log2", "math.log1p", "math.expm1", "math.sin", "math.cos",
                                 "math.atan", "math.atan2", "math.asin", "math.acos"},
                                name);
    });
    if (failed(applyPatternsGreedily(module, std::move(patterns), config)))
      return failure();
  }
  RewritePatternSet patterns(context);
  patterns.add<ExpandExpM1>(context);
  math::populateExpansionPatterns(patterns, {"rsqrt", "ctlz", "powi", "clampf"});
  arith::populateArithExpandOpsPatterns(patterns);
  if (bf16) {
    patterns.add<TruncateToBF16>(context, /*benefit=*/2);
    arith::populateExpandBFloat16Patterns(patterns);
  }
  return applyPatternsGreedily(module, std::move(patterns), config);
}

} // namespace tessera::codegen
