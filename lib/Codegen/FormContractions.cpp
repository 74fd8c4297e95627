//===- FormContractions.cpp - Convolutions as steps -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every map of a convolution is linear in the loops, and so is the place of an
// element in a dense operand. A loop is then no more than an extent and a stride in
// each operand; that windows overlap does not matter. Forward, derivative by the
// input (a flipped kernel has negative strides) and by the weights (a sum over batch
// and space) are one form.
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Planning/Gemm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMCONTRACTIONS
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

namespace {
/// A tensor whose element at indices i is that of the dense `base` at start + sum i * strides.
struct StridedView {
  Value base;
  int64_t start = 0;
  SmallVector<int64_t> strides;
};

/// An expression as constant + sum of coefficient * loop.
struct Linear {
  int64_t constant = 0;
  SmallVector<int64_t> coefficients;
};
} // namespace

/// Adds scale * expr; false where it is not linear.
static bool addLinear(AffineExpr expr, int64_t scale, Linear &to) {
  if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
    to.coefficients[loop.getPosition()] += scale;
    return true;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    to.constant += scale * constant.getValue();
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), scale, to) && addLinear(binary.getRHS(), scale, to);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return expr.getKind() == AffineExprKind::Mul && factor &&
         addLinear(binary.getLHS(), scale * factor.getValue(), to);
}

/// A view of `view` whose indices are the loops of `map`; empty where the map is not linear.
static std::optional<StridedView> through(const StridedView &view, AffineMap map) {
  StridedView result{view.base, view.start, SmallVector<int64_t>(map.getNumDims(), 0)};
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), view.strides)) {
    Linear place{0, SmallVector<int64_t>(map.getNumDims(), 0)};
    if (!addLinear(expr, 1, place))
      return std::nullopt;
    result.start += place.constant * stride;
    for (auto [sum, coefficient] : llvm::zip_equal(result.strides, place.coefficients))
      sum += coefficient * stride;
  }
  return result;
}

static StridedView denseView(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  StridedView view{value, 0, SmallVector<int64_t>(type.getRank())};
  int64_t distance = 1;
  for (int64_t d = type.getRank() - 1; d >= 0; --d) {
    view.strides[d] = distance;
    distance *= type.getDimSize(d);
  }
  return view;
}

static StridedView viewOf(Value value);

/// The source of a generic that only reorders elements.
static std::optional<StridedView> viewOfCopy(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 0 ||
      !llvm::hasSingleElement(*op.getBlock()) ||
      op.getBlock()->getTerminator()->getOperand(0) != op.getBlock()->getArgument(0) ||
      !isa<RankedTensorType>(op.getInputs()[0].getType()) ||
      !op.getIndexingMapsArray()[1].isIdentity())
    return std::nullopt;
  return through(viewOf(op.getInputs()[0]), op.getIndexingMapsArray()[0]);
}

static StridedView viewOfExpanded(tensor::ExpandShapeOp op) {
  StridedView source = viewOf(op.getSrc());
  auto type = op.getResultType();
  StridedView view{source.base, source.start, SmallVector<int64_t>(type.getRank())};
  for (auto [group, stride] : llvm::zip_equal(op.getReassociationIndices(), source.strides)) {
    int64_t distance = stride;
    for (int64_t d : llvm::reverse(group)) {
      view.strides[d] = distance;
      distance *= type.getDimSize(d);
    }
  }
  return view;
}

static std::optional<StridedView> viewOfCollapsed(tensor::CollapseShapeOp op) {
  StridedView source = viewOf(op.getSrc());
  auto shape = op.getSrcType().getShape();
  StridedView view{source.base, source.start, {}};
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    // Neighbours must lie one inside the other; of extent 1 they lie anywhere.
    std::optional<int64_t> inner, next;
    for (int64_t d : llvm::reverse(group)) {
      if (shape[d] == 1)
        continue;
      if (next && *next != source.strides[d])
        return std::nullopt;
      if (!inner)
        inner = source.strides[d];
      next = source.strides[d] * shape[d];
    }
    view.strides.push_back(inner.value_or(1));
  }
  return view;
}

static std::optional<StridedView> viewOfSlice(tensor::ExtractSliceOp op) {
  if (llvm::any_of(op.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(op.getStaticStrides(), ShapedType::isDynamic) ||
      op.getType().getRank() != op.getSourceType().getRank())
    return std::nullopt;
  StridedView view = viewOf(op.getSource());
  for (auto [stride, offset, step] :
       llvm::zip_equal(view.strides, op.getStaticOffsets(), op.getStaticStrides())) {
    view.start += stride * offset;
    stride *= step;
  }
  return view;
}

/// Looks through what only reorders elements.
static StridedView viewOf(Value value) {
  std::optional<StridedView> view;
  Operation *op = value.getDefiningOp();
  if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op))
    view = viewOfCopy(generic);
  else if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    view = viewOfExpanded(expand);
  else if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
    view = viewOfCollapsed(collapse);
  else if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    view = viewOfSlice(slice);
  return view ? *view : denseView(value);
}

/// Whether types and body are those of a contraction to f32.
static bool isSumOfProducts(linalg::LinalgOp op) {
  if (!dist::reducesTwoTensors(op))
    return false;
  auto elementOf = [&](unsigned i) {
    return cast<RankedTensorType>(op->getOperand(i).getType()).getElementType();
  };
  Type a = elementOf(0);
  return a == elementOf(1) && (a.isF32() || a.isF16() || a.isBF16()) && elementOf(2).isF32() &&
         dist::isMultiplyAdd(*op.getBlock());
}

/// Whether the packed product is faster than a kernel: a tile has 8 rows and 16 columns, so what
/// has few of them wastes most of it, and packing costs as much as a product of few rows.
static bool isWorthIt(ArrayRef<int64_t> extents, ArrayRef<StridedView> views) {
  constexpr int64_t kFewest = 16, kFewestProducts = 1 << 16;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  for (auto [loop, extent] : llvm::enumerate(extents)) {
    bool a = views[0].strides[loop], b = views[1].strides[loop], c = views[2].strides[loop];
    (!c ? k : a == b ? batch : a ? m : n) *= extent;
  }
  return m >= kFewest && n >= kFewest && k >= kFewest && m * n * k >= kFewestProducts;
}

/// The slice that alone is read of a result: what lies around it need not be computed. The
/// derivative by an input that was padded is such a result.
static tensor::ExtractSliceOp onlySliceOf(linalg::LinalgOp op) {
  if (!op->hasOneUse())
    return {};
  auto slice = dyn_cast<tensor::ExtractSliceOp>(*op->getUsers().begin());
  AffineMap map = op.getIndexingMapsArray()[2];
  if (!slice || slice->getBlock() != op->getBlock() || !slice.hasUnitStride() ||
      llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
      slice.getType().getRank() != slice.getSourceType().getRank() ||
      !map.isProjectedPermutation() || slice.getType().getNumElements() == 0)
    return {};
  return slice;
}

/// Narrows loops and views to what a slice of the result reads; returns the init of the slice.
static Value takeSlice(tensor::ExtractSliceOp slice, linalg::LinalgOp op,
                       MutableArrayRef<int64_t> extents, MutableArrayRef<StridedView> views) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  for (auto [expr, offset, size] :
       llvm::zip_equal(op.getIndexingMapsArray()[2].getResults(), slice.getStaticOffsets(),
                       slice.getType().getShape())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    extents[loop] = size;
    for (StridedView &view : views.take_front(2))
      view.start += offset * view.strides[loop];
  }
  Value init = op.getDpsInits()[0];
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return tensor::ExtractSliceOp::create(builder, loc, slice.getType(), init,
                                          slice.getMixedOffsets(), slice.getMixedSizes(),
                                          slice.getMixedStrides());
  Value empty = tensor::EmptyOp::create(builder, loc, slice.getType().getShape(),
                                        slice.getType().getElementType());
  return linalg::FillOp::create(builder, loc, fill.getInputs()[0], empty).getResult(0);
}

static void formContraction(linalg::LinalgOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  if (llvm::is_contained(extents, 0))
    return;
  SmallVector<StridedView> views;
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), op.getIndexingMapsArray())) {
    std::optional<StridedView> view =
        through(views.size() < 2 ? viewOf(operand) : denseView(operand), map);
    if (!view)
      return;
    views.push_back(*view);
  }
  if (!isWorthIt(extents, views))
    return;
  Operation *replaced = op;
  if (tensor::ExtractSliceOp slice = onlySliceOf(op)) {
    Value init = takeSlice(slice, op, extents, views);
    views[2] = *through(denseView(init), op.getIndexingMapsArray()[2]);
    replaced = slice;
  }
  SmallVector<int64_t> taken, strides[3], starts;
  for (auto [loop, extent] : llvm::enumerate(extents)) {
    if (extent == 1)
      continue;
    taken.push_back(extent);
    for (unsigned operand = 0; operand < 3; ++operand)
      strides[operand].push_back(views[operand].strides[loop]);
  }
  for (const StridedView &view : views)
    starts.push_back(view.start);
  OpBuilder builder(op);
  Value result = rt::ContractionOp::create(builder, op.getLoc(), replaced->getResult(0).getType(),
                                           views[0].base, views[1].base, views[2].base, starts,
                                           taken, strides[0], strides[1], strides[2]);
  replaced->getResult(0).replaceAllUsesWith(result);
  if (replaced != op)
    replaced->erase();
  op->erase();
}

namespace {
struct CodegenFormContractions
    : codegen::impl::CodegenFormContractionsBase<CodegenFormContractions> {
  void runOnOperation() override {
    if (!dist::isLocalView(getOperation()))
      return;
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isSumOfProducts(op) && !dist::matchGemm(op))
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops)
      formContraction(op);
  }
};
} // namespace
