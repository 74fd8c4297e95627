//===- PrepareTensors.cpp - Tensor ops as generics and slices -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareTensors.h"
#include "Kernels/LowerExt.h"

#include "tessera/Codegen/Kernels/DeadInit.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Dialect/Ext/IR/FusedAttention.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tessera;

static SmallVector<OpFoldResult> constants(OpBuilder &builder, ArrayRef<int64_t> values) {
  return getAsIndexOpFoldResult(builder.getContext(), values);
}

static Value emptyLike(OpBuilder &builder, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
}

namespace {

/// Decomposes softmax and similar ops.
struct DecomposeAggregate : OpInterfaceRewritePattern<linalg::AggregatedOpInterface> {
  DecomposeAggregate(MLIRContext *context, bool parallel)
      : OpInterfaceRewritePattern(context), parallel(parallel) {}

  LogicalResult matchAndRewrite(linalg::AggregatedOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (parallel && op->hasAttr(ext::kFusedAttention))
      return rewriter.notifyMatchFailure(op, "it is a kernel");
    FailureOr<SmallVector<Value>> results = op.decomposeOperation(rewriter);
    if (failed(results))
      return rewriter.notifyMatchFailure(op, "it does not decompose");
    rewriter.replaceOp(op, *results);
    return success();
  }

  bool parallel; ///< for a GPU
};

/// Transposes, broadcasts, reductions, maps, named elementwise ops. Contractions and windowed ops
/// stay recognizable; fills identify the inits of accumulators.
struct Generalize : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(linalg::LinalgOp op, PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp, linalg::FillOp>(op) || linalg::isaContractionOpInterface(op) ||
        linalg::isaConvolutionOpInterface(op))
      return rewriter.notifyMatchFailure(op, "is kept as a named op");
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

/// pad = fill, then an insertion of the source.
struct DecomposePad : OpRewritePattern<tensor::PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::PadOp op, PatternRewriter &rewriter) const override {
    Value value = op.getConstantPaddingValue();
    if (!value || !op.getType().hasStaticShape() || !op.getSourceType().hasStaticShape())
      return rewriter.notifyMatchFailure(op, "its value or its shape is not constant");
    for (int64_t low : op.getStaticLow()) // a dynamic one is negative, too
      if (low < 0)
        return rewriter.notifyMatchFailure(op, "it cuts");
    for (int64_t high : op.getStaticHigh())
      if (high < 0)
        return rewriter.notifyMatchFailure(op, "it cuts");
    Location loc = op.getLoc();
    Value empty = emptyLike(rewriter, loc, op.getType());
    Value filled = linalg::FillOp::create(rewriter, loc, value, empty).getResult(0);
    SmallVector<int64_t> ones(op.getType().getRank(), 1);
    rewriter.replaceOpWithNewOp<tensor::InsertSliceOp>(
        op, op.getSource(), filled, op.getMixedLowPad(),
        constants(rewriter, op.getSourceType().getShape()), constants(rewriter, ones));
    return success();
  }
};

/// concat = insertions of the sources one after the other.
struct DecomposeConcat : OpRewritePattern<tensor::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ConcatOp op, PatternRewriter &rewriter) const override {
    auto type = op.getResultType();
    if (!type.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "its shape is dynamic");
    Value result = emptyLike(rewriter, op.getLoc(), type);
    SmallVector<int64_t> offsets(type.getRank(), 0), ones(type.getRank(), 1);
    for (Value input : op.getInputs()) {
      ArrayRef<int64_t> shape = cast<RankedTensorType>(input.getType()).getShape();
      result = tensor::InsertSliceOp::create(rewriter, op.getLoc(), input, result,
                                             constants(rewriter, offsets),
                                             constants(rewriter, shape), constants(rewriter, ones));
      offsets[op.getDim()] += shape[op.getDim()];
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct DecomposeSplat : OpRewritePattern<tensor::SplatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::SplatOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !type.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "its shape is dynamic");
    Value empty = emptyLike(rewriter, op.getLoc(), type);
    rewriter.replaceOpWithNewOp<linalg::FillOp>(op, op.getInput(), empty);
    return success();
  }
};

struct LowerGenerate : OpRewritePattern<tensor::GenerateOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::GenerateOp op, PatternRewriter &rewriter) const override {
    return linalg::rewriteInDestinationPassingStyle(rewriter, op);
  }
};

/// The gathered coordinates of one position: element `number` along the last dimension of
/// `indices` at `position`, as an index.
Value coordinateAt(OpBuilder &builder, Location loc, Value indices, SmallVector<Value> position,
                   int64_t number) {
  position.push_back(arith::ConstantIndexOp::create(builder, loc, number));
  Value element = tensor::ExtractOp::create(builder, loc, indices, position);
  if (element.getType().isIndex())
    return element;
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), element);
}

/// gather = a generic over its result that reads elements of the source.
struct LowerGather : OpRewritePattern<tensor::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::GatherOp op, PatternRewriter &rewriter) const override {
    auto type = op.getResultType();
    auto source = op.getSourceType();
    if (!type.hasStaticShape() || !source.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "its shape is dynamic");
    int64_t batchRank = op.getIndicesType().getRank() - 1;
    bool reduced = type.getRank() - batchRank < source.getRank();
    AffineMap identity = rewriter.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        rewriter, op.getLoc(), TypeRange{type}, ValueRange{},
        ValueRange{emptyLike(rewriter, op.getLoc(), type)}, ArrayRef<AffineMap>{identity}, loops,
        [&](OpBuilder &builder, Location loc, ValueRange) {
          SmallVector<Value> batch, position;
          for (int64_t dim = 0; dim < batchRank; ++dim)
            batch.push_back(linalg::IndexOp::create(builder, loc, dim));
          int64_t next = batchRank;
          for (int64_t dim = 0; dim < source.getRank(); ++dim) {
            ArrayRef<int64_t> gathered = op.getGatherDims();
            auto *it = llvm::find(gathered, dim);
            if (it == gathered.end()) {
              position.push_back(linalg::IndexOp::create(builder, loc, next++));
              continue;
            }
            position.push_back(
                coordinateAt(builder, loc, op.getIndices(), batch, it - gathered.begin()));
            next += reduced ? 0 : 1;
          }
          Value element = tensor::ExtractOp::create(builder, loc, op.getSource(), position);
          linalg::YieldOp::create(builder, loc, element);
        });
    rewriter.replaceOp(op, generic);
    return success();
  }
};

/// scatter = a loop over its windows that inserts each into the destination: a separate kernel,
/// whose loop is not a step.
struct LowerScatter : OpRewritePattern<tensor::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ScatterOp op, PatternRewriter &rewriter) const override {
    auto type = op.getDestType();
    auto source = op.getSourceType();
    if (!type.hasStaticShape() || !source.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "its shape is dynamic");
    Location loc = op.getLoc();
    int64_t batchRank = op.getIndicesType().getRank() - 1;
    if (batchRank == 0)
      return rewriter.notifyMatchFailure(op, "it has no batch dimension");
    ArrayRef<int64_t> scattered = op.getScatterDims();
    SmallVector<int64_t> window(type.getShape()), ones(type.getRank(), 1);
    for (int64_t dim : scattered)
      window[dim] = 1;
    SmallVector<Value> lower, upper, step;
    auto group = rt::GroupOp::create(rewriter, loc, TypeRange{type}, "scatter");
    rewriter.setInsertionPointToStart(&group.getBody().emplaceBlock());
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    for (int64_t dim = 0; dim < batchRank; ++dim) {
      lower.push_back(zero);
      upper.push_back(arith::ConstantIndexOp::create(rewriter, loc, source.getDimSize(dim)));
      step.push_back(one);
    }
    auto nest = scf::buildLoopNest(
        rewriter, loc, lower, upper, step, ValueRange{op.getDest()},
        [&](OpBuilder &builder, Location, ValueRange batch, ValueRange carried) {
          SmallVector<OpFoldResult> from = getAsOpFoldResult(batch), sizes, strides;
          SmallVector<OpFoldResult> to =
              constants(builder, SmallVector<int64_t>(type.getRank(), 0));
          from.resize(source.getRank(), builder.getIndexAttr(0));
          for (int64_t dim = 0; dim < source.getRank(); ++dim) {
            sizes.push_back(builder.getIndexAttr(dim < batchRank ? 1 : source.getDimSize(dim)));
            strides.push_back(builder.getIndexAttr(1));
          }
          for (auto [number, dim] : llvm::enumerate(scattered))
            to[dim] = coordinateAt(builder, loc, op.getIndices(), batch, number);
          auto windowType = RankedTensorType::get(source.getShape().drop_front(batchRank),
                                                  source.getElementType());
          Value piece = tensor::ExtractSliceOp::create(builder, loc, windowType, op.getSource(),
                                                       from, sizes, strides);
          Value put =
              tensor::InsertSliceOp::create(builder, loc, piece, carried[0], to,
                                            constants(builder, window), constants(builder, ones));
          return SmallVector<Value>{put};
        });
    rt::YieldOp::create(rewriter, loc, nest.results);
    rewriter.replaceOp(op, group);
    return success();
  }
};

/// A linalg op without iterations returns its inits; a tensor without elements needs no
/// computation.
struct DropEmpty : RewritePattern {
  explicit DropEmpty(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 2, context) {}

  static bool isEmpty(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() && type.getNumElements() == 0;
  }

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
        linalgOp && linalgOp.hasPureTensorSemantics() &&
        llvm::is_contained(linalgOp.getStaticLoopRanges(), 0)) {
      rewriter.replaceOp(op, linalgOp.getDpsInits());
      return success();
    }
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op); insert && isEmpty(insert.getSource())) {
      rewriter.replaceOp(op, insert.getDest());
      return success();
    }
    bool computes = isa<tensor::TensorDialect>(op->getDialect()) && !isa<tensor::EmptyOp>(op);
    if (!computes || op->getNumResults() != 1 || !isEmpty(op->getResult(0)))
      return rewriter.notifyMatchFailure(op, "it has elements to compute");
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    rewriter.replaceOp(op, emptyLike(rewriter, op->getLoc(), type));
    return success();
  }
};

} // namespace

/// Ops that overwrite all of their init get a new tensor: some patterns pass an operand of the same
/// type instead, which would stay live.
static void dropUnreadInits(func::FuncOp function) {
  function.walk([](linalg::LinalgOp op) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      auto type = dyn_cast<RankedTensorType>(init.get().getType());
      if (!type || !type.hasStaticShape() || !codegen::isInitDead(op, init) ||
          init.get().getDefiningOp<tensor::EmptyOp>())
        continue;
      // In the loops of a kernel a slice is a part of what they compute in place.
      if (init.get().getDefiningOp<tensor::ExtractSliceOp>() && op->getParentOfType<rt::GroupOp>())
        continue;
      OpBuilder builder(op);
      init.set(emptyLike(builder, op.getLoc(), type));
    }
  });
}

/// Elements of a constant from which on the artifact does not hold a copy for a loop to start from.
static constexpr int64_t kFilledElements = 1024;

static void fillIfSplat(Operation *op, OpOperand &init, int64_t least) {
  SplatElementsAttr splat;
  if (!matchPattern(init.get(), m_Constant(&splat)) || splat.getNumElements() < least)
    return;
  OpBuilder builder(op);
  Location loc = init.get().getLoc();
  Value value = arith::ConstantOp::create(builder, loc, splat.getSplatValue<TypedAttr>());
  Value empty = emptyLike(builder, loc, cast<RankedTensorType>(init.get().getType()));
  init.set(linalg::FillOp::create(builder, loc, value, empty).getResult(0));
}

/// Turns splat constants that are written over into fills, which take no space in the artifact:
/// inits of accumulators, where zeros are free, what loops carry, and tensors that get slices.
static void fillSplatInits(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      for (OpOperand &init : linalgOp.getDpsInitsMutable())
        fillIfSplat(op, init, 0);
    } else if (auto loop = dyn_cast<LoopLikeOpInterface>(op)) {
      for (OpOperand &init : loop.getInitsMutable())
        fillIfSplat(op, init, kFilledElements);
    } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      fillIfSplat(op, insert.getDestMutable(), kFilledElements);
    }
  });
}

LogicalResult codegen::prepareTensors(func::FuncOp function, bool parallel) {
  MLIRContext *context = function.getContext();
  lowerExtOps(function, parallel);
  RewritePatternSet patterns(context);
  linalg::populateElementwiseToLinalgConversionPatterns(patterns);
  patterns.add<DecomposeAggregate>(context, parallel);
  patterns.add<Generalize, DecomposePad, DecomposeConcat, DecomposeSplat, LowerGenerate,
               LowerGather, LowerScatter, DropEmpty>(context);
  tensor::CastOp::getCanonicalizationPatterns(patterns, context);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  if (failed(applyPatternsGreedily(function, std::move(patterns))))
    return failure();
  dropUnreadInits(function);
  fillSplatInits(function);
  return success();
}
