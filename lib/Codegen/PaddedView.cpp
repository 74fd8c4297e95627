//===- PaddedView.cpp - Views through zero padding ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PaddedView.h"
#include "tessera/Dialect/Dist/Rules/LinearExpr.h"

#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

void Place::add(const Place &other, int64_t factor) {
  int64_t common = std::lcm(divisor, other.divisor);
  int64_t scale = common / divisor, otherScale = common / other.divisor * factor;
  constant = constant * scale + other.constant * otherScale;
  for (auto [term, added] : llvm::zip_equal(terms, other.terms))
    term = term * scale + added * otherScale;
  divisor = common;
}

void Place::divide(int64_t by) {
  divisor *= by;
  int64_t common = std::gcd(divisor, constant);
  for (int64_t term : terms)
    common = std::gcd(common, term);
  divisor /= common;
  constant /= common;
  for (int64_t &term : terms)
    term /= common;
}

bool Bound::followsFrom(const Bound &inner) const {
  // Over a common divisor the two differ by a constant.
  int64_t common = std::lcm(place.divisor, inner.place.divisor);
  int64_t scale = common / place.divisor, otherScale = common / inner.place.divisor;
  // place * a = inner.place * b + difference, with the same terms on both sides.
  std::optional<std::pair<int64_t, int64_t>> ratio;
  for (auto [term, other] : llvm::zip_equal(place.terms, inner.place.terms)) {
    if (term == 0 && other == 0)
      continue;
    std::pair<int64_t, int64_t> one(term * scale, other * otherScale);
    if (one.second == 0 || one.first % one.second != 0)
      return false;
    one = {one.first / one.second, 1};
    if (ratio && *ratio != one)
      return false;
    ratio = one;
  }
  if (!ratio)
    return false;
  // place = factor * inner.place + rest / common.
  int64_t factor = ratio->first;
  int64_t rest = place.constant * scale - factor * inner.place.constant * otherScale;
  if (rest % common != 0)
    return false;
  int64_t first = rest / common, last = first + factor * (inner.extent - 1);
  return std::min(first, last) >= 0 && std::max(first, last) < extent;
}

/// A linear expression of places as a place; empty for other expressions.
static std::optional<Place> placeOf(AffineExpr expr, ArrayRef<Place> dims, unsigned loops) {
  std::optional<dist::LinearExpr> linear = dist::linearExprOf(expr);
  if (!linear)
    return std::nullopt;
  Place place(loops, linear->constant);
  for (auto [dim, coefficient] : linear->terms)
    place.add(dims[dim], coefficient);
  return place;
}

static std::optional<SmallVector<Place>> placesOf(AffineMap map, ArrayRef<Place> dims,
                                                  unsigned loops) {
  SmallVector<Place> places;
  for (AffineExpr expr : map.getResults()) {
    std::optional<Place> place = placeOf(expr, dims, loops);
    if (!place)
      return std::nullopt;
    places.push_back(*place);
  }
  return places;
}

static SmallVector<Place> loopPlaces(unsigned loops) {
  SmallVector<Place> places(loops, Place(loops));
  for (unsigned loop = 0; loop < loops; ++loop)
    places[loop].terms[loop] = 1;
  return places;
}

/// The place of merged dimensions, the last of which is contiguous.
static Place joined(ArrayRef<int64_t> group, ArrayRef<Place> dims, ArrayRef<int64_t> shape,
                    unsigned loops) {
  Place place(loops);
  int64_t distance = 1;
  for (int64_t d : llvm::reverse(group)) {
    place.add(dims[d], distance);
    distance *= shape[d];
  }
  return place;
}

static bool isStatic(OffsetSizeAndStrideOpInterface op) {
  return llvm::none_of(op.getStaticOffsets(), ShapedType::isDynamic) &&
         llvm::none_of(op.getStaticSizes(), ShapedType::isDynamic) &&
         llvm::none_of(op.getStaticStrides(), ShapedType::isDynamic);
}

/// An insertion into zeros, of the same rank.
static tensor::InsertSliceOp insertionIntoZeros(Value value) {
  auto insert = value.getDefiningOp<tensor::InsertSliceOp>();
  if (!insert || !isStatic(insert) ||
      insert.getSourceType().getRank() != insert.getType().getRank())
    return {};
  auto fill = insert.getDest().getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs()[0], m_PosZeroFloat()) ? insert
                                                                     : tensor::InsertSliceOp();
}

namespace {
/// Looks through the producers of a view's value, one op at a time.
class Walk {
public:
  Walk(PaddedView view, unsigned loops) : view(std::move(view)), loops(loops) {}
  bool step();
  PaddedView view;

private:
  bool throughCopy(linalg::LinalgOp op);
  bool throughCollapse(tensor::CollapseShapeOp op);
  void throughInsertion(tensor::InsertSliceOp op, SmallVector<Place> places);
  unsigned loops;
};
} // namespace

bool Walk::throughCopy(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 0 ||
      !llvm::hasSingleElement(*op.getBlock()) ||
      op.getBlock()->getTerminator()->getOperand(0) != op.getBlock()->getArgument(0) ||
      !isa<RankedTensorType>(op->getOperand(0).getType()) ||
      !op.getIndexingMapsArray()[1].isIdentity())
    return false;
  auto places = placesOf(op.getIndexingMapsArray()[0], view.places, loops);
  if (!places)
    return false;
  view.value = op->getOperand(0);
  view.places = std::move(*places);
  return true;
}

/// A reshape of an insertion of single elements into zeros: a dilation by n.
bool Walk::throughCollapse(tensor::CollapseShapeOp op) {
  ArrayRef<int64_t> shape = op.getSrcType().getShape();
  tensor::InsertSliceOp insert = insertionIntoZeros(op.getSrc());
  ArrayRef<int64_t> inserted = insert ? insert.getSourceType().getShape() : shape;
  SmallVector<Place> places(shape.size(), Place(loops));
  for (auto [group, place] : llvm::zip_equal(op.getReassociationIndices(), view.places)) {
    std::optional<int64_t> only;
    int64_t distance = 1, step = 1;
    Place rest = place;
    for (int64_t d : llvm::reverse(group)) {
      if (inserted[d] != 1) {
        if (only)
          return false;
        only = d;
        step = distance;
      } else if (insert) {
        int64_t offset = insert.getStaticOffsets()[d];
        places[d].constant = offset;
        rest.add(Place(loops, offset), -distance);
      }
      distance *= shape[d];
    }
    int64_t moving = only.value_or(group.empty() ? -1 : group.front());
    if (moving < 0)
      continue;
    if (!only) { // a single nonzero element
      if (insert && distance != 1)
        return false;
      continue;
    }
    rest.divide(step);
    places[moving] = rest;
  }
  view.value = op.getSrc();
  if (insert)
    throughInsertion(insert, std::move(places));
  else
    view.places = std::move(places);
  return true;
}

void Walk::throughInsertion(tensor::InsertSliceOp op, SmallVector<Place> places) {
  for (auto [d, place] : llvm::enumerate(places)) {
    place.constant -= op.getStaticOffsets()[d] * place.divisor;
    place.divide(op.getStaticStrides()[d]);
    view.bounds.push_back({place, op.getSourceType().getDimSize(d)});
  }
  view.value = op.getSource();
  view.places = std::move(places);
}

bool Walk::step() {
  Operation *op = view.value.getDefiningOp();
  if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op))
    return throughCopy(linalgOp);
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
    return throughCollapse(collapse);
  if (tensor::InsertSliceOp insert = insertionIntoZeros(view.value)) {
    throughInsertion(insert, view.places);
    return true;
  }
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op)) {
    SmallVector<Place> places;
    for (const ReassociationIndices &group : expand.getReassociationIndices())
      places.push_back(joined(group, view.places, expand.getResultType().getShape(), loops));
    view.value = expand.getSrc();
    view.places = std::move(places);
    return true;
  }
  auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op);
  if (!slice || !isStatic(slice) || slice.getType().getRank() != slice.getSourceType().getRank())
    return false;
  for (auto [d, place] : llvm::enumerate(view.places)) {
    Place moved(loops, slice.getStaticOffsets()[d]);
    moved.add(place, slice.getStaticStrides()[d]);
    place = moved;
  }
  view.value = slice.getSource();
  return true;
}

SmallVector<PaddedView> codegen::paddedViews(Value operand, AffineMap map) {
  unsigned loops = map.getNumDims();
  std::optional<SmallVector<Place>> places = placesOf(map, loopPlaces(loops), loops);
  SmallVector<PaddedView> views;
  if (!places)
    return views;
  Walk walk({operand, std::move(*places), {}}, loops);
  do
    views.push_back(walk.view);
  while (walk.step());
  return views;
}

PaddedView codegen::cutView(Value result, AffineMap map) {
  unsigned loops = map.getNumDims();
  std::optional<SmallVector<Place>> places = placesOf(map, loopPlaces(loops), loops);
  if (!places)
    return {};
  PaddedView view{result, std::move(*places), {}}, reshaped = view;
  while (reshaped.value.hasOneUse()) {
    Operation *user = *reshaped.value.getUsers().begin();
    if (user->getBlock() != result.getParentBlock())
      break;
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(user)) {
      SmallVector<Place> outer;
      for (const ReassociationIndices &group : collapse.getReassociationIndices())
        outer.push_back(joined(group, reshaped.places, collapse.getSrcType().getShape(), loops));
      reshaped.places = std::move(outer);
    } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
               slice && isStatic(slice) && slice.hasUnitStride() &&
               slice.getType().getRank() == slice.getSourceType().getRank() &&
               slice.getType().getNumElements() > 0) {
      for (auto [d, place] : llvm::enumerate(reshaped.places)) {
        place.constant -= slice.getStaticOffsets()[d];
        if (slice.getType().getDimSize(d) != slice.getSourceType().getDimSize(d))
          reshaped.bounds.push_back({place, slice.getType().getDimSize(d)});
      }
    } else {
      break;
    }
    reshaped.value = user->getResult(0);
    if (isa<tensor::ExtractSliceOp>(user))
      view = reshaped;
  }
  return view;
}
