//===- MoveKinds.cpp - Moves along a dimension, and by indices ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Slices, pads, concatenations and reversals as frontends write them, several for one
// move: the move into which the compiler fuses them must be equivalent.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera::fuzz;

/// `count` elements of one dimension, from `first` with a stride.
static Value slice(ProgramBuilder &p, Value x, int64_t dim, int64_t first, int64_t count,
                   int64_t step = 1) {
  auto type = cast<RankedTensorType>(x.getType());
  Shape shape(type.getShape());
  SmallVector<OpFoldResult> offsets(type.getRank(), p.b.getIndexAttr(0)), sizes;
  SmallVector<OpFoldResult> strides(type.getRank(), p.b.getIndexAttr(1));
  offsets[dim] = p.b.getIndexAttr(first);
  strides[dim] = p.b.getIndexAttr(step);
  shape[dim] = count;
  for (int64_t size : shape)
    sizes.push_back(p.b.getIndexAttr(size));
  return tensor::ExtractSliceOp::create(
      p.b, p.loc, RankedTensorType::get(shape, type.getElementType()), x, offsets, sizes, strides);
}

static Value padded(ProgramBuilder &p, Value x, int64_t dim, int64_t before, int64_t after,
                    double fill) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<OpFoldResult> low(type.getRank(), p.b.getIndexAttr(0)), high = low;
  low[dim] = p.b.getIndexAttr(before);
  high[dim] = p.b.getIndexAttr(after);
  Shape shape(type.getShape());
  shape[dim] += before + after;
  return tensor::PadOp::create(p.b, p.loc, RankedTensorType::get(shape, type.getElementType()), x,
                               low, high, p.constant(type.getElementType(), fill));
}

static Value reversed(ProgramBuilder &p, const Entry &x, int64_t dim) {
  AffineMap identity = p.b.getMultiDimIdentityMap(x.rank());
  SmallVector<AffineExpr> exprs(identity.getResults());
  exprs[dim] = x.shape()[dim] - 1 - exprs[dim];
  return p.generic({x}, p.empty(x.shape(), x.element()),
                   {AffineMap::get(x.rank(), 0, exprs, p.b.getContext()), identity},
                   SmallVector<bool>(x.rank(), false),
                   [](OpBuilder &, ValueRange args) { return args[0]; });
}

static bool isLong(const Entry &entry, int64_t dim) {
  return entry.shape()[dim] > 1;
}

static bool roll(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  int64_t dim = x.value ? p.random.between(0, x.rank() - 1) : 0;
  if (!x.value || !isLong(x, dim))
    return false;
  int64_t extent = x.shape()[dim], by = p.random.between(1, extent - 1);
  Value front = slice(p, x.value, dim, extent - by, by),
        back = slice(p, x.value, dim, 0, extent - by);
  p.pushLike(tensor::ConcatOp::create(p.b, p.loc, dim, ValueRange{front, back}), x);
  return true;
}

/// Element i - by of a value at i, around the ends or filled with zeros.
static Value shiftedBy(ProgramBuilder &p, Value x, int64_t dim, int64_t by, bool isRoll) {
  int64_t extent = cast<RankedTensorType>(x.getType()).getDimSize(dim);
  if (by == 0 || std::abs(by) >= extent)
    return x;
  if (!isRoll)
    return padded(p, slice(p, x, dim, std::max<int64_t>(-by, 0), extent - std::abs(by)), dim,
                  std::max<int64_t>(by, 0), std::max<int64_t>(-by, 0), 0);
  int64_t front = by > 0 ? by : extent + by;
  return tensor::ConcatOp::create(
      p.b, p.loc, dim,
      ValueRange{slice(p, x, dim, extent - front, front), slice(p, x, dim, 0, extent - front)});
}

/// The sum of several shifts of a value along two dimensions, often of extents that devices divide.
static bool stencil(ProgramBuilder &p) {
  Entry x = p.any(2, 3, [](const Entry &entry) { return !entry.element().isInteger(1); });
  if (!x.value)
    return false;
  if (p.random.percent(70)) {
    Shape extended(x.shape());
    extended[0] = 4 * p.random.between(1, 2);
    extended[1] = 12;
    x = p.fresh(extended, x.element());
  }
  x = p.within(x, 1);
  bool isRoll = p.random.percent(60);
  int64_t count = p.random.between(2, 5), first = p.random.between(0, x.rank() - 2);
  Value sum = x.value;
  for (int64_t i = 0; i < count; ++i) {
    Value moved = x.value;
    for (int64_t dim : {first, first + 1})
      moved = shiftedBy(p, moved, dim, p.random.between(-2, 2), isRoll);
    sum = x.isFloat() ? arith::AddFOp::create(p.b, p.loc, sum, moved).getResult()
                      : arith::AddIOp::create(p.b, p.loc, sum, moved).getResult();
  }
  double bound = static_cast<double>(count + 1) * x.magnitude();
  p.push(sum, -bound, bound, x.exact && !x.isFloat(), x.steps + count);
  return true;
}

/// A shift with another value at the end: a pad and a slice of it.
static bool shift(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  int64_t dim = x.value ? p.random.between(0, x.rank() - 1) : 0;
  if (!x.value || !isLong(x, dim))
    return false;
  int64_t extent = x.shape()[dim], by = p.random.between(1, extent - 1);
  bool forward = p.random.percent(50);
  double fill = p.random.percent(60) ? 0 : 3;
  Value wide = padded(p, x.value, dim, forward ? by : 0, forward ? 0 : by, fill);
  Value value = slice(p, wide, dim, forward ? 0 : by, extent);
  p.pushLike(value, {x, Entry{value, 0, 3}});
  return true;
}

static bool reverseMap(ProgramBuilder &p) {
  Entry x = p.any(1, 4);
  if (!x.value)
    return false;
  int64_t dim = p.random.between(0, x.rank() - 1);
  Entry back{reversed(p, x, dim), x.low, x.high, x.exact, x.mesh, x.steps};
  if (p.random.percent(30)) // also another dimension, or part of the same
    back.value = p.random.percent(50)
                     ? reversed(p, back, p.random.between(0, x.rank() - 1))
                     : slice(p, back.value, dim, 0, p.random.between(1, x.shape()[dim]));
  p.pushLike(back.value, x);
  return true;
}

/// Strided runs of several values, concatenated.
static bool splice(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  int64_t dim = p.random.between(0, x.rank() - 1);
  SmallVector<Entry> parts;
  SmallVector<Value> values;
  for (int64_t n = p.random.between(2, 3); n > 0; --n) {
    Shape shape(x.shape());
    shape[dim] = p.random.between(1, 9);
    Entry part = p.random.percent(50) ? x : p.ofType(shape, x.element());
    int64_t extent = part.shape()[dim], first = p.random.between(0, extent - 1);
    int64_t step = p.random.percent(70) ? 1 : p.random.between(1, 3);
    int64_t most = (extent - first - 1) / step + 1;
    parts.push_back(part);
    values.push_back(slice(p, part.value, dim, first, p.random.between(1, most), step));
  }
  if (p.random.percent(30)) {
    Shape shape(x.shape());
    shape[dim] = p.random.between(1, 3);
    values.insert(values.begin() + p.random.between(0, static_cast<int64_t>(values.size())),
                  p.splat(shape, x.element(), 0));
  }
  Value all = tensor::ConcatOp::create(p.b, p.loc, dim, values);
  parts.push_back(Entry{all, 0, 0});
  p.pushLike(all, parts);
  return true;
}

/// Two interleaved values: each padded between its elements, then added.
static bool interleave(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value || x.element().isInteger(1))
    return false;
  Entry y = p.ofType(x.shape(), x.element());
  int64_t dim = p.random.between(0, x.rank() - 1);
  Shape shape(x.shape());
  shape[dim] *= 2;
  auto spread = [&](const Entry &entry, int64_t first) {
    SmallVector<OpFoldResult> offsets(x.rank(), p.b.getIndexAttr(0)), sizes;
    SmallVector<OpFoldResult> strides(x.rank(), p.b.getIndexAttr(1));
    offsets[dim] = p.b.getIndexAttr(first);
    strides[dim] = p.b.getIndexAttr(2);
    for (int64_t size : x.shape())
      sizes.push_back(p.b.getIndexAttr(size));
    return tensor::InsertSliceOp::create(p.b, p.loc, entry.value, p.splat(shape, x.element(), 0),
                                         offsets, sizes, strides)
        .getResult();
  };
  Value even = spread(x, 0), odd = spread(y, 1);
  AffineMap identity = p.b.getMultiDimIdentityMap(x.rank());
  Value sum = p.generic(
      {Entry{even}, Entry{odd}}, p.empty(shape, x.element()), {identity, identity, identity},
      SmallVector<bool>(x.rank(), false), [&](OpBuilder &b, ValueRange args) {
        return x.isFloat() ? arith::AddFOp::create(b, p.loc, args[0], args[1]).getResult()
                           : arith::AddIOp::create(b, p.loc, args[0], args[1]).getResult();
      });
  p.pushLike(sum, {x, y, Entry{sum, 0, 0}});
  return true;
}

/// An index known only at run time, inside of `extent` or slightly outside.
static Value dynamicIndex(ProgramBuilder &p, int64_t extent) {
  Entry index = p.pin(p.fresh({}, p.b.getI64Type(), -2, extent + 2));
  Value scalar = tensor::ExtractOp::create(p.b, p.loc, index.value, ValueRange{});
  return arith::IndexCastOp::create(p.b, p.loc, p.b.getIndexType(), scalar);
}

/// A box of `shape` whose offset is known only at run time in some dimensions.
static Shape dynamicBox(ProgramBuilder &p, ArrayRef<int64_t> shape,
                        SmallVector<OpFoldResult> &offsets, SmallVector<OpFoldResult> &sizes,
                        SmallVector<OpFoldResult> &strides) {
  Shape extents;
  int64_t always = p.random.between(0, static_cast<int64_t>(shape.size()) - 1);
  for (auto [d, extent] : llvm::enumerate(shape)) {
    bool moves = static_cast<int64_t>(d) == always || p.random.percent(20);
    int64_t size = moves ? p.random.between(1, extent) : extent;
    offsets.push_back(moves ? OpFoldResult(dynamicIndex(p, extent))
                            : OpFoldResult(p.b.getIndexAttr(0)));
    sizes.push_back(p.b.getIndexAttr(size));
    strides.push_back(p.b.getIndexAttr(1));
    extents.push_back(size);
  }
  return extents;
}

static bool dynamicSlice(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  SmallVector<OpFoldResult> offsets, sizes, strides;
  Shape shape = dynamicBox(p, x.shape(), offsets, sizes, strides);
  auto type = RankedTensorType::get(shape, x.element());
  p.pushLike(tensor::ExtractSliceOp::create(p.b, p.loc, type, x.value, offsets, sizes, strides), x);
  return true;
}

static bool dynamicUpdate(ProgramBuilder &p) {
  Entry into = p.any(1, 3);
  if (!into.value)
    return false;
  SmallVector<OpFoldResult> offsets, sizes, strides;
  Shape shape = dynamicBox(p, into.shape(), offsets, sizes, strides);
  Entry x = p.ofType(shape, into.element());
  p.pushLike(
      tensor::InsertSliceOp::create(p.b, p.loc, x.value, into.value, offsets, sizes, strides),
      {x, into});
  return true;
}

void tessera::fuzz::addMoveKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"roll", 3, roll});
  kinds.push_back({"shift", 3, shift});
  kinds.push_back({"stencil", 2, stencil});
  kinds.push_back({"reverse-map", 3, reverseMap});
  kinds.push_back({"splice", 3, splice});
  kinds.push_back({"interleave", 2, interleave});
  kinds.push_back({"dynamic-slice", 4, dynamicSlice});
  kinds.push_back({"dynamic-update", 4, dynamicUpdate});
}
