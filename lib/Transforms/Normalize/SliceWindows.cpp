//===- SliceWindows.cpp - Compute the windows that are read ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[i] = sum over k of x[i + k] w[k],  z = y[from :: step]
//
// becomes z[i] = sum over k of x'[step i + k] w[k] with x' = x[from : ...]. A slice of a
// padded x is a smaller pad.
//
// A slice with a step may be spelled as a reshape, a slice of one element of the new
// dimension, and a reshape; it is rewritten first.
//
//===----------------------------------------------------------------------===//

#include "SliceWindows.h"

#include "PlainOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isStatic(tensor::ExtractSliceOp slice) {
  return isPlainSlice(slice) && slice.getSourceType().hasStaticShape();
}

namespace {

/// The elements taken of a dimension: `count` from `from` on, with stride `step`.
struct Taken {
  int64_t from = 0, step = 1, count = 0;
};

} // namespace

static SmallVector<Taken> takenBy(tensor::ExtractSliceOp slice) {
  SmallVector<Taken> ranges;
  for (auto [offset, size, stride] :
       llvm::zip_equal(slice.getStaticOffsets(), slice.getStaticSizes(), slice.getStaticStrides()))
    ranges.push_back({offset, stride, size});
  return ranges;
}

/// A slice of a value; of a pad, the pad of a slice if something of its source is read. A border
/// that is not read at all needs no pad.
static Value sliceOf(OpBuilder &b, Location loc, Value value, ArrayRef<Taken> ranges) {
  SmallVector<int64_t> low, high;
  SmallVector<Taken> inner(ranges);
  auto pad = value.getDefiningOp<tensor::PadOp>();
  Value fill = pad && isPlain(pad) && pad.getLow().empty() && pad.getHigh().empty()
                   ? pad.getConstantPaddingValue()
                   : Value();
  if (fill) {
    for (auto [d, range] : llvm::enumerate(inner)) {
      int64_t before = pad.getStaticLow()[d], extent = pad.getSourceType().getDimSize(d);
      auto below = [&, &range = range](int64_t end) { // elements of the range
        int64_t n = end <= range.from ? 0 : (end - range.from + range.step - 1) / range.step;
        return std::min(n, range.count);
      };
      int64_t begin = below(before), end = below(before + extent);
      low.push_back(begin);
      high.push_back(range.count - end);
      range = {range.from + begin * range.step - before, range.step, end - begin};
      if (begin == end || before < 0 || pad.getStaticHigh()[d] < 0)
        fill = {};
    }
  }
  if (!fill)
    inner.assign(ranges.begin(), ranges.end());
  Value source = fill ? pad.getSource() : value;
  SmallVector<int64_t> offsets, sizes, strides;
  for (const Taken &range : inner) {
    offsets.push_back(range.from);
    sizes.push_back(range.count);
    strides.push_back(range.step);
  }
  MLIRContext *context = b.getContext();
  if (ArrayRef<int64_t>(sizes) != typeOf(source).getShape())
    source = tensor::ExtractSliceOp::create(
        b, loc, source, getAsIndexOpFoldResult(context, offsets),
        getAsIndexOpFoldResult(context, sizes), getAsIndexOpFoldResult(context, strides));
  auto isZero = [](int64_t n) { return n == 0; };
  if (!fill || (llvm::all_of(low, isZero) && llvm::all_of(high, isZero)))
    return source;
  Attribute constant;
  if (matchPattern(fill, m_Constant(&constant)))
    fill = arith::ConstantOp::create(b, loc, cast<TypedAttr>(constant));
  SmallVector<int64_t> shape;
  for (const Taken &range : ranges)
    shape.push_back(range.count);
  return tensor::PadOp::create(b, loc, typeOf(source).clone(shape), source,
                               getAsIndexOpFoldResult(context, low),
                               getAsIndexOpFoldResult(context, high), fill);
}

/// The pad that makes a value if it pads no less than what is read needs, so that a smaller pad
/// serves; else null.
static tensor::PadOp narrowedPad(Value value, ArrayRef<Taken> read) {
  auto pad = value.getDefiningOp<tensor::PadOp>();
  Attribute fill;
  if (!pad || !isPlain(pad) || !pad.getLow().empty() || !pad.getHigh().empty() ||
      !pad.getConstantPaddingValue() ||
      !matchPattern(pad.getConstantPaddingValue(), m_Constant(&fill)))
    return {};
  bool isNarrowed = false;
  for (auto [d, range] : llvm::enumerate(read)) {
    int64_t low = pad.getStaticLow()[d] - range.from;
    int64_t high = range.count - low - pad.getSourceType().getDimSize(d);
    if (low < 0 || high < 0)
      return {};
    isNarrowed |= range.count < pad.getResultType().getDimSize(d);
  }
  return isNarrowed ? pad : tensor::PadOp();
}

/// The part of a padded value that is read, as a pad of its source; other values unchanged.
static Value padTo(OpBuilder &b, Value value, ArrayRef<Taken> read) {
  tensor::PadOp pad = isa<RankedTensorType>(value.getType()) ? narrowedPad(value, read) : nullptr;
  if (!pad)
    return value;
  SmallVector<int64_t> low, high, shape;
  for (auto [d, range] : llvm::enumerate(read)) {
    low.push_back(pad.getStaticLow()[d] - range.from);
    high.push_back(range.count - low.back() - pad.getSourceType().getDimSize(d));
    shape.push_back(range.count);
  }
  auto isZero = [](int64_t n) { return n == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return pad.getSource();
  Attribute fill;
  matchPattern(pad.getConstantPaddingValue(), m_Constant(&fill));
  Value padding = arith::ConstantOp::create(b, pad.getLoc(), cast<TypedAttr>(fill));
  return tensor::PadOp::create(b, pad.getLoc(), typeOf(value).clone(shape), pad.getSource(),
                               getAsIndexOpFoldResult(b.getContext(), low),
                               getAsIndexOpFoldResult(b.getContext(), high), padding);
}

//===----------------------------------------------------------------------===//
// Slices with steps
//===----------------------------------------------------------------------===//

/// Rewrites a -> (m, n) -> (m, 1) -> m as a slice of every n-th element.
static void sliceBySteps(tensor::CollapseShapeOp collapse) {
  auto slice = collapse.getSrc().getDefiningOp<tensor::ExtractSliceOp>();
  auto expand = slice ? slice.getSource().getDefiningOp<tensor::ExpandShapeOp>() : nullptr;
  if (!expand || !isPlain(collapse) || !isPlain(expand) || !isStatic(slice) ||
      collapse.getResultType().getRank() != expand.getSrcType().getRank())
    return;
  SmallVector<Taken> inner = takenBy(slice), ranges;
  for (const ReassociationIndices &group : expand.getReassociationIndices()) {
    const Taken &first = inner[group[0]];
    if (group.size() == 1) {
      ranges.push_back(first);
      continue;
    }
    if (group.size() != 2 || inner[group[1]].count != 1)
      return;
    int64_t step = slice.getSourceType().getDimSize(group[1]);
    ranges.push_back({first.from * step + inner[group[1]].from, first.step * step, first.count});
  }
  // Then the reshapes merge and divide the same dimensions.
  for (auto [d, range] : llvm::enumerate(ranges))
    if (range.count != collapse.getResultType().getDimSize(d))
      return;
  OpBuilder b(collapse);
  Value source = expand.getSrc();
  collapse.replaceAllUsesWith(sliceOf(b, collapse.getLoc(), source, ranges));
  collapse.erase();
  for (Operation *op : {slice.getOperation(), expand.getOperation(), source.getDefiningOp()})
    if (op && op->use_empty() &&
        isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::PadOp>(op))
      op->erase();
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// The coefficients of the loops in an expression, and the constant at the end; empty if it is not
/// linear, or one is negative.
static SmallVector<int64_t> coefficientsOf(AffineExpr expr, unsigned numLoops) {
  SmallVector<int64_t> coefficients(numLoops + 1, 0);
  bool isLinear = true;
  std::function<void(AffineExpr, int64_t)> add = [&](AffineExpr e, int64_t scale) {
    if (auto loop = dyn_cast<AffineDimExpr>(e)) {
      coefficients[loop.getPosition()] += scale;
    } else if (auto constant = dyn_cast<AffineConstantExpr>(e)) {
      coefficients[numLoops] += scale * constant.getValue();
    } else {
      auto binary = dyn_cast<AffineBinaryOpExpr>(e);
      auto factor = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : nullptr;
      if (e.getKind() == AffineExprKind::Add)
        return add(binary.getLHS(), scale), add(binary.getRHS(), scale);
      if (e.getKind() == AffineExprKind::Mul && factor)
        return add(binary.getLHS(), scale * factor.getValue());
      isLinear = false;
    }
  };
  add(expr, 1);
  if (!isLinear || llvm::any_of(coefficients, [](int64_t c) { return c < 0; }))
    coefficients.clear();
  return coefficients;
}

/// Whether an op reads an operand at a sum of a loop and another.
static bool readsWindows(linalg::GenericOp op, unsigned loop) {
  return llvm::any_of(op.getIndexingMapsArray(), [&](AffineMap map) {
    return llvm::any_of(map.getResults(), [&](AffineExpr expr) {
      return !isa<AffineDimExpr>(expr) && expr.isFunctionOfDim(loop);
    });
  });
}

/// The initial value of a sliced result.
static Value initOf(OpBuilder &b, Location loc, Value init, ArrayRef<Taken> ranges) {
  SmallVector<int64_t> shape;
  for (const Taken &range : ranges)
    shape.push_back(range.count);
  RankedTensorType type = typeOf(init).clone(shape);
  DenseElementsAttr constant;
  if (matchPattern(init, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, constant.getSplatValue<Attribute>()));
  if (init.getDefiningOp<tensor::EmptyOp>())
    return tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  return sliceOf(b, loc, init, ranges);
}

/// Computes a slice of an op on windows directly. Returns whether it did.
static bool computeSlice(tensor::ExtractSliceOp slice) {
  auto op = slice.getSource().getDefiningOp<linalg::GenericOp>();
  if (!isStatic(slice) || !op || !op->hasOneUse() || op->getNumResults() != 1 || !isPlain(op) ||
      op->getBlock() != slice->getBlock() || !op.hasPureTensorSemantics() ||
      !op.getOps<linalg::IndexOp>().empty())
    return false;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto numLoops = static_cast<unsigned>(extents.size());
  SmallVector<Taken> loops;
  for (int64_t extent : extents)
    loops.push_back({0, 1, extent});
  SmallVector<Taken> taken = takenBy(slice);
  AffineMap written = op.getIndexingMapsArray().back();
  bool isWindow = false;
  for (auto [expr, range] : llvm::zip_equal(written.getResults(), taken)) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop)
      return false;
    if (range.count == extents[loop.getPosition()])
      continue;
    loops[loop.getPosition()] = range;
    isWindow |= readsWindows(op, loop.getPosition());
  }
  if (!isWindow)
    return false;
  MLIRContext *context = slice.getContext();
  SmallVector<AffineMap> maps;
  // What is read of an operand before and after it is sliced; -1: all that there is.
  SmallVector<SmallVector<Taken>> reads, slices;
  for (OpOperand *input : op.getDpsInputOperands()) {
    SmallVector<AffineExpr> exprs;
    SmallVector<Taken> &read = reads.emplace_back(), &ranges = slices.emplace_back();
    for (AffineExpr expr : op.getMatchingIndexingMap(input).getResults()) {
      SmallVector<int64_t> coefficients = coefficientsOf(expr, numLoops);
      if (coefficients.empty())
        return false;
      if (auto loop = dyn_cast<AffineDimExpr>(expr)) { // sliced like the result
        ranges.push_back(loops[loop.getPosition()]);
        read.push_back({0, 1, extents[loop.getPosition()]});
        exprs.push_back(expr);
        continue;
      }
      ranges.push_back({0, 1, -1});
      Taken range{coefficients[numLoops], 1, 1};
      AffineExpr sum = getAffineConstantExpr(0, context);
      for (unsigned loop = 0; loop < numLoops; ++loop) {
        int64_t step = coefficients[loop] * loops[loop].step;
        range.from += coefficients[loop] * loops[loop].from;
        range.count += step * (loops[loop].count - 1);
        sum = sum + getAffineDimExpr(loop, context) * step;
      }
      read.push_back(range);
      exprs.push_back(sum);
    }
    if (!isa<RankedTensorType>(input->get().getType()) || !narrowedPad(input->get(), read))
      for (auto [expr, range] : llvm::zip_equal(exprs, read)) // read at its place
        expr = expr + std::exchange(range.from, 0);
    maps.push_back(AffineMap::get(numLoops, 0, exprs, context));
  }
  maps.push_back(written);
  OpBuilder b(slice); // operands of the op precede it
  SmallVector<Value> inputs;
  for (auto [input, read, ranges] : llvm::zip_equal(op.getInputs(), reads, slices)) {
    Value value = padTo(b, input, read);
    for (auto [d, range] : llvm::enumerate(ranges))
      if (range.count < 0)
        range.count = typeOf(value).getDimSize(d);
    inputs.push_back(
        isa<RankedTensorType>(value.getType()) ? sliceOf(b, slice.getLoc(), value, ranges) : value);
  }
  Value init = initOf(b, op.getLoc(), op.getOutputs()[0], taken);
  auto made = linalg::GenericOp::create(b, op.getLoc(), slice.getType(), inputs, init, maps,
                                        op.getIteratorTypesArray());
  IRMapping body;
  op.getRegion().cloneInto(&made.getRegion(), body);
  slice.replaceAllUsesWith(made.getResult(0));
  slice.erase();
  SmallVector<Operation *> unused{op};
  for (Value input : op.getInputs())
    if (auto pad = input.getDefiningOp<tensor::PadOp>(); pad && !llvm::is_contained(unused, pad))
      unused.push_back(pad);
  for (Operation *each : unused)
    if (each->use_empty())
      each->erase();
  return true;
}

void dist::sliceWindows(func::FuncOp function) {
  SmallVector<tensor::CollapseShapeOp> collapses;
  function.walk([&](tensor::CollapseShapeOp op) { collapses.push_back(op); });
  for (tensor::CollapseShapeOp op : collapses)
    sliceBySteps(op);
  // Readers last: a slice of a slice takes fewer elements of what the first one computes.
  SmallVector<tensor::ExtractSliceOp> slices;
  function.walk([&](tensor::ExtractSliceOp op) { slices.push_back(op); });
  for (tensor::ExtractSliceOp slice : slices)
    computeSlice(slice);
}
