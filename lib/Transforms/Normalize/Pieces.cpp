//===- Pieces.cpp - Tensors as segments of others -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pieces.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/BitVector.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::Segment;

/// Limit on the segments of one op; longer chains stay separate ops.
static constexpr size_t kMostSegments = 16;

//===----------------------------------------------------------------------===//
// Reading ops
//===----------------------------------------------------------------------===//

static int64_t extentOf(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

/// The value of every element of a constant tensor; null for others.
static TypedAttr splatOf(Value value) {
  DenseElementsAttr elements;
  while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>())
    value = slice.getSource();
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return dyn_cast<TypedAttr>(elements.getSplatValue<Attribute>());
  return {};
}

bool dist::coversResult(const Pieces &pieces, int64_t extent) {
  int64_t covered = 0;
  for (auto &[value, segment] : pieces.segments)
    covered += segment.count;
  return covered == extent;
}

Value dist::onlySource(const Pieces &pieces) {
  if (pieces.segments.empty())
    return {};
  Value source = pieces.segments.front().first;
  return llvm::all_of(pieces.segments, [&](auto &each) { return each.first == source; }) ? source
                                                                                         : Value();
}

/// The only dimension for which `isMoved`; -1 if there is none or more than one.
static int64_t onlyDim(int64_t rank, llvm::function_ref<bool(int64_t)> isMoved) {
  int64_t found = -1;
  for (int64_t d = 0; d < rank; ++d)
    if (isMoved(d)) {
      if (found >= 0)
        return -1;
      found = d;
    }
  return found;
}

static Pieces piecesOf(tensor::ExtractSliceOp op) {
  Pieces pieces;
  if (op.getDroppedDims().any() || !op.getOffsets().empty() || !op.getSizes().empty() ||
      !op.getStrides().empty() ||
      llvm::any_of(op.getStaticStrides(), [](int64_t s) { return s < 1; }))
    return pieces;
  pieces.dim = onlyDim(op.getType().getRank(), [&](int64_t d) {
    return op.getStaticSizes()[d] != op.getSourceType().getDimSize(d);
  });
  if (pieces.dim >= 0)
    pieces.segments = {{op.getSource(),
                        {op.getStaticOffsets()[pieces.dim], op.getStaticStrides()[pieces.dim], 0, 1,
                         op.getStaticSizes()[pieces.dim]}}};
  return pieces;
}

static Pieces piecesOf(tensor::ConcatOp op) {
  Pieces pieces{static_cast<int64_t>(op.getDim()), {}, {}};
  int64_t end = 0;
  for (Value input : op.getInputs()) {
    int64_t size = extentOf(input, pieces.dim);
    pieces.segments.push_back({input, {0, 1, end, 1, size}});
    end += size;
  }
  return pieces;
}

static Pieces piecesOf(tensor::PadOp op) {
  Pieces pieces;
  Attribute fill;
  Value padding = op.getConstantPaddingValue();
  if (!op.getLow().empty() || !op.getHigh().empty() || !padding ||
      !matchPattern(padding, m_Constant(&fill)))
    return pieces;
  pieces.dim = onlyDim(op.getResultType().getRank(), [&](int64_t d) {
    return op.getStaticLow()[d] != 0 || op.getStaticHigh()[d] != 0;
  });
  pieces.fill = dyn_cast<TypedAttr>(fill);
  if (pieces.dim >= 0 && pieces.fill)
    pieces.segments = {
        {op.getSource(),
         {0, 1, op.getStaticLow()[pieces.dim], 1, extentOf(op.getSource(), pieces.dim)}}};
  return pieces;
}

/// Whether a reshape only inserts dimension `dim`, of extent 1.
static bool inserts(tensor::ExpandShapeOp op, int64_t dim) {
  SmallVector<int64_t> shape(op.getResultType().getShape());
  if (shape[dim] != 1)
    return false;
  shape.erase(shape.begin() + dim);
  return op.getSrcType().getShape() == ArrayRef<int64_t>(shape);
}

/// Repetitions along a new dimension, which is then merged with its neighbor:
///   1x32 -> 1x3x32 -> 3x32
static Pieces piecesOfRepetition(tensor::CollapseShapeOp op) {
  Pieces pieces;
  auto generic = op.getSrc().getDefiningOp<linalg::GenericOp>();
  if (!generic || generic->getNumResults() != 1 || generic.getNumDpsInputs() != 1 ||
      generic.getNumReductionLoops() > 0 ||
      generic.getBody()->getTerminator()->getOperand(0) != generic.getBody()->getArgument(0))
    return pieces;
  AffineMap read = generic.getIndexingMapsArray()[0], written = generic.getIndexingMapsArray()[1];
  int64_t rank = written.getNumDims();
  if (!written.isIdentity() || read.getNumResults() != rank - 1 || !read.isProjectedPermutation())
    return pieces;
  int64_t own = onlyDim(rank, [&](int64_t d) { return !read.isFunctionOfDim(d); });
  SmallVector<AffineExpr> others;
  for (int64_t d = 0; d < rank; ++d)
    if (d != own)
      others.push_back(getAffineDimExpr(d, op.getContext()));
  if (own < 0 || ArrayRef<AffineExpr>(others) != read.getResults())
    return pieces;
  int64_t joined = -1;
  bool isInner = false;
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices()))
    if (group.size() == 2 && llvm::is_contained(group, own)) {
      joined = static_cast<int64_t>(dim);
      isInner = group[1] == own;
    } else if (group.size() != 1) {
      return pieces;
    }
  int64_t times = op.getSrcType().getDimSize(own);
  if (joined < 0 || times > static_cast<int64_t>(kMostSegments))
    return pieces;
  pieces.dim = joined;
  int64_t extent = extentOf(op.getResult(), joined) / times;
  for (int64_t i = 0; i < times; ++i)
    pieces.segments.push_back(
        {generic.getInputs()[0], isInner ? Segment{0, 1, i, extent == 1 ? 1 : times, extent}
                                         : Segment{0, 1, i * extent, 1, extent}});
  return pieces;
}

/// Elements with gaps between them: a separate dimension is padded, which is then merged with the
/// original dimension.
static Pieces piecesOf(tensor::CollapseShapeOp op) {
  Pieces pieces = piecesOfRepetition(op);
  if (!pieces.segments.empty())
    return pieces;
  Attribute fill;
  auto pad = op.getSrc().getDefiningOp<tensor::PadOp>();
  auto expand = pad ? pad.getSource().getDefiningOp<tensor::ExpandShapeOp>() : nullptr;
  if (!expand || !pad.getLow().empty() || !pad.getHigh().empty() ||
      !pad.getConstantPaddingValue() ||
      !matchPattern(pad.getConstantPaddingValue(), m_Constant(&fill)))
    return pieces;
  int64_t own = onlyDim(pad.getResultType().getRank(), [&](int64_t d) {
    return pad.getStaticLow()[d] != 0 || pad.getStaticHigh()[d] != 0;
  });
  int64_t joined = -1;
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices()))
    if (group.size() == 2 && group[1] == own)
      joined = static_cast<int64_t>(dim);
    else if (group.size() != 1)
      return pieces;
  pieces.fill = dyn_cast<TypedAttr>(fill);
  if (joined < 0 || !pieces.fill || !inserts(expand, own))
    return pieces;
  int64_t low = pad.getStaticLow()[own], step = low + 1 + pad.getStaticHigh()[own];
  pieces.dim = joined;
  pieces.segments = {{expand.getSrc(), {0, 1, low, step, extentOf(expand.getSrc(), joined)}}};
  return pieces;
}

/// An insertion into a constant.
static Pieces piecesOf(tensor::InsertSliceOp op) {
  Pieces pieces;
  pieces.fill = splatOf(op.getDest());
  if (!pieces.fill || op.getDroppedDims().any() || !op.getOffsets().empty() ||
      !op.getSizes().empty() || !op.getStrides().empty() ||
      llvm::any_of(op.getStaticStrides(), [](int64_t stride) { return stride < 1; }))
    return pieces;
  pieces.dim = onlyDim(op.getType().getRank(), [&](int64_t d) {
    return op.getStaticSizes()[d] != op.getType().getDimSize(d);
  });
  if (pieces.dim >= 0)
    pieces.segments = {{op.getSource(),
                        {0, 1, op.getStaticOffsets()[pieces.dim], op.getStaticStrides()[pieces.dim],
                         op.getStaticSizes()[pieces.dim]}}};
  return pieces;
}

/// A copy from c + a * i to i: a reversal, for example; a repeated element is a segment for each
/// repetition.
static Pieces piecesOf(linalg::GenericOp op) {
  Pieces pieces;
  if (op->getNumResults() != 1 || op.getNumDpsInputs() != 1 || op.getNumReductionLoops() > 0)
    return pieces;
  Block &body = op.getRegion().front();
  if (body.getOperations().size() != 1 ||
      body.getTerminator()->getOperand(0) != body.getArgument(0))
    return pieces;
  AffineMap read = op.getIndexingMapsArray()[0], written = op.getIndexingMapsArray()[1];
  int64_t rank = written.getNumDims();
  if (!written.isIdentity() || read.getNumResults() != rank)
    return pieces;
  pieces.dim = onlyDim(
      rank, [&](int64_t d) { return read.getResult(d) != getAffineDimExpr(d, op.getContext()); });
  if (pieces.dim < 0)
    return pieces;
  AffineExpr expr = read.getResult(pieces.dim),
             loop = getAffineDimExpr(pieces.dim, op.getContext());
  int64_t size = extentOf(op->getResult(0), pieces.dim);
  // Two values determine an affine function of one loop; the third verifies it.
  auto valueAt = [&](int64_t i) -> std::optional<int64_t> {
    auto constant =
        dyn_cast<AffineConstantExpr>(expr.replace(loop, getAffineConstantExpr(i, op.getContext())));
    return constant ? std::optional(constant.getValue()) : std::nullopt;
  };
  std::optional<int64_t> first = valueAt(0), second = valueAt(1);
  if (first && dyn_cast<AffineConstantExpr>(expr) && size <= int64_t(kMostSegments)) {
    for (int64_t i = 0; i < size; ++i)
      pieces.segments.push_back({op.getInputs()[0], {*first, 1, i, 1, 1}});
    return pieces;
  }
  if (!first || !second || *first == *second || !expr.isPureAffine() ||
      simplifyAffineExpr(expr - (loop * (*second - *first) + *first), rank, 0) !=
          getAffineConstantExpr(0, op.getContext()))
    return pieces;
  int64_t step = *second - *first;
  Segment segment = step > 0 ? Segment{*first, step, 0, 1, size}
                             : Segment{*first + step * (size - 1), -step, size - 1, -1, size};
  pieces.segments = {{op.getInputs()[0], segment}};
  return pieces;
}

static Pieces piecesOf(RearrangeOp op) {
  Pieces pieces{static_cast<int64_t>(op.getDim()), {}, op.getFillAttr()};
  for (auto [index, input] : llvm::enumerate(op.getInputs()))
    pieces.segments.push_back({input, op.getSegment(index)});
  return pieces;
}

/// Whether no element of the result is in two segments.
static bool areDisjoint(const Pieces &pieces, int64_t extent) {
  constexpr int64_t kMost = 1 << 16;
  if (extent > kMost)
    return false;
  llvm::BitVector written(static_cast<unsigned>(extent));
  for (auto &[value, segment] : pieces.segments)
    for (int64_t i = 0; i < segment.count; ++i) {
      auto place = static_cast<unsigned>(segment.to + i * segment.toStep);
      if (written.test(place))
        return false;
      written.set(place);
    }
  return true;
}

static bool isZero(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValue().isPosZero();
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getValue().isZero();
}

/// Whether the op adds two tensors element by element.
static bool isSum(linalg::GenericOp op) {
  Block &body = op.getRegion().front();
  Operation &sum = body.front();
  return op.getNumDpsInputs() == 2 && op->getNumResults() == 1 &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }) &&
         isa<arith::AddFOp, arith::AddIOp>(sum) &&
         llvm::equal(sum.getOperands(), body.getArguments().take_front(2)) &&
         body.getTerminator()->getOperands() == sum.getResults();
}

/// A sum of two values without other readers.
static Pieces piecesOfSum(linalg::GenericOp op) {
  Pieces sum;
  for (Value operand : op.getInputs()) {
    Pieces pieces = operand.hasOneUse() ? readPieces(operand.getDefiningOp()) : Pieces();
    if (pieces.segments.empty() || !pieces.fill || (sum.dim >= 0 && sum.dim != pieces.dim) ||
        !isZero(pieces.fill))
      return {};
    sum.dim = pieces.dim;
    sum.fill = pieces.fill;
    llvm::append_range(sum.segments, pieces.segments);
  }
  bool fits =
      sum.segments.size() <= kMostSegments && areDisjoint(sum, extentOf(op->getResult(0), sum.dim));
  return fits ? sum : Pieces();
}

Pieces dist::readPieces(Operation *op) {
  if (!op || op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) ||
      !cast<RankedTensorType>(op->getResult(0).getType()).hasStaticShape())
    return {};
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return piecesOf(slice);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return piecesOf(concat);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return piecesOf(pad);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return piecesOf(insert);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return piecesOf(collapse);
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return isSum(generic) ? piecesOfSum(generic) : piecesOf(generic);
  if (auto rearrange = dyn_cast<RearrangeOp>(op))
    return piecesOf(rearrange);
  return {};
}

//===----------------------------------------------------------------------===//
// Composition
//===----------------------------------------------------------------------===//

Segment dist::through(const Segment &outer, const Segment &inner) {
  // outer.from + i * outer.fromStep = inner.to + k * inner.toStep, solved for the least i.
  int64_t a = outer.fromStep, b = inner.toStep, g = std::gcd(a, std::abs(b));
  Segment none{0, 1, 0, 1, 0};
  if (outer.count == 0 || inner.count == 0 || (inner.to - outer.from) % g != 0)
    return none;
  int64_t period = std::abs(b) / g; // of i
  int64_t i = 0;
  while (i < period && (outer.from + i * a - inner.to) % std::abs(b) != 0)
    ++i;
  // i = i0 + n * period: k is affine in n.
  int64_t k = (outer.from + i * a - inner.to) / b, kStep = a * period / b;
  auto ceilOf = [](int64_t x, int64_t y) { // y positive
    return x >= 0 ? (x + y - 1) / y : -(-x / y);
  };
  int64_t low = 0, high = ceilOf(outer.count - i, period); // n in [low, high)
  if (kStep > 0) {
    low = std::max(low, ceilOf(-k, kStep));
    high = std::min(high, ceilOf(inner.count - k, kStep));
  } else {
    low = std::max(low, ceilOf(k - inner.count + 1, -kStep));
    high = std::min(high, ceilOf(k + 1, -kStep));
  }
  if (low >= high)
    return none;
  Segment result;
  result.count = high - low;
  result.from = inner.from + (k + low * kStep) * inner.fromStep;
  result.fromStep = kStep * inner.fromStep;
  result.to = outer.to + (i + low * period) * outer.toStep;
  result.toStep = period * outer.toStep;
  if (result.fromStep < 0) { // read ascending
    result.from += result.fromStep * (result.count - 1);
    result.to += result.toStep * (result.count - 1);
    result.fromStep = -result.fromStep;
    result.toStep = -result.toStep;
  }
  if (result.count == 1)
    result.fromStep = result.toStep = 1;
  return result;
}

bool dist::compose(Pieces &pieces, int64_t extent) {
  bool changed = false;
  for (size_t n = 0; n < pieces.segments.size(); ++n) {
    auto [value, segment] = pieces.segments[n];
    if (TypedAttr splat = splatOf(value)) {
      bool isFill = pieces.fill ? pieces.fill == splat : coversResult(pieces, extent);
      if (!isFill || pieces.segments.size() == 1)
        continue;
      pieces.fill = splat;
      pieces.segments.erase(pieces.segments.begin() + n--);
      changed = true;
      continue;
    }
    Pieces inner = readPieces(value.getDefiningOp());
    if (inner.segments.empty() || inner.dim != pieces.dim ||
        inner.segments.size() + pieces.segments.size() > kMostSegments)
      continue;
    SmallVector<std::pair<Value, Segment>> composed;
    int64_t count = 0;
    for (auto &[from, part] : inner.segments) {
      Segment both = through(segment, part);
      count += both.count;
      if (both.count > 0)
        composed.push_back({from, both});
    }
    bool leavesFill = count < segment.count;
    if (leavesFill && (pieces.fill ? pieces.fill != inner.fill : !coversResult(pieces, extent)))
      continue;
    if (composed.empty() && pieces.segments.size() == 1)
      continue; // a constant
    if (leavesFill)
      pieces.fill = inner.fill;
    pieces.segments.erase(pieces.segments.begin() + n);
    pieces.segments.insert(pieces.segments.begin() + n, composed.begin(), composed.end());
    --n;
    changed = true;
  }
  return changed;
}

void dist::join(Pieces &pieces) {
  for (size_t n = 0; n + 1 < pieces.segments.size();) {
    auto &[value, first] = pieces.segments[n];
    auto &[other, next] = pieces.segments[n + 1];
    if (value == other && first.fromStep == next.fromStep && first.toStep == next.toStep &&
        next.from == first.from + first.count * first.fromStep &&
        next.to == first.to + first.count * first.toStep) {
      first.count += next.count;
      pieces.segments.erase(pieces.segments.begin() + n + 1);
    } else {
      ++n;
    }
  }
}
