//===- KernelPrepare.cpp - Reduce kernels to a few kinds of ops -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"
#include "KernelWiden.h"

#include "tessera/Codegen/Kernels/DeadInit.h"
#include "tessera/Planning/InPlace.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// tensor.gather as a linalg.generic that extracts: the result's leading dimensions walk the
/// indices, its trailing ones the source.
struct LowerGather : OpRewritePattern<tensor::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::GatherOp op, PatternRewriter &rewriter) const override {
    RankedTensorType resultType = op.getResultType();
    int64_t sourceRank = op.getSourceType().getRank();
    int64_t batchRank = op.getIndicesType().getRank() - 1;
    ArrayRef<int64_t> dims = op.getGatherDims();
    bool rankReduced = resultType.getRank() != batchRank + sourceRank;

    Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), resultType.getShape(),
                                          resultType.getElementType());
    AffineMap identity = rewriter.getMultiDimIdentityMap(resultType.getRank());
    SmallVector<utils::IteratorType> iterators(resultType.getRank(), utils::IteratorType::parallel);
    auto body = [&](OpBuilder &b, Location loc, ValueRange) {
      SmallVector<Value> at, source;
      for (int64_t i = 0; i < batchRank; ++i)
        at.push_back(linalg::IndexOp::create(b, loc, i));
      int64_t next = batchRank;
      for (int64_t dim = 0; dim < sourceRank; ++dim) {
        const int64_t *gathered = llvm::find(dims, dim);
        if (gathered == dims.end()) {
          source.push_back(linalg::IndexOp::create(b, loc, next++));
          continue;
        }
        at.push_back(arith::ConstantIndexOp::create(b, loc, gathered - dims.begin()));
        Value index = tensor::ExtractOp::create(b, loc, op.getIndices(), at);
        at.pop_back();
        if (!index.getType().isIndex())
          index = arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
        source.push_back(index);
        if (!rankReduced)
          ++next;
      }
      Value element = tensor::ExtractOp::create(b, loc, op.getSource(), source);
      linalg::YieldOp::create(b, loc, element);
    };
    rewriter.replaceOpWithNewOp<linalg::GenericOp>(op, TypeRange(resultType), ValueRange(),
                                                   ValueRange(empty), ArrayRef(identity), iterators,
                                                   body);
    return success();
  }
};

/// tensor.scatter as a loop nest over the source, in order: with equal coordinates the last one
/// stays.
struct LowerScatter : OpRewritePattern<tensor::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ScatterOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType sourceType = op.getSourceType();
    int64_t destRank = op.getDestType().getRank();
    int64_t batchRank = op.getIndicesType().getRank() - 1;
    ArrayRef<int64_t> dims = op.getScatterDims();
    bool rankReduced = sourceType.getRank() != batchRank + destRank;

    SmallVector<Value> lower, upper, step;
    for (int64_t size : sourceType.getShape()) {
      lower.push_back(arith::ConstantIndexOp::create(rewriter, loc, 0));
      upper.push_back(arith::ConstantIndexOp::create(rewriter, loc, size));
      step.push_back(arith::ConstantIndexOp::create(rewriter, loc, 1));
    }
    auto body = [&](OpBuilder &b, Location loc, ValueRange ivs, ValueRange dest) {
      SmallVector<Value> at(ivs.take_front(batchRank)), target;
      int64_t next = batchRank;
      for (int64_t dim = 0; dim < destRank; ++dim) {
        const int64_t *scattered = llvm::find(dims, dim);
        if (scattered == dims.end()) {
          target.push_back(ivs[next++]);
          continue;
        }
        at.push_back(arith::ConstantIndexOp::create(b, loc, scattered - dims.begin()));
        Value index = tensor::ExtractOp::create(b, loc, op.getIndices(), at);
        at.pop_back();
        if (!index.getType().isIndex())
          index = arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
        target.push_back(index);
        if (!rankReduced)
          ++next;
      }
      Value element = tensor::ExtractOp::create(b, loc, op.getSource(), ivs);
      return scf::ValueVector{tensor::InsertOp::create(b, loc, element, dest[0], target)};
    };
    scf::LoopNest nest =
        scf::buildLoopNest(rewriter, loc, lower, upper, step, ValueRange(op.getDest()), body);
    rewriter.replaceOp(op, nest.results);
    return success();
  }
};

} // namespace

/// The stride of a dimension of extent 1 is irrelevant; sets it to 1 for the lowering of
/// rank-reducing views, which identifies dimensions by their strides.
static void dropUnusedStrides(OffsetSizeAndStrideOpInterface slice) {
  SmallVector<int64_t> strides(slice.getStaticStrides());
  for (auto [size, stride] : llvm::zip_equal(slice.getStaticSizes(), strides))
    if (size == 1 && !ShapedType::isDynamic(stride))
      stride = 1;
  slice->setAttr("static_strides", DenseI64ArrayAttr::get(slice->getContext(), strides));
}

static bool hasStride(OffsetSizeAndStrideOpInterface slice) {
  return llvm::any_of(slice.getStaticStrides(), [](int64_t stride) { return stride != 1; });
}

/// Slices with strides do not drop dimensions: a reshape does, for the same reason.
static void splitStridedReduction(tensor::ExtractSliceOp op) {
  auto full = tensor::ExtractSliceOp::inferResultType(op.getSourceType(), op.getMixedSizes());
  if (full.getRank() == op.getType().getRank() || !full.hasStaticShape() || !hasStride(op))
    return;
  OpBuilder b(op);
  Value slice =
      tensor::ExtractSliceOp::create(b, op.getLoc(), full, op.getSource(), op.getMixedOffsets(),
                                     op.getMixedSizes(), op.getMixedStrides());
  op.replaceAllUsesWith(Value(
      tensor::CollapseShapeOp::create(b, op.getLoc(), op.getType(), slice,
                                      *getReassociationIndicesForReshape(full, op.getType()))));
  op.erase();
}

static void splitStridedReduction(tensor::InsertSliceOp op) {
  RankedTensorType source = op.getSourceType();
  if (source.getRank() == op.getDestType().getRank() || !source.hasStaticShape() ||
      ShapedType::isDynamicShape(op.getStaticSizes()) || !hasStride(op))
    return;
  auto full = RankedTensorType::get(op.getStaticSizes(), source.getElementType());
  OpBuilder b(op);
  op.getSourceMutable().assign(tensor::ExpandShapeOp::create(
      b, op.getLoc(), full, op.getSource(), *getReassociationIndicesForReshape(source, full)));
}

LogicalResult prepareKernel(func::FuncOp kernel, bool scattersInTasks) {
  lowerContractions(kernel);
  lowerScans(kernel);
  lowerSorts(kernel);
  kernel.walk([](OffsetSizeAndStrideOpInterface slice) { dropUnusedStrides(slice); });
  kernel.walk([](tensor::ExtractSliceOp slice) { splitStridedReduction(slice); });
  kernel.walk([](tensor::InsertSliceOp slice) { splitStridedReduction(slice); });
  IRRewriter rewriter(kernel.getContext());
  SmallVector<linalg::AggregatedOpInterface> aggregates;
  kernel.walk([&](linalg::AggregatedOpInterface op) { aggregates.push_back(op); });
  for (linalg::AggregatedOpInterface op : aggregates) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> parts = op.decomposeOperation(rewriter);
    if (failed(parts))
      return op.emitOpError("cannot be decomposed in a kernel");
    rewriter.replaceOp(op, *parts);
  }

  RewritePatternSet patterns(kernel.getContext());
  linalg::populateLinalgNamedOpsGeneralizationPatterns(patterns);
  linalg::populateDecomposePadPatterns(patterns);
  linalg::populateElementwiseToLinalgConversionPatterns(patterns);
  tensor::populateDecomposeTensorConcatPatterns(patterns);
  patterns.add<LowerGather, LowerScatter>(kernel.getContext());
  GreedyRewriteConfig config;
  config.enableFolding(true).setMaxIterations(10);
  if (failed(applyPatternsGreedily(kernel, std::move(patterns), config)))
    return kernel.emitError("kernel does not reach a normal form");
  widenSums(kernel);
  lowerScatters(kernel, scattersInTasks);
  defineScalars(kernel);
  clampIndices(kernel);
  return success();
}

//===----------------------------------------------------------------------===//
// Destinations
//===----------------------------------------------------------------------===//

/// The init whose buffer `value` overwrites, one op up; null if there is none.
static OpOperand *initOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return nullptr;
  Operation *op = result.getOwner();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.getDpsInitOperand(result.getResultNumber());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return &loop.getInitArgsMutable()[result.getResultNumber()];
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return &insert.getDestMutable();
  if (auto insert = dyn_cast<tensor::InsertOp>(op))
    return &insert.getDestMutable();
  return nullptr;
}

/// Lets the computation of `value` start in `buffer`, of the same type, instead of a new
/// uninitialized tensor.
static void aim(Value value, Value buffer, OpBuilder &builder) {
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>()) {
    if (!expand->hasOneUse())
      return;
    value = expand.getSrc();
    buffer = tensor::CollapseShapeOp::create(builder, expand.getLoc(), value.getType(), buffer,
                                             expand.getReassociationIndices());
  } else if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
    if (!collapse->hasOneUse())
      return;
    value = collapse.getSrc();
    auto type = cast<RankedTensorType>(value.getType());
    buffer = tensor::ExpandShapeOp::create(builder, collapse.getLoc(), type, buffer,
                                           collapse.getReassociationIndices());
  }
  while (OpOperand *init = initOf(value)) {
    if (init->get().getDefiningOp<tensor::EmptyOp>()) {
      init->set(buffer);
      return;
    }
    // Another user would see the buffer change.
    if (!init->get().hasOneUse())
      return;
    value = init->get();
  }
}

void aimAtDestinations(func::FuncOp kernel) {
  // Inits that are overwritten completely become empty tensors, to avoid copies of inputs.
  IRRewriter rewriter(kernel.getContext());
  kernel.walk([&](linalg::LinalgOp op) {
    rewriter.setInsertionPoint(op);
    for (OpOperand &init : op.getDpsInitsMutable()) {
      // A slice is a part of a tensor that a loop computes in place.
      if (!isInitDead(op, init) || init.get().getDefiningOp<tensor::ExtractSliceOp>())
        continue;
      auto type = dyn_cast<RankedTensorType>(init.get().getType());
      if (type)
        init.set(
            tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(), type.getElementType()));
    }
  });

  int64_t reads = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt();
  auto ret = cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
  OpBuilder entry = OpBuilder::atBlockBegin(&kernel.getBody().front());
  llvm::SmallPtrSet<Value, 4> seen;
  for (auto [i, value] : llvm::enumerate(ret.getOperands()))
    if (seen.insert(value).second)
      aim(value, kernel.getArgument(reads + i), entry);
}

//===----------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------===//

bool canRunInPlace(func::FuncOp kernel, unsigned input, unsigned output) {
  auto readsAttr = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr);
  if (!readsAttr || kernel.isExternal() || input >= readsAttr.getInt() ||
      output < readsAttr.getInt() || output >= kernel.getNumArguments())
    return false;
  // An element of the result is made of many.
  if (!kernel.getBody().getOps<rt::ContractionOp>().empty())
    return false;
  Value source = kernel.getArgument(input), destination = kernel.getArgument(output);
  if (source.getType() != destination.getType())
    return false;
  for (OpOperand &use : destination.getUses()) {
    auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!op || !op.isDpsInit(&use) || !isInitDead(op, use))
      return false;
  }
  auto ret = cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
  Value result = ret.getOperand(output - readsAttr.getInt());
  for (OpOperand &use : ret->getOpOperands())
    if (use.getOperandNumber() != output - readsAttr.getInt() && use.get() == result)
      return false;
  return dist::mayReplace(source, result, [](Operation *) { return true; });
}

} // namespace tessera::codegen
