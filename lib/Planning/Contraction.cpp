//===- Contraction.cpp - Sums of products along strided indices -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Contraction.h"

#include "tessera/Dialect/Dist/Rules/LinearExpr.h"
#include "tessera/Planning/Gemm.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

std::optional<StridedView> dist::through(const StridedView &view, AffineMap map) {
  StridedView result{view.base, view.start, SmallVector<int64_t>(map.getNumDims(), 0)};
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), view.strides)) {
    std::optional<LinearExpr> place = linearExprOf(expr);
    if (!place)
      return std::nullopt;
    result.start += place->constant * stride;
    for (auto [loop, coefficient] : place->terms)
      result.strides[loop] += coefficient * stride;
  }
  return result;
}

StridedView dist::denseView(Value value) {
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

/// The source of an op that only reorders elements.
static std::optional<StridedView> viewOfCopy(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 0 ||
      !llvm::hasSingleElement(*op.getBlock()) ||
      op.getBlock()->getTerminator()->getOperand(0) != op.getBlock()->getArgument(0) ||
      !isa<RankedTensorType>(op->getOperand(0).getType()) ||
      !op.getIndexingMapsArray()[1].isIdentity())
    return std::nullopt;
  return through(viewOf(op->getOperand(0)), op.getIndexingMapsArray()[0]);
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
    // Merged neighbors must be nested; those of extent 1 may be anywhere.
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

/// The view of a value through ops that only reorder elements.
static StridedView viewOf(Value value) {
  std::optional<StridedView> view;
  Operation *op = value.getDefiningOp();
  if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op))
    view = viewOfCopy(linalgOp);
  else if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    view = viewOfExpanded(expand);
  else if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
    view = viewOfCollapsed(collapse);
  else if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    view = viewOfSlice(slice);
  return view ? *view : denseView(value);
}

bool dist::isSumOfProducts(linalg::LinalgOp op, bool narrow) {
  if (!reducesTwoTensors(op))
    return false;
  auto elementOf = [&](unsigned i) {
    return cast<RankedTensorType>(op->getOperand(i).getType()).getElementType();
  };
  Type a = elementOf(0), c = elementOf(2);
  return a == elementOf(1) && (a.isF32() || a.isF16() || a.isBF16()) &&
         (c.isF32() || (narrow && c == a)) && isMultiplyAdd(*op.getBlock());
}

/// Whether the packed product is faster than a kernel. A tile has up to 8 rows and at least 16
/// columns, and packing costs as much as a product with few rows; but a kernel, as of a
/// convolution of a small image, waits for each of its sums.
static bool isWorthIt(ArrayRef<int64_t> extents, ArrayRef<StridedView> views) {
  constexpr int64_t kFewest = 16, kFewestProducts = 1 << 16;
  constexpr int64_t kFewestRows = 4, kFewestSummands = 8, kManyProducts = 1 << 20;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  for (auto [loop, extent] : llvm::enumerate(extents)) {
    bool a = views[0].strides[loop], b = views[1].strides[loop], c = views[2].strides[loop];
    (!c ? k : a == b ? batch : a ? m : n) *= extent;
  }
  int64_t products = m * n * k;
  if (std::min({m, n, k}) >= kFewest)
    return products >= kFewestProducts;
  return std::max(m, n) >= kFewest && std::min(m, n) >= kFewestRows && k >= kFewestSummands &&
         products >= kManyProducts;
}

/// Whether one product with few rows or columns is repeated for many images, as in a 1 x 1
/// convolution of a small image: C[b] = A · B[b] with few columns each. Packed together, the
/// products fill the tiles.
static bool repeatsSmallProduct(const GemmForm &form) {
  constexpr int64_t kSmall = 32;
  bool repeatsA = form.stride[0] == 0 && form.stride[1] != 0;
  bool repeatsB = form.stride[1] == 0 && form.stride[0] != 0;
  return form.batch > 1 && form.starts.size() == 1 &&
         ((repeatsA && form.n < kSmall) || (repeatsB && form.m < kSmall));
}

/// See ContractionForm::slice.
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

std::optional<ContractionForm> dist::matchContraction(linalg::LinalgOp op, bool narrow) {
  if (!isSumOfProducts(op, narrow))
    return std::nullopt;
  if (std::optional<GemmForm> gemm = matchGemm(op); gemm && !repeatsSmallProduct(*gemm))
    return std::nullopt;
  ContractionForm form{op.getStaticLoopRanges(), {}, {}};
  if (llvm::is_contained(form.extents, 0))
    return std::nullopt;
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), op.getIndexingMapsArray())) {
    std::optional<StridedView> view =
        through(form.views.size() < 2 ? viewOf(operand) : denseView(operand), map);
    if (!view)
      return std::nullopt;
    form.views.push_back(*view);
  }
  if (!isWorthIt(form.extents, form.views))
    return std::nullopt;
  form.slice = onlySliceOf(op);
  return form;
}

/// Whether all readers of a value are contractions that can read its source instead.
static bool isReadByContractions(Value value, Value base) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (user->getBlock() == value.getParentBlock() && user->getNumResults() == 1 &&
        isa<RankedTensorType>(user->getResult(0).getType()) && use.getOperandNumber() == 0 &&
        viewOf(user->getResult(0)).base == base)
      return isReadByContractions(user->getResult(0), base);
    auto linalgOp = dyn_cast<linalg::LinalgOp>(user);
    return linalgOp && use.getOperandNumber() < 2 && matchContraction(linalgOp);
  });
}

bool dist::isTakenByContractions(linalg::LinalgOp op) {
  std::optional<StridedView> view = viewOfCopy(op);
  return view && isReadByContractions(op->getResult(0), view->base);
}
