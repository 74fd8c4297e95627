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
// The select discards the values outside of the interior. The same holds for a concatenation
// of what is computed from parts of one value, as in rotary embeddings: only the parts that
// change places are sent. A factor that is broadcast, such as a table of sines, is padded.
//
//===----------------------------------------------------------------------===//

#include "GrowInteriors.h"

#include "PlainOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limit on the ops that compute an interior; beyond it the interior is unchanged.
static constexpr size_t kMostOps = 64;
/// Minimum share of an interior in each extent of its grid: little work is wasted.
static constexpr int64_t kLeastShare = 4, kOfShare = 5;
/// Limit on the smaller parts of a concatenation, each of which is computed for all elements.
static constexpr size_t kMostParts = 3;

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
  Growth(Operation *writer, ArrayRef<std::pair<int64_t, int64_t>> parts)
      : b(writer), writer(writer), parts(parts) {}

  /// Whether the value and all its producers can be computed for the whole grid.
  bool collect(Value value, const Place &place);
  /// Whether a collected op reads a grid, and the collected ops have no other users.
  bool isWorthwhile() const;
  Value write(Value value, const Place &place);

private:
  static bool isElementwise(linalg::GenericOp op);
  static bool isPadded(OpOperand &input, const Place &read);
  static Place placeRead(OpOperand &input, const Place &place);
  static bool isOfGrid(tensor::ExtractSliceOp slice, const Place &place);
  bool collectSlice(tensor::ExtractSliceOp slice, const Place &place);
  Value writeSlice(tensor::ExtractSliceOp slice, const Place &place);
  Value padTo(Value value, int64_t dim, int64_t low, int64_t extent);

  /// Values that are moved to different parts, by where these begin: one rearrangement.
  struct Joined {
    int64_t dim;
    std::map<int64_t, Value> values;
    Value written;
  };
  void collectMoved(Value value, const Place &place);
  Joined *findJoined(Value value, int64_t dim, int64_t low);
  Value writeJoined(Value value, int64_t dim, int64_t low);

  OpBuilder b;
  Operation *writer;
  ArrayRef<std::pair<int64_t, int64_t>> parts; ///< begin and extent; only if all are small
  SmallVector<Joined> joined;
  SmallVector<std::pair<Operation *, Place>> ops; ///< elementwise, consumers first
  bool readsGrid = false;
  bool readsBox = false; ///< whether an interior extends over several dimensions
  IRMapping written;
};

} // namespace

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isSplat(Value value) {
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat();
}

bool Growth::isElementwise(linalg::GenericOp op) {
  return op->getNumResults() == 1 && op.getNumReductionLoops() == 0 && isPlain(op) &&
         op.getIndexingMapsArray().back().isIdentity() &&
         op.getRegionOutputArgs().front().use_empty() && op.getOps<linalg::IndexOp>().empty() &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
           return map.isProjectedPermutation(/*allowZeroInResults=*/true);
         });
}

/// Whether an input is padded to the grid: the op reads it for several elements of its result, and
/// it is no slice of a grid.
bool Growth::isPadded(OpOperand &input, const Place &read) {
  auto type = dyn_cast<RankedTensorType>(input.get().getType());
  auto slice = input.get().getDefiningOp<tensor::ExtractSliceOp>();
  return type &&
         2 * type.getNumElements() <= typeOf(input.getOwner()->getResult(0)).getNumElements() &&
         !(slice && isOfGrid(slice, read));
}

/// The position of an input in what an op reads for a whole grid.
Place Growth::placeRead(OpOperand &input, const Place &place) {
  Place read;
  auto generic = cast<linalg::GenericOp>(input.getOwner());
  for (AffineExpr expr : generic.getMatchingIndexingMap(&input).getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    read.low.push_back(loop ? place.low[loop.getPosition()] : 0);
    read.grid.push_back(loop ? place.grid[loop.getPosition()] : 1);
  }
  return read;
}

bool Growth::isOfGrid(tensor::ExtractSliceOp slice, const Place &place) {
  if (slice.getDroppedDims().any() || !slice.getOffsets().empty() || !slice.getSizes().empty() ||
      !slice.getStrides().empty() || !isPlain(slice) ||
      llvm::any_of(slice.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
    return false;
  return llvm::all_of(llvm::enumerate(place.grid), [&](auto entry) {
    auto [d, extent] = entry;
    return extent == slice.getType().getDimSize(d) || extent == slice.getSourceType().getDimSize(d);
  });
}

bool Growth::collectSlice(tensor::ExtractSliceOp slice, const Place &place) {
  if (!isOfGrid(slice, place))
    return false;
  int64_t dims = 0;
  for (auto [d, extent] : llvm::enumerate(place.grid))
    dims += extent != slice.getType().getDimSize(d);
  readsGrid |= dims > 0;
  readsBox |= dims > 1;
  if (!parts.empty())
    collectMoved(slice, place);
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
  return llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
    Place read = placeRead(*input, place);
    if (isPadded(*input, read)) {
      if (!parts.empty())
        collectMoved(input->get(), read);
      return true;
    }
    return !isa<RankedTensorType>(input->get().getType()) || collect(input->get(), read);
  });
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

/// A value with zeros around it along one dimension.
Value Growth::padTo(Value value, int64_t dim, int64_t low, int64_t extent) {
  RankedTensorType type = typeOf(value);
  SmallVector<int64_t> before(type.getRank(), 0), after(type.getRank(), 0), shape(type.getShape());
  before[dim] = low;
  after[dim] = extent - low - shape[dim];
  shape[dim] = extent;
  Location loc = value.getLoc();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(b, loc, type.clone(shape), value,
                               getAsIndexOpFoldResult(b.getContext(), before),
                               getAsIndexOpFoldResult(b.getContext(), after), zero);
}

/// Notes a value that is moved to a part, along the dimension in which it is smaller than the grid.
void Growth::collectMoved(Value value, const Place &place) {
  RankedTensorType type = typeOf(value);
  for (int64_t d = 0; d < type.getRank(); ++d) {
    if (type.getDimSize(d) == place.grid[d])
      continue;
    auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
    if (slice && isOfGrid(slice, place) && slice.getStaticOffsets()[d] == place.low[d])
      continue; // is where it is needed
    auto fits = [&](const Joined &other) {
      const auto &[part, first] = *other.values.begin();
      auto otherSlice = first.getDefiningOp<tensor::ExtractSliceOp>();
      SmallVector<int64_t> shape(type.getShape()), otherShape(typeOf(first).getShape());
      if (other.dim != d || shape.size() != otherShape.size() ||
          type.getElementType() != typeOf(first).getElementType())
        return false;
      shape[d] = otherShape[d] = 0;
      return shape == otherShape && !other.values.count(place.low[d]) &&
             (slice ? otherSlice && slice.getSource() == otherSlice.getSource() : !otherSlice);
    };
    if (findJoined(value, d, place.low[d]))
      continue;
    auto *known = llvm::find_if(joined, fits);
    if (known == joined.end()) {
      joined.push_back({d, {}, {}});
      known = &joined.back();
    }
    known->values[place.low[d]] = value;
  }
}

Growth::Joined *Growth::findJoined(Value value, int64_t dim, int64_t low) {
  for (Joined &each : joined)
    if (auto it = each.values.find(low);
        each.dim == dim && it != each.values.end() && it->second == value)
      return &each;
  return nullptr;
}

/// The concatenation of the values that are moved to the parts, zeros where there is none.
Value Growth::writeJoined(Value value, int64_t dim, int64_t low) {
  Joined &each = *findJoined(value, dim, low);
  if (each.written)
    return each.written;
  SmallVector<Value> values;
  for (auto [begin, extent] : parts) {
    if (auto it = each.values.find(begin); it != each.values.end()) {
      values.push_back(it->second);
      continue;
    }
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[dim] = extent;
    RankedTensorType type = typeOf(value).clone(shape);
    values.push_back(arith::ConstantOp::create(b, value.getLoc(), b.getZeroAttr(type)));
  }
  return each.written = tensor::ConcatOp::create(b, value.getLoc(), dim, values);
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
    if (isInterior && !parts.empty())
      return writeJoined(slice, d, place.low[d]);
    offsets[d] = std::max<int64_t>(from, 0);
    shape[d] = count;
    value = tensor::ExtractSliceOp::create(b, loc, value,
                                           getAsIndexOpFoldResult(b.getContext(), offsets),
                                           getAsIndexOpFoldResult(b.getContext(), shape),
                                           getAsIndexOpFoldResult(b.getContext(), strides));
    if (isInterior)
      value = padTo(value, d, std::max<int64_t>(-from, 0), place.grid[d]);
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
      Value read = input->get();
      Place at = placeRead(*input, place);
      if (isPadded(*input, at)) {
        for (int64_t d = 0; d < typeOf(read).getRank(); ++d)
          if (typeOf(read).getDimSize(d) != at.grid[d])
            read = parts.empty() ? padTo(read, d, at.low[d], at.grid[d])
                                 : writeJoined(read, d, at.low[d]);
      } else if (isa<RankedTensorType>(read.getType())) {
        read = write(read, at);
      }
      inputs.push_back(read);
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
  SmallVector<std::pair<int64_t, int64_t>> parts;
  if (!widens)
    return;
  if (llvm::none_of(interiors, isMost)) {
    auto concat = dyn_cast<tensor::ConcatOp>(writer);
    if (!concat || interiors.size() > kMostParts)
      return;
    for (const Interior &part : interiors)
      parts.push_back(
          {part.place.low[concat.getDim()], typeOf(part.value).getDimSize(concat.getDim())});
  }
  Growth growth(writer, parts);
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
