//===- SinkPads.cpp - Pads behind slices and reshapes ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The extents of a padded tensor usually differ from those of its neighbors: if cut,
// its parts do not match theirs. A slice of a pad is rewritten as a pad of a slice, one
// dimension at a time; stencils on grids read shifted rows and shifted columns. A
// reshape that does not touch the padded dimensions moves in front of the pad.
//
//===----------------------------------------------------------------------===//

#include "SinkPads.h"

#include "PlainOps.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A dimension of a result: `low` fill elements, `count` elements of a tensor with stride `step`
/// from index `from` on, and `high` fill elements.
struct Reach {
  int64_t from = 0, step = 1, count = 0, low = 0, high = 0;
};

/// A part of a tensor with a border of fill.
struct Bordered {
  Value source;
  SmallVector<Reach> dims;
  TypedAttr fill; ///< null without a border
};

} // namespace

/// The fill value of a pad if it and the widths are constant; else null.
static TypedAttr fillOf(tensor::PadOp pad) {
  Attribute fill;
  Value padding = pad.getConstantPaddingValue();
  bool isConstant = padding && matchPattern(padding, m_Constant(&fill));
  bool isStatic = pad.getLow().empty() && pad.getHigh().empty();
  bool widens = llvm::all_of(pad.getStaticLow(), [](int64_t n) { return n >= 0; }) &&
                llvm::all_of(pad.getStaticHigh(), [](int64_t n) { return n >= 0; });
  return isConstant && isStatic && widens && isPlain(pad) ? dyn_cast<TypedAttr>(fill) : TypedAttr();
}

/// The number of i with 0 <= i < count and from + i * step < end.
static int64_t countBelow(const Reach &reach, int64_t end) {
  int64_t n = (end - reach.from + reach.step - 1) / reach.step;
  return end <= reach.from ? 0 : std::min(n, reach.count);
}

/// Expresses `part`, whose source is a pad, as a border and a part of the pad's source. Returns
/// false, without changes, if that is impossible.
static bool readThrough(tensor::PadOp pad, Bordered &part) {
  TypedAttr fill = fillOf(pad);
  if (!fill)
    return false;
  SmallVector<Reach> dims = part.dims;
  bool hasBorder = false;
  for (auto [d, reach] : llvm::enumerate(dims)) {
    int64_t low = pad.getStaticLow()[d], extent = pad.getSourceType().getDimSize(d);
    int64_t begin = countBelow(reach, low), end = countBelow(reach, low + extent);
    if (begin == end)
      return false; // the part is fill only
    hasBorder |= begin > 0 || end < reach.count;
    reach.low += begin;
    reach.high += reach.count - end;
    reach.count = end - begin;
    reach.from += begin * reach.step - low;
  }
  if (hasBorder && part.fill && part.fill != fill)
    return false;
  part.dims = dims;
  part.source = pad.getSource();
  if (hasBorder)
    part.fill = fill;
  return true;
}

/// A slice of a pad, possibly through further slices and pads, as a border and a part of the
/// innermost source.
static std::optional<Bordered> readSlice(tensor::ExtractSliceOp slice) {
  if (!isPlainSlice(slice))
    return std::nullopt;
  Bordered part{slice.getSource(), {}, {}};
  for (auto [offset, size, stride] :
       llvm::zip_equal(slice.getStaticOffsets(), slice.getStaticSizes(), slice.getStaticStrides()))
    part.dims.push_back({offset, stride, size});
  bool isPadded = false;
  while (Operation *op = part.source.getDefiningOp()) {
    if (auto pad = dyn_cast<tensor::PadOp>(op); pad && readThrough(pad, part)) {
      isPadded = true;
      continue;
    }
    auto inner = dyn_cast<tensor::ExtractSliceOp>(op);
    if (!inner || !isPlainSlice(inner))
      break;
    for (auto [d, reach] : llvm::enumerate(part.dims)) {
      reach.from = inner.getStaticOffsets()[d] + reach.from * inner.getStaticStrides()[d];
      reach.step *= inner.getStaticStrides()[d];
    }
    part.source = inner.getSource();
  }
  return isPadded ? std::optional(part) : std::nullopt;
}

static Value writePad(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> low,
                      ArrayRef<int64_t> high, TypedAttr fill) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  for (auto [d, extent] : llvm::enumerate(shape))
    extent += low[d] + high[d];
  Value padding = arith::ConstantOp::create(b, loc, fill);
  return tensor::PadOp::create(b, loc, RankedTensorType::get(shape, fill.getType()), value,
                               getAsIndexOpFoldResult(b.getContext(), low),
                               getAsIndexOpFoldResult(b.getContext(), high), padding);
}

/// Emits a slice and a pad for each dimension in turn: first where half of a dimension or less is
/// kept, so that less is moved along the others.
static Value write(OpBuilder &b, Location loc, const Bordered &part) {
  Value value = part.source;
  auto rank = static_cast<int64_t>(part.dims.size());
  ArrayRef<int64_t> extents = cast<RankedTensorType>(value.getType()).getShape();
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  llvm::stable_sort(order, [&](int64_t left, int64_t right) {
    auto isPart = [&](int64_t d) {
      return part.dims[d].step == 1 && part.dims[d].count * 2 <= extents[d];
    };
    return isPart(left) && !isPart(right);
  });
  for (int64_t d : order) {
    const Reach &reach = part.dims[d];
    SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
    if (reach.from != 0 || reach.step != 1 || reach.count != shape[d]) {
      SmallVector<int64_t> offsets(rank, 0), strides(rank, 1);
      offsets[d] = reach.from;
      strides[d] = reach.step;
      shape[d] = reach.count;
      value = tensor::ExtractSliceOp::create(b, loc, value,
                                             getAsIndexOpFoldResult(b.getContext(), offsets),
                                             getAsIndexOpFoldResult(b.getContext(), shape),
                                             getAsIndexOpFoldResult(b.getContext(), strides));
    }
    if (reach.low > 0 || reach.high > 0) {
      SmallVector<int64_t> low(rank, 0), high(rank, 0);
      low[d] = reach.low;
      high[d] = reach.high;
      value = writePad(b, loc, value, low, high, part.fill);
    }
  }
  return value;
}

/// `formRearrangements` handles slices along a single dimension.
static void sinkBehind(tensor::ExtractSliceOp slice) {
  std::optional<Bordered> part = readSlice(slice);
  if (!part)
    return;
  auto source = cast<RankedTensorType>(part->source.getType());
  int64_t moved = 0;
  for (auto [d, reach] : llvm::enumerate(part->dims))
    moved += slice.getSourceType().getDimSize(d) != slice.getType().getDimSize(d) ||
             reach.low > 0 || reach.high > 0 || reach.count != source.getDimSize(d);
  if (moved < 2)
    return;
  OpBuilder b(slice);
  slice.replaceAllUsesWith(write(b, slice.getLoc(), *part));
  slice.erase();
}

/// Whether a value with one reader is computed elementwise from pads.
static bool isMadeOfPads(Value value, int steps) {
  constexpr int kMostSteps = 16;
  if (!value.hasOneUse() || steps > kMostSteps)
    return false;
  if (auto pad = value.getDefiningOp<tensor::PadOp>())
    return fillOf(pad) != nullptr;
  auto op = value.getDefiningOp<linalg::GenericOp>();
  return op && op->getNumResults() == 1 && op.getNumDpsInputs() > 0 && isPlain(op) &&
         op.getNumReductionLoops() == 0 && op.getOps<linalg::IndexOp>().empty() &&
         op.getRegionOutputArgs().front().use_empty() &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }) &&
         llvm::all_of(op.getInputs(), [&](Value input) { return isMadeOfPads(input, steps + 1); });
}

/// Moves a slice from the result of an elementwise op to its operands, recursively. Returns the
/// slices of pads.
static SmallVector<tensor::ExtractSliceOp> sliceOperands(tensor::ExtractSliceOp slice) {
  auto source = slice.getSource().getDefiningOp<linalg::GenericOp>();
  if (!source)
    return {slice};
  OpBuilder b(source);
  SmallVector<tensor::ExtractSliceOp> slices, all;
  SmallVector<Value> inputs;
  for (Value input : source.getInputs()) {
    auto type = slice.getType().clone(cast<RankedTensorType>(input.getType()).getElementType());
    all.push_back(tensor::ExtractSliceOp::create(b, slice.getLoc(), cast<RankedTensorType>(type),
                                                 input, slice.getMixedOffsets(),
                                                 slice.getMixedSizes(), slice.getMixedStrides()));
    inputs.push_back(all.back());
  }
  Value init = tensor::EmptyOp::create(b, source.getLoc(), slice.getType().getShape(),
                                       slice.getType().getElementType());
  auto made =
      linalg::GenericOp::create(b, source.getLoc(), slice.getType(), inputs, init,
                                source.getIndexingMapsArray(), source.getIteratorTypesArray());
  IRMapping body;
  source.getRegion().cloneInto(&made.getRegion(), body);
  slice.replaceAllUsesWith(made.getResult(0));
  slice.erase();
  source.erase();
  for (tensor::ExtractSliceOp inner : all)
    llvm::append_range(slices, sliceOperands(inner));
  return slices;
}

/// The only dimension of a group whose extent is not 1; -1 if there are several.
static int64_t ownDim(ArrayRef<int64_t> group, ArrayRef<int64_t> shape) {
  int64_t own = group.front();
  for (int64_t d : group)
    if (shape[d] != 1) {
      if (own != d && shape[own] != 1)
        return -1;
      own = d;
    }
  return own;
}

/// The width that a pad adds to each dimension of its reshaped source, given the reassociation
/// groups; empty if it pads a dimension that is merged with or split into others.
static std::optional<SmallVector<int64_t>> spread(ArrayRef<int64_t> widths,
                                                  ArrayRef<ReassociationIndices> groups,
                                                  ArrayRef<int64_t> fine, bool isExpanded) {
  SmallVector<int64_t> result(isExpanded ? fine.size() : groups.size(), 0);
  for (auto [coarse, group] : llvm::enumerate(groups)) {
    int64_t own = ownDim(group, fine);
    if (isExpanded) {
      if (widths[coarse] > 0 && own < 0)
        return std::nullopt;
      if (own >= 0)
        result[own] = widths[coarse];
      continue;
    }
    for (int64_t d : group)
      if (widths[d] > 0 && d != own)
        return std::nullopt;
    if (own >= 0)
      result[coarse] = widths[own];
  }
  return result;
}

/// Rewrites a reshape of a pad as a pad of the reshaped source.
template <typename Reshape> static void sinkBehind(Reshape reshape) {
  constexpr bool isExpanded = std::is_same_v<Reshape, tensor::ExpandShapeOp>;
  auto pad = reshape.getSrc().template getDefiningOp<tensor::PadOp>();
  TypedAttr fill = pad && pad->hasOneUse() && isPlain(reshape) ? fillOf(pad) : TypedAttr();
  if (!fill)
    return;
  SmallVector<ReassociationIndices> groups = reshape.getReassociationIndices();
  // In an expanded dimension, the padded part has the extent of the result.
  ArrayRef<int64_t> fine =
      isExpanded ? reshape.getResultType().getShape() : pad.getResultType().getShape();
  auto low = spread(pad.getStaticLow(), groups, fine, isExpanded);
  auto high = spread(pad.getStaticHigh(), groups, fine, isExpanded);
  if (!low || !high)
    return;
  SmallVector<int64_t> shape(reshape.getResultType().getShape());
  for (auto [d, extent] : llvm::enumerate(shape))
    extent -= (*low)[d] + (*high)[d];
  OpBuilder b(reshape);
  auto type = RankedTensorType::get(shape, reshape.getResultType().getElementType());
  Value inner = Reshape::create(b, reshape.getLoc(), type, pad.getSource(), groups);
  reshape.replaceAllUsesWith(writePad(b, pad.getLoc(), inner, *low, *high, fill));
  reshape.erase();
}

void dist::sinkPads(func::FuncOp function) {
  SmallVector<Operation *> behind, pads;
  function.walk([&](Operation *op) {
    if (isa<tensor::PadOp>(op))
      pads.push_back(op);
    if (isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      behind.push_back(op);
  });
  for (Operation *op : behind) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      if (isPlainSlice(slice) && isMadeOfPads(slice.getSource(), 0))
        for (tensor::ExtractSliceOp inner : sliceOperands(slice))
          sinkBehind(inner);
      else
        sinkBehind(slice);
    } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      sinkBehind(expand);
    else
      sinkBehind(cast<tensor::CollapseShapeOp>(op));
  }
  for (Operation *pad : llvm::reverse(pads))
    if (pad->use_empty())
      pad->erase();
}

/// Rewrites a reshape of a rearrangement as the rearrangement of reshaped operands, if it leaves
/// the rearranged dimension as it is. Returns the new reshapes.
template <typename Reshape> static SmallVector<Operation *> reshapeOperands(Reshape reshape) {
  constexpr bool isExpanded = std::is_same_v<Reshape, tensor::ExpandShapeOp>;
  auto rearrange = reshape.getSrc().template getDefiningOp<RearrangeOp>();
  if (!rearrange || !rearrange->hasOneUse() || !isPlain(rearrange) || !isPlain(reshape))
    return {};
  SmallVector<ReassociationIndices> groups = reshape.getReassociationIndices();
  ArrayRef<int64_t> fine =
      isExpanded ? reshape.getResultType().getShape() : rearrange.getType().getShape();
  auto dim = static_cast<int64_t>(rearrange.getDim());
  int64_t before = -1, after = -1; // the dimension with both shapes
  for (auto [coarse, group] : llvm::enumerate(groups)) {
    int64_t own = ownDim(group, fine);
    if (isExpanded ? static_cast<int64_t>(coarse) == dim : own == dim) {
      before = dim;
      after = isExpanded ? own : static_cast<int64_t>(coarse);
    }
  }
  if (before < 0 || after < 0)
    return {};
  OpBuilder b(reshape);
  SmallVector<Operation *> made;
  llvm::DenseMap<Value, Value> reshaped; // looked up only
  SmallVector<Value> operands;
  for (Value operand : rearrange.getInputs()) {
    Value &known = reshaped[operand];
    if (!known) {
      SmallVector<int64_t> shape(reshape.getResultType().getShape());
      shape[after] = cast<RankedTensorType>(operand.getType()).getDimSize(before);
      auto type = RankedTensorType::get(shape, reshape.getResultType().getElementType());
      known = Reshape::create(b, reshape.getLoc(), type, operand, groups);
      made.push_back(known.getDefiningOp());
    }
    operands.push_back(known);
  }
  reshape.replaceAllUsesWith(RearrangeOp::create(b, rearrange.getLoc(), reshape.getResultType(),
                                                 operands, after, rearrange.getSegments(),
                                                 rearrange.getFillAttr())
                                 .getResult());
  reshape.erase();
  rearrange.erase();
  return made;
}

void dist::sinkRearrangements(func::FuncOp function) {
  SmallVector<Operation *> reshapes;
  function.walk([&](Operation *op) {
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      reshapes.push_back(op);
  });
  std::reverse(reshapes.begin(), reshapes.end());
  while (!reshapes.empty()) {
    Operation *op = reshapes.pop_back_val();
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      llvm::append_range(reshapes, reshapeOperands(expand));
    else
      llvm::append_range(reshapes, reshapeOperands(cast<tensor::CollapseShapeOp>(op)));
  }
}
