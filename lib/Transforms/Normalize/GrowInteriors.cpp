//===- GrowInteriors.cpp - Interiors of grids in the grid's extents -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step on a grid computes its interior from shifted slices and writes it back:
//
//   u[1:-1] = f(u[:-2], u[1:-1], u[2:])
//
// The extents of the interior and the grid differ: if cut, their parts do not match,
// and the interior must be resharded. If instead computed for all rows, it has the
// sharding of the grid, and only shifts of the grid are sent:
//
//   u = select(inside, f(shift(u, 1), u, shift(u, -1)), u)
//
// The select discards the values outside of the interior.
//
//===----------------------------------------------------------------------===//

#include "GrowInteriors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limit on the ops that compute an interior; beyond it the interior is unchanged.
static constexpr size_t kMostOps = 64;
/// Minimum share of an interior in each extent of its grid: little work is wasted.
static constexpr int64_t kLeastShare = 4, kOfShare = 5;

namespace {

/// The position of a tensor in a grid.
struct Place {
  SmallVector<int64_t> low;  ///< by dimension: the grid's elements before the tensor
  SmallVector<int64_t> grid; ///< by dimension: the grid's extent

  bool operator==(const Place &other) const { return low == other.low && grid == other.grid; }
};

/// A value that is written into a part of a grid.
struct Interior {
  Value value;
  Place place;
};

/// Computes interiors for all elements of their grids.
class Growth {
public:
  explicit Growth(Operation *writer) : b(writer), writer(writer) {}

  /// Whether the value and all its producers can be computed for the whole grid.
  bool collect(Value value, const Place &place);
  /// Whether a collected op reads a grid, and the collected ops have no other users.
  bool isWorthwhile() const;
  Value write(Value value, const Place &place);

private:
  static bool isElementwise(linalg::GenericOp op);
  bool collectSlice(tensor::ExtractSliceOp slice, const Place &place);
  Value writeSlice(tensor::ExtractSliceOp slice, const Place &place);

  OpBuilder b;
  Operation *writer;
  SmallVector<std::pair<Operation *, Place>> ops; ///< elementwise, consumers first
  bool readsGrid = false;
  bool readsBox = false; ///< whether an interior extends over several dimensions
  IRMapping written;
};

} // namespace

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isPlain(Operation *op) {
  return op->getDiscardableAttrDictionary().empty(); // else the user refers to this op
}

static bool isSplat(Value value) {
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat();
}

bool Growth::isElementwise(linalg::GenericOp op) {
  return op->getNumResults() == 1 && op.getNumReductionLoops() == 0 && isPlain(op) &&
         op.getIndexingMapsArray().back().isIdentity() &&
         op.getRegionOutputArgs().front().use_empty() && op.getOps<linalg::IndexOp>().empty() &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isProjectedPermutation(); });
}

bool Growth::collectSlice(tensor::ExtractSliceOp slice, const Place &place) {
  if (slice.getDroppedDims().any() || !slice.getOffsets().empty() || !slice.getSizes().empty() ||
      !slice.getStrides().empty() || !isPlain(slice) ||
      llvm::any_of(slice.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
    return false;
  int64_t dims = 0;
  for (auto [d, extent] : llvm::enumerate(place.grid)) {
    bool isInterior = extent != slice.getType().getDimSize(d);
    dims += isInterior;
    if (isInterior && slice.getSourceType().getDimSize(d) != extent)
      return false; // a slice of another grid
  }
  readsGrid |= dims > 0;
  readsBox |= dims > 1;
  return true;
}

bool Growth::collect(Value value, const Place &place) {
  RankedTensorType type = typeOf(value);
  if (ArrayRef<int64_t>(place.grid) == type.getShape() || isSplat(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != writer->getBlock())
    return false;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return collectSlice(slice, place);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !isElementwise(generic))
    return false;
  auto known = llvm::find_if(ops, [&](auto &entry) { return entry.first == op; });
  if (known != ops.end())
    return known->second == place;
  ops.push_back({op, place});
  if (ops.size() > kMostOps)
    return false;
  for (OpOperand *input : generic.getDpsInputOperands()) {
    Place read;
    for (AffineExpr expr : generic.getMatchingIndexingMap(input).getResults()) {
      int64_t loop = cast<AffineDimExpr>(expr).getPosition();
      read.low.push_back(place.low[loop]);
      read.grid.push_back(place.grid[loop]);
    }
    if (isa<RankedTensorType>(input->get().getType()) && !collect(input->get(), read))
      return false;
  }
  return true;
}

bool Growth::isWorthwhile() const {
  // A slice that is written back along one dimension is a rearrangement.
  return readsGrid && (readsBox || !ops.empty()) && llvm::all_of(ops, [&](auto &entry) {
           return llvm::all_of(entry.first->getUsers(), [&](Operation *user) {
             return user == writer ||
                    llvm::any_of(ops, [&](auto &other) { return other.first == user; });
           });
         });
}

/// The grid that a slice reads, shifted to the slice's position; zeros outside of the grid.
Value Growth::writeSlice(tensor::ExtractSliceOp slice, const Place &place) {
  Value value = slice.getSource();
  Location loc = slice.getLoc();
  auto rank = static_cast<int64_t>(place.grid.size());
  for (int64_t d = 0; d < rank; ++d) {
    SmallVector<int64_t> shape(typeOf(value).getShape()), offsets(rank, 0), strides(rank, 1);
    bool isInterior = place.grid[d] != slice.getType().getDimSize(d);
    int64_t from = slice.getStaticOffsets()[d] - (isInterior ? place.low[d] : 0);
    int64_t count = isInterior ? shape[d] - std::abs(from) : slice.getType().getDimSize(d);
    if (count == shape[d])
      continue;
    offsets[d] = std::max<int64_t>(from, 0);
    shape[d] = count;
    value = tensor::ExtractSliceOp::create(b, loc, value,
                                           getAsIndexOpFoldResult(b.getContext(), offsets),
                                           getAsIndexOpFoldResult(b.getContext(), shape),
                                           getAsIndexOpFoldResult(b.getContext(), strides));
    if (!isInterior)
      continue;
    SmallVector<int64_t> low(rank, 0), high(rank, 0);
    low[d] = std::max<int64_t>(-from, 0);
    high[d] = std::max<int64_t>(from, 0);
    shape[d] = place.grid[d];
    Type element = typeOf(value).getElementType();
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    value = tensor::PadOp::create(b, loc, RankedTensorType::get(shape, element), value,
                                  getAsIndexOpFoldResult(b.getContext(), low),
                                  getAsIndexOpFoldResult(b.getContext(), high), zero);
  }
  return value;
}

Value Growth::write(Value value, const Place &place) {
  if (ArrayRef<int64_t>(place.grid) == typeOf(value).getShape())
    return value;
  if (Value known = written.lookupOrNull(value);
      known && typeOf(known).getShape() == ArrayRef<int64_t>(place.grid))
    return known;
  Operation *op = value.getDefiningOp();
  RankedTensorType type = typeOf(value).clone(place.grid);
  Value made;
  DenseElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat))) {
    made = arith::ConstantOp::create(
        b, value.getLoc(), DenseElementsAttr::get(type, splat.getSplatValue<Attribute>()));
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    return writeSlice(slice, place); // another reader may have another position
  } else {
    auto generic = cast<linalg::GenericOp>(op);
    SmallVector<Value> inputs;
    for (OpOperand *input : generic.getDpsInputOperands()) {
      Place read;
      for (AffineExpr expr : generic.getMatchingIndexingMap(input).getResults()) {
        int64_t loop = cast<AffineDimExpr>(expr).getPosition();
        read.low.push_back(place.low[loop]);
        read.grid.push_back(place.grid[loop]);
      }
      bool isTensor = isa<RankedTensorType>(input->get().getType());
      inputs.push_back(isTensor ? write(input->get(), read) : input->get());
    }
    Value init = tensor::EmptyOp::create(b, op->getLoc(), type.getShape(), type.getElementType());
    auto grown =
        linalg::GenericOp::create(b, op->getLoc(), type, inputs, init,
                                  generic.getIndexingMapsArray(), generic.getIteratorTypesArray());
    IRMapping body;
    generic.getRegion().cloneInto(&grown.getRegion(), body);
    made = grown.getResult(0);
  }
  written.map(value, made);
  return made;
}

/// Whether an element of a grid is inside a tensor with the given shape and place; null if all are.
static Value isInside(OpBuilder &b, Location loc, const Place &place, ArrayRef<int64_t> shape) {
  Value all;
  auto demand = [&](arith::CmpIPredicate predicate, int64_t d, int64_t bound) {
    Value index = linalg::IndexOp::create(b, loc, d);
    Value holds = arith::CmpIOp::create(b, loc, predicate, index,
                                        arith::ConstantIndexOp::create(b, loc, bound));
    all = all ? arith::AndIOp::create(b, loc, all, holds).getResult() : holds;
  };
  for (auto [d, extent] : llvm::enumerate(place.grid)) {
    if (place.low[d] > 0)
      demand(arith::CmpIPredicate::sge, d, place.low[d]);
    if (place.low[d] + shape[d] < extent)
      demand(arith::CmpIPredicate::slt, d, place.low[d] + shape[d]);
  }
  return all;
}

/// Selects each element from the grid whose interior contains it; else from the first grid, or the
/// fill.
static Value choose(Operation *writer, ArrayRef<Interior> interiors, ValueRange grids,
                    TypedAttr fill) {
  OpBuilder b(writer);
  Location loc = writer->getLoc();
  RankedTensorType type = typeOf(writer->getResult(0));
  SmallVector<AffineMap> maps(grids.size() + 1, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  auto body = [&](OpBuilder &body, Location, ValueRange elements) {
    Value chosen = fill ? arith::ConstantOp::create(body, loc, fill).getResult() : elements[0];
    for (size_t i = fill ? 0 : 1; i < interiors.size(); ++i)
      if (Value inside =
              isInside(body, loc, interiors[i].place, typeOf(interiors[i].value).getShape()))
        chosen = arith::SelectOp::create(body, loc, inside, elements[i], chosen);
      else
        chosen = elements[i];
    linalg::YieldOp::create(body, loc, chosen);
  };
  return linalg::GenericOp::create(b, loc, type, grids, init, maps, iterators, body).getResult(0);
}

/// The values that an op writes into a grid; the grid itself first if it is a tensor. Empty for
/// other ops.
static SmallVector<Interior> readWriter(Operation *op, TypedAttr &fill) {
  SmallVector<Interior> interiors;
  auto whole = [](Value grid) {
    return Interior{grid,
                    {SmallVector<int64_t>(typeOf(grid).getRank(), 0),
                     llvm::to_vector(typeOf(grid).getShape())}};
  };
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    Attribute constant;
    Value padding = pad.getConstantPaddingValue();
    if (!pad.getLow().empty() || !pad.getHigh().empty() || !padding ||
        !matchPattern(padding, m_Constant(&constant)))
      return {};
    fill = dyn_cast<TypedAttr>(constant);
    if (fill)
      interiors.push_back(
          {pad.getSource(),
           {llvm::to_vector(pad.getStaticLow()), llvm::to_vector(pad.getResultType().getShape())}});
  } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    if (insert.getDroppedDims().any() || !insert.getOffsets().empty() ||
        !insert.getSizes().empty() || !insert.getStrides().empty() ||
        llvm::any_of(insert.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
      return {};
    interiors = {whole(insert.getDest()),
                 {insert.getSource(),
                  {llvm::to_vector(insert.getStaticOffsets()),
                   llvm::to_vector(insert.getType().getShape())}}};
  } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    int64_t begin = 0;
    for (Value part : concat.getInputs()) {
      Interior interior{part, whole(concat.getResult()).place};
      interior.place.low[concat.getDim()] = begin;
      begin += typeOf(part).getDimSize(concat.getDim());
      interiors.push_back(interior);
    }
  }
  return interiors;
}

/// Whether an interior covers most of its grid.
static bool isMost(const Interior &interior) {
  return llvm::all_of(llvm::zip_equal(typeOf(interior.value).getShape(), interior.place.grid),
                      [](auto extents) {
                        auto [own, grid] = extents;
                        return own * kOfShare >= grid * kLeastShare;
                      });
}

static void grow(Operation *writer) {
  TypedAttr fill;
  SmallVector<Interior> interiors;
  bool isStatic = writer->getNumResults() == 1 && isPlain(writer) &&
                  llvm::all_of(writer->getOperandTypes(), [](Type type) {
                    auto tensor = dyn_cast<RankedTensorType>(type);
                    return !tensor || tensor.hasStaticShape();
                  });
  if (isStatic)
    interiors = readWriter(writer, fill);
  bool widens = llvm::all_of(interiors, [](const Interior &interior) {
    return llvm::all_of(
        llvm::zip_equal(interior.place.low, interior.place.grid, typeOf(interior.value).getShape()),
        [](auto dim) {
          auto [low, grid, own] = dim;
          return low >= 0 && low + own <= grid;
        });
  });
  if (!widens || llvm::none_of(interiors, isMost))
    return;
  Growth growth(writer);
  for (const Interior &interior : interiors)
    if (!growth.collect(interior.value, interior.place))
      return;
  if (!growth.isWorthwhile())
    return;
  SmallVector<Value> grids = llvm::map_to_vector(interiors, [&](const Interior &interior) {
    return growth.write(interior.value, interior.place);
  });
  writer->getResult(0).replaceAllUsesWith(choose(writer, interiors, grids, fill));
  writer->erase();
}

void dist::growInteriors(func::FuncOp function) {
  SmallVector<Operation *> writers;
  function.walk([&](Operation *op) {
    if (isa<tensor::PadOp, tensor::InsertSliceOp, tensor::ConcatOp>(op))
      writers.push_back(op);
  });
  for (Operation *writer : writers)
    grow(writer);
  // Slices and their elementwise users that are now dead, consumers first.
  SmallVector<Operation *> unused;
  function.walk([&](Operation *op) {
    if (isa<tensor::ExtractSliceOp, linalg::GenericOp>(op))
      unused.push_back(op);
  });
  for (Operation *op : llvm::reverse(unused))
    if (isOpTriviallyDead(op))
      op->erase();
}
