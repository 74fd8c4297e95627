//===- PartOrder.cpp - Rows of several parts in turn ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartOrder.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static int64_t extentOf(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

SmallVector<ReassociationIndices> dist::groupsOfSplit(int64_t rank, int64_t dim) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < rank; ++d) {
    groups.push_back({d + (d > dim)});
    if (d == dim)
      groups.back().push_back(d + 1);
  }
  return groups;
}

/// A tensor with a dimension in two, of which the first has extent `outer`.
static Value expand(OpBuilder &b, Location loc, Value value, int64_t dim, int64_t outer) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= outer;
  shape.insert(shape.begin() + dim, outer);
  return tensor::ExpandShapeOp::create(b, loc, type.clone(shape), value,
                                       groupsOfSplit(type.getRank(), dim));
}

static Value collapse(OpBuilder &b, Location loc, Value value, int64_t dim) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank() - 1;
  return tensor::CollapseShapeOp::create(b, loc, value, groupsOfSplit(rank, dim));
}

int64_t PartOrder::total() const {
  return llvm::sum_of(counts, int64_t(0));
}

int64_t PartOrder::offsetOf(size_t part) const {
  return llvm::sum_of(ArrayRef(counts).take_front(part), int64_t(0));
}

bool PartOrder::isUniform() const {
  return llvm::all_equal(counts) && counts.front() == 1;
}

std::optional<size_t> PartOrder::partAt(int64_t offset, int64_t size) const {
  for (size_t part = 0; part < counts.size(); ++part)
    if (offsetOf(part) * rows == offset && counts[part] * rows == size)
      return part;
  return std::nullopt;
}

Value PartOrder::convert(OpBuilder &b, Value value, int64_t dim, int64_t lead, bool toTurns) const {
  Location loc = value.getLoc();
  bool hasTail = extentOf(value, dim) != lead * size();
  if (lead != 1)
    value = expand(b, loc, value, dim, lead);
  int64_t parts = lead != 1 ? dim + 1 : dim;
  if (hasTail)
    value = expand(b, loc, value, parts, size());
  SmallVector<int64_t> segments;
  for (auto [part, count] : llvm::enumerate(counts))
    for (int64_t element = 0; element < count; ++element) {
      int64_t natural = offsetOf(part) * rows + element, turn = offsetOf(part) + element;
      if (toTurns)
        segments.append({natural, count, turn, total(), rows});
      else
        segments.append({turn, total(), natural, count, rows});
    }
  SmallVector<Value> inputs(total(), value);
  Value moved = RearrangeOp::create(b, loc, value.getType(), inputs, parts, segments, TypedAttr());
  if (hasTail)
    moved = collapse(b, loc, moved, parts);
  return lead != 1 ? collapse(b, loc, moved, dim) : moved;
}

Value PartOrder::join(OpBuilder &b, Location loc, ValueRange parts, int64_t dim) const {
  auto shares =
      llvm::map_to_vector(parts, [&](Value part) { return expand(b, loc, part, dim, rows); });
  return collapse(b, loc, tensor::ConcatOp::create(b, loc, dim + 1, shares), dim);
}

Value PartOrder::pad(OpBuilder &b, Location loc, Value value, size_t part, int64_t dim,
                     int64_t tail, Value padding) const {
  Value share = expand(b, loc, value, dim, rows);
  auto type = cast<RankedTensorType>(share.getType());
  SmallVector<int64_t> low(type.getRank(), 0), high(type.getRank(), 0), shape(type.getShape());
  low[dim + 1] = offsetOf(part) * tail;
  high[dim + 1] = (total() - counts[part]) * tail - low[dim + 1];
  shape[dim + 1] = total() * tail;
  MLIRContext *context = b.getContext();
  return collapse(b, loc,
                  tensor::PadOp::create(b, loc, type.clone(shape), share,
                                        getAsIndexOpFoldResult(context, low),
                                        getAsIndexOpFoldResult(context, high), padding),
                  dim);
}

Value PartOrder::partOf(OpBuilder &b, Location loc, Value value, size_t part, int64_t dim) const {
  int64_t tail = extentOf(value, dim) / size();
  Value wide = expand(b, loc, value, dim, rows);
  auto type = cast<RankedTensorType>(wide.getType());
  SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1);
  SmallVector<int64_t> sizes(type.getShape());
  offsets[dim + 1] = offsetOf(part) * tail;
  sizes[dim + 1] = counts[part] * tail;
  MLIRContext *context = b.getContext();
  return collapse(b, loc,
                  tensor::ExtractSliceOp::create(b, loc, type.clone(sizes), wide,
                                                 getAsIndexOpFoldResult(context, offsets),
                                                 getAsIndexOpFoldResult(context, sizes),
                                                 getAsIndexOpFoldResult(context, strides)),
                  dim);
}

namespace {
/// Arithmetic on indices.
struct Indices {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) const { return arith::ConstantIndexOp::create(b, loc, value); }
  Value divided(Value value, int64_t by) const {
    return by == 1 ? value : arith::DivUIOp::create(b, loc, value, constant(by)).getResult();
  }
  Value remainder(Value value, int64_t by) const {
    return by == 1 ? constant(0) : arith::RemUIOp::create(b, loc, value, constant(by)).getResult();
  }
  Value scaled(Value value, int64_t by, Value plus) const {
    Value product =
        by == 1 ? value : arith::MulIOp::create(b, loc, value, constant(by)).getResult();
    return arith::AddIOp::create(b, loc, product, plus);
  }
  Value plus(Value value, int64_t shift) const {
    return shift == 0 ? value : arith::AddIOp::create(b, loc, value, constant(shift)).getResult();
  }
  Value chosen(arith::CmpIPredicate predicate, Value value, int64_t bound, Value then,
               Value otherwise) const {
    Value holds = arith::CmpIOp::create(b, loc, predicate, value, constant(bound));
    return arith::SelectOp::create(b, loc, holds, then, otherwise);
  }
};
} // namespace

Value PartOrder::naturalIndex(OpBuilder &b, Location loc, Value index, int64_t tail) const {
  Indices at{b, loc};
  Value run = at.divided(index, tail);
  Value row = at.divided(run, total()), turn = at.remainder(run, total());
  Value natural;
  if (isUniform()) {
    natural = at.scaled(turn, rows, row);
  } else {
    // Part p begins at offset(p) * rows, and row q at q * count(p) in it.
    for (size_t part = 0; part < counts.size(); ++part) {
      Value inPart = at.scaled(row, counts[part], at.plus(turn, offsetOf(part) * (rows - 1)));
      natural = natural
                    ? at.chosen(arith::CmpIPredicate::uge, turn, offsetOf(part), inPart, natural)
                    : inPart;
    }
  }
  return tail == 1 ? natural : at.scaled(natural, tail, at.remainder(index, tail));
}

Value PartOrder::turnOf(OpBuilder &b, Location loc, Value index, int64_t tail) const {
  Indices at{b, loc};
  Value run = at.divided(index, tail);
  Value turn;
  for (size_t part = 0; part < counts.size(); ++part) {
    // Of a uniform order every part has the same formula.
    int64_t begin = offsetOf(part) * rows;
    Value inPart = at.plus(run, -begin);
    Value inTurn = isUniform()
                       ? at.scaled(at.remainder(run, rows), total(), at.divided(run, rows))
                       : at.scaled(at.divided(inPart, counts[part]), total(),
                                   at.plus(at.remainder(inPart, counts[part]), offsetOf(part)));
    turn = turn ? at.chosen(arith::CmpIPredicate::uge, run, begin, inTurn, turn) : inTurn;
    if (isUniform())
      break;
  }
  if (tail != 1)
    turn = at.scaled(turn, tail, at.remainder(index, tail));
  return at.chosen(arith::CmpIPredicate::ult, index, size() * tail, turn, index);
}
