//===- BlockShifts.cpp - Shifts of a value by blocks ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stencil with corners, written as rolls, moves a face of the grid for each of them:
//
//   sum of roll(u, (a, b), (0, 1)), a and b in -1 .. 1     u is cut in p x q blocks
//
// Instead, each block gets a border, first along dimension 0, then, of blocks with that
// border, along dimension 1. So what is beyond a corner is sent with a face:
//
//   B = u as p x n x q x m
//   B = concat(last rows of the block before, B, first rows of the block behind)
//   B = the same along dimension 1: p x (n + 2) x q x (m + 2)
//   roll(u, (a, b), (0, 1)) = B[:, 1 - a : n + 1 - a, :, 1 - b : m + 1 - b]
//
// Likewise shifts by several distances along one dimension: the widest border contains
// the others. Shifts that fill with a constant get it at the outer blocks.
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/BlockShifts.h"

#include "ConnectedDims.h"
#include "Pieces.h"
#include "PlainOps.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTBLOCKSHIFTS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::Segment;

namespace {

/// A move of all elements by one distance along a dimension: element i of the result is element
/// i - by of the source, around the ends, or `fill` beyond them.
struct Move {
  Value source;
  int64_t dim = 0, by = 0;
  TypedAttr fill; ///< null around the ends
};

/// A value that was moved along some dimensions, each once.
struct Shift {
  Value base;
  SmallVector<int64_t> by;     ///< by dimension
  SmallVector<TypedAttr> fill; ///< by dimension
};

/// The shifts of one value.
struct Shifted {
  SmallVector<std::pair<RearrangeOp, Shift>> reads; ///< in the order of the program
};

class BlockShifter {
public:
  BlockShifter(Value base, Shifted &shifted, const ConnectedDims &dims)
      : base(base), type(cast<RankedTensorType>(base.getType())), shifted(shifted), dims(dims) {}

  bool run();

private:
  bool choose();
  void write(ArrayRef<int64_t> along);
  Value border(OpBuilder &b, Value blocks, int64_t dim, bool isBefore, int64_t count);
  int64_t sizeOf(int64_t dim) const { return type.getDimSize(dim) / parts[dim]; }
  /// The position of a dimension among those of the blocks; its parts are in front of it.
  int64_t placeOf(int64_t dim) const {
    return dim + llvm::count_if(ArrayRef(parts).take_front(dim + 1),
                                [](int64_t count) { return count > 1; });
  }

  Value base;
  RankedTensorType type;
  Shifted &shifted;
  const ConnectedDims &dims;
  SmallVector<int64_t> parts;               ///< by dimension
  SmallVector<int64_t> before, after;       ///< by dimension: rows of the border
  SmallVector<TypedAttr> fill;              ///< by dimension
  SmallVector<SmallVector<int64_t>> groups; ///< dimensions whose borders are made together
};

} // namespace

static std::optional<Move> readMove(RearrangeOp op) {
  Pieces pieces = readPieces(op);
  Move move{onlySource(pieces), pieces.dim, 0, pieces.fill};
  if (!move.source || move.source.getType() != op.getType() || !isPlain(op))
    return std::nullopt;
  int64_t extent = op.getType().getDimSize(pieces.dim);
  auto is = [](const Segment &segment, int64_t from, int64_t to, int64_t count) {
    return segment.from == from && segment.to == to && segment.count == count &&
           segment.fromStep == 1 && segment.toStep == 1;
  };
  const Segment &first = pieces.segments[0].second;
  if (pieces.segments.size() == 1 && pieces.fill) {
    move.by = first.to - first.from;
    int64_t distance = std::abs(move.by);
    if (move.by == 0 || !is(first, std::max<int64_t>(-move.by, 0), std::max<int64_t>(move.by, 0),
                            extent - distance))
      return std::nullopt;
    return move;
  }
  if (pieces.segments.size() != 2 || pieces.fill)
    return std::nullopt;
  const Segment &second = pieces.segments[1].second;
  const Segment &low = first.to == 0 ? first : second, &high = first.to == 0 ? second : first;
  int64_t by = low.count;
  if (!is(low, extent - by, 0, by) || !is(high, 0, by, extent - by))
    return std::nullopt;
  move.by = by <= extent / 2 ? by : by - extent;
  return move;
}

/// Which borders to make: for shifts along several dimensions those of all; else of dimensions with
/// several distances in one direction.
bool BlockShifter::choose() {
  int64_t rank = type.getRank();
  before.assign(rank, 0);
  after.assign(rank, 0);
  fill.assign(rank, {});
  parts.assign(rank, 1);
  SmallVector<bool> isShifted(rank, false), isNested(rank, false);
  bool isDiagonal = false;
  for (auto &[op, shift] : shifted.reads) {
    int64_t along = 0;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t by = shift.by[d];
      if (by == 0)
        continue;
      if (isShifted[d] && fill[d] != shift.fill[d])
        return false;
      fill[d] = shift.fill[d];
      isShifted[d] = true;
      int64_t &most = by > 0 ? before[d] : after[d];
      isNested[d] = isNested[d] || (most != 0 && most != std::abs(by));
      most = std::max(most, std::abs(by));
      ++along;
    }
    isDiagonal |= along > 1;
  }
  bool isCut = false;
  SmallVector<int64_t> all;
  TypedAttr constant;
  for (int64_t d = 0; d < rank; ++d) {
    if (!isShifted[d])
      continue;
    // Corners beyond two ends have the constant of the last shift, borders that of the last
    // dimension.
    if (isDiagonal && fill[d] && constant && fill[d] != constant)
      return false;
    constant = fill[d] ? fill[d] : constant;
    parts[d] = dims.partsOf({base, d});
    if (type.getDimSize(d) % parts[d] != 0 || std::max(before[d], after[d]) > sizeOf(d))
      return false;
    all.push_back(d);
    isCut |= parts[d] > 1;
    if (!isDiagonal && isNested[d] && parts[d] > 1)
      groups.push_back({d});
  }
  if (isDiagonal && isCut)
    groups.push_back(all);
  return !groups.empty();
}

/// The last rows of the block before each block, or the first rows of the one behind.
Value BlockShifter::border(OpBuilder &b, Value blocks, int64_t dim, bool isBefore, int64_t count) {
  Location loc = base.getLoc();
  auto from = cast<RankedTensorType>(blocks.getType());
  int64_t place = placeOf(dim), n = parts[dim];
  SmallVector<int64_t> shape(from.getShape());
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      strides(shape.size(), b.getIndexAttr(1));
  offsets[place] = b.getIndexAttr(isBefore ? shape[place] - count : 0);
  shape[place] = count;
  RankedTensorType rows = from.clone(shape);
  if (n == 1 && fill[dim])
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(rows, Attribute(fill[dim])));
  Value own = tensor::ExtractSliceOp::create(
      b, loc, rows, blocks, offsets, getAsIndexOpFoldResult(b.getContext(), shape), strides);
  if (n == 1)
    return own;
  SmallVector<Value> inputs{own};
  SmallVector<int64_t> segments =
      isBefore ? SmallVector<int64_t>{0, 1, 1, 1, n - 1} : SmallVector<int64_t>{1, 1, 0, 1, n - 1};
  if (!fill[dim]) {
    inputs.push_back(own);
    llvm::append_range(segments, isBefore ? ArrayRef<int64_t>{n - 1, 1, 0, 1, 1}
                                          : ArrayRef<int64_t>{0, 1, n - 1, 1, 1});
  }
  return RearrangeOp::create(b, loc, rows, inputs, place - 1, segments, fill[dim]);
}

/// Makes blocks with borders along some dimensions, and the shifts along these alone as slices.
void BlockShifter::write(ArrayRef<int64_t> along) {
  int64_t rank = type.getRank();
  SmallVector<int64_t> all = parts;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(along, d))
      parts[d] = 1; // stays one dimension
  OpBuilder b(base.getContext());
  b.setInsertionPointAfterValue(base);
  Location loc = base.getLoc();
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> dimsOf;
  for (int64_t d = 0; d < rank; ++d) {
    ReassociationIndices group;
    if (parts[d] > 1) {
      group.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(parts[d]);
    }
    group.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(sizeOf(d));
    dimsOf.push_back(std::move(group));
  }
  RankedTensorType blocked = type.clone(shape);
  Value blocks = tensor::ExpandShapeOp::create(b, loc, blocked, base, dimsOf);
  for (int64_t d : along) {
    SmallVector<Value> pieces;
    if (before[d] > 0)
      pieces.push_back(border(b, blocks, d, /*isBefore=*/true, before[d]));
    pieces.push_back(blocks);
    if (after[d] > 0)
      pieces.push_back(border(b, blocks, d, /*isBefore=*/false, after[d]));
    blocks = tensor::ConcatOp::create(b, loc, placeOf(d), pieces);
  }
  SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(b.getContext(), shape),
                            strides(shape.size(), b.getIndexAttr(1));
  for (auto &[op, shift] : shifted.reads) {
    bool isHere = op && llvm::all_of(llvm::seq<int64_t>(0, rank), [&, &by = shift.by](int64_t d) {
                    return by[d] == 0 || llvm::is_contained(along, d);
                  });
    if (!isHere)
      continue;
    SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0));
    for (int64_t d : along)
      offsets[placeOf(d)] = b.getIndexAttr(before[d] - shift.by[d]);
    OpBuilder at(op);
    Value part =
        tensor::ExtractSliceOp::create(at, op.getLoc(), blocked, blocks, offsets, sizes, strides);
    op.replaceAllUsesWith(
        tensor::CollapseShapeOp::create(at, op.getLoc(), type, part, dimsOf).getResult());
    op.erase();
    op = {};
  }
  parts = std::move(all);
}

bool BlockShifter::run() {
  if (!choose())
    return false;
  for (ArrayRef<int64_t> along : groups)
    write(along);
  return true;
}

bool dist::blockShifts(ModuleOp module) {
  MeshTable meshes(module);
  bool isBlocked = false;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (meshes.empty() || function.isDeclaration() || isLocalView(function))
      continue;
    DenseMap<Value, Shift> shifts; // looked up only
    llvm::MapVector<Value, Shifted> values;
    function.walk([&](RearrangeOp op) {
      std::optional<Move> move = readMove(op);
      if (!move)
        return;
      auto known = shifts.find(move->source);
      Shift shift;
      if (known != shifts.end() && known->second.by[move->dim] == 0) {
        shift = known->second;
      } else {
        size_t rank = op.getType().getRank();
        shift = {move->source, SmallVector<int64_t>(rank, 0), SmallVector<TypedAttr>(rank)};
      }
      shift.by[move->dim] = move->by;
      shift.fill[move->dim] = move->fill;
      values[shift.base].reads.push_back({op, shift});
      shifts[op.getResult()] = std::move(shift);
    });
    if (llvm::none_of(values, [](auto &each) { return each.second.reads.size() > 1; }))
      continue;
    std::optional<ConnectedDims> dims = ConnectedDims::of(function, meshes);
    if (!dims)
      continue;
    for (auto &[base, shifted] : llvm::reverse(values)) // a shift may be a base itself
      isBlocked |= shifted.reads.size() > 1 && BlockShifter(base, shifted, *dims).run();
  }
  return isBlocked;
}

namespace {
struct DistBlockShifts : dist::impl::DistBlockShiftsBase<DistBlockShifts> {
  void runOnOperation() override { blockShifts(getOperation()); }
};
} // namespace
