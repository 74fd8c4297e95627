//===- IndexKinds.cpp - Gathers, masks, single elements -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera::fuzz;

/// Indices of a dimension, some of them sometimes out of bounds.
static Entry indices(ProgramBuilder &p, ArrayRef<int64_t> shape, int64_t extent) {
  Type type = p.random.percent(50) ? Type(p.b.getI32Type()) : Type(p.b.getI64Type());
  int64_t beyond = p.random.between(0, 2);
  return p.pin(p.fresh(shape, type, -beyond, extent + beyond));
}

/// Reads rows of a table by an index tensor, inside a generic: an embedding.
static bool gatherGeneric(ProgramBuilder &p) {
  Entry table = p.any(1, 2);
  if (!table.value)
    return false;
  Shape shape = p.anyShape(p.random.between(1, 2));
  Entry rows = indices(p, shape, table.shape()[0]);
  int64_t rowRank = rows.rank();
  if (table.rank() == 2)
    shape.push_back(table.shape()[1]);
  int64_t loops = static_cast<int64_t>(shape.size());
  SmallVector<AffineExpr> dims;
  for (int64_t d = 0; d < rowRank; ++d)
    dims.push_back(p.b.getAffineDimExpr(d));
  Value result = p.generic(
      {rows}, p.empty(shape, table.element()),
      {AffineMap::get(loops, 0, dims, p.b.getContext()), p.b.getMultiDimIdentityMap(loops)},
      SmallVector<bool>(loops, false), [&](OpBuilder &b, ValueRange args) {
        SmallVector<Value> index{arith::IndexCastOp::create(b, p.loc, b.getIndexType(), args[0])};
        if (table.rank() == 2)
          index.push_back(linalg::IndexOp::create(b, p.loc, loops - 1));
        return tensor::ExtractOp::create(b, p.loc, table.value, index).getResult();
      });
  p.pushLike(result, table);
  return true;
}

static bool gather(ProgramBuilder &p) {
  Entry table = p.any(1, 3);
  if (!table.value)
    return false;
  int64_t dim = p.random.between(0, table.rank() - 1);
  int64_t count = p.random.between(1, 9);
  int64_t beyond = p.random.between(0, 2); // clamped
  Entry rows = p.pin(p.fresh({count, 1}, p.b.getIndexType(), -beyond, table.shape()[dim] + beyond));
  Shape shape{count};
  for (int64_t d = 0; d < table.rank(); ++d)
    shape.push_back(d == dim ? 1 : table.shape()[d]);
  auto type = RankedTensorType::get(shape, table.element());
  p.pushLike(tensor::GatherOp::create(p.b, p.loc, type, table.value, rows.value,
                                      p.b.getDenseI64ArrayAttr(dim)),
             table);
  return true;
}

/// Writes slices to distinct indices.
static bool scatter(ProgramBuilder &p) {
  Entry into = p.any(1, 2);
  if (!into.value)
    return false;
  int64_t count = p.random.between(1, into.shape()[0]);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < into.shape()[0]; ++i)
    places.push_back(i);
  p.random.shuffle(places);
  places.resize(count);
  auto indexType = RankedTensorType::get({count, 1}, p.b.getIndexType());
  Value indices =
      arith::ConstantOp::create(p.b, p.loc, DenseIntElementsAttr::get(indexType, places));
  Shape shape{count, 1};
  for (int64_t extent : into.shape().drop_front())
    shape.push_back(extent);
  Entry x = p.ofType(shape, into.element());
  Entry pinned = p.pin(Entry{indices});
  p.pushLike(tensor::ScatterOp::create(p.b, p.loc, into.type(), x.value, into.value, pinned.value,
                                       p.b.getDenseI64ArrayAttr(0), p.b.getUnitAttr()),
             {x, into});
  return true;
}

enum class Combiner { sum, max, min, prod, assignment };

static Value combine(OpBuilder &b, Location loc, Combiner kind, bool isFloat, Value acc, Value x) {
  switch (kind) {
  case Combiner::sum:
    return isFloat ? arith::AddFOp::create(b, loc, acc, x).getResult()
                   : arith::AddIOp::create(b, loc, acc, x).getResult();
  case Combiner::max:
    return isFloat ? arith::MaximumFOp::create(b, loc, acc, x).getResult()
                   : arith::MaxSIOp::create(b, loc, acc, x).getResult();
  case Combiner::min:
    return isFloat ? arith::MinimumFOp::create(b, loc, acc, x).getResult()
                   : arith::MinSIOp::create(b, loc, acc, x).getResult();
  case Combiner::prod:
    return isFloat ? arith::MulFOp::create(b, loc, acc, x).getResult()
                   : arith::MulIOp::create(b, loc, acc, x).getResult();
  case Combiner::assignment:
    return x;
  }
  llvm_unreachable("all kinds are listed");
}

/// What a combiner ignores, as an attribute.
static TypedAttr neutral(OpBuilder &b, Combiner kind, Type element) {
  if (auto type = dyn_cast<FloatType>(element)) {
    if (kind == Combiner::max || kind == Combiner::min)
      return b.getFloatAttr(
          type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/kind == Combiner::max));
    return b.getFloatAttr(type, kind == Combiner::prod ? 1 : 0);
  }
  unsigned width = element.getIntOrFloatBitWidth();
  APInt value(width, kind == Combiner::prod ? 1 : 0);
  if (kind == Combiner::max)
    value = APInt::getSignedMinValue(width);
  if (kind == Combiner::min)
    value = APInt::getSignedMaxValue(width);
  return b.getIntegerAttr(element, value);
}

/// Elements of x combined into others, where an index is equal to a loop: of x, a look-up, or of
/// the result, a scatter.
static bool selection(ProgramBuilder &p) {
  Entry x = p.any(1, 2);
  if (!x.value || x.element().isInteger(1) || x.element().isIndex())
    return false;
  bool isLookup = p.random.percent(50);
  auto kind = static_cast<Combiner>(p.random.between(0, isLookup ? 3 : 4));
  int64_t dim = p.random.between(0, x.rank() - 1), extent = p.random.between(1, 20);
  int64_t count = x.shape()[dim];
  if (kind == Combiner::prod)
    x = p.within(x, 1);
  if (x.element().isBF16() && count > 16)
    return false; // as in `reduce`
  // Loops: those of x, with the compared one in place of `dim`, then that of the indices.
  std::vector<int64_t> shuffled;
  for (int64_t d = 0; d <= x.rank(); ++d)
    shuffled.push_back(d);
  p.random.shuffle(shuffled);
  auto exprOf = [&](int64_t d) { return p.b.getAffineDimExpr(shuffled[d]); };
  int64_t loops = x.rank() + 1, numbered = x.rank();
  // A scatter reads x at the loop of the indices and writes at the compared one, a look-up vice
  // versa.
  SmallVector<AffineExpr> read, written;
  Shape shape(x.shape());
  shape[dim] = extent;
  for (int64_t d = 0; d < x.rank(); ++d) {
    read.push_back(exprOf(d == dim && !isLookup ? numbered : d));
    written.push_back(exprOf(d == dim && isLookup ? numbered : d));
  }
  int64_t compared = isLookup ? count : extent;
  Entry rows = indices(p, {isLookup ? extent : count}, compared);
  Entry init;
  TypedAttr none = neutral(p.b, kind, x.element());
  if (kind != Combiner::assignment && p.random.percent(60)) // of an extremum: rows may be empty
    init = {p.filled(shape, x.element(), kind == Combiner::prod ? 1 : 0), 0, 1};
  else
    init = p.ofType(shape, x.element());
  SmallVector<bool> isReduction(loops, false);
  isReduction[shuffled[isLookup ? dim : numbered]] = true;
  auto mapOf = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(loops, 0, exprs, p.b.getContext());
  };
  bool isSwapped = p.random.percent(50);
  Value result = p.generic(
      {x, rows}, init.value, {mapOf(read), mapOf({exprOf(numbered)}), mapOf(written)}, isReduction,
      [&](OpBuilder &b, ValueRange args) -> Value {
        Value loop = linalg::IndexOp::create(b, p.loc, shuffled[dim]);
        Value number = arith::IndexCastOp::create(b, p.loc, args[1].getType(), loop);
        Value here =
            isSwapped ? arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::eq, number, args[1])
                      : arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::eq, args[1], number);
        if (kind == Combiner::assignment)
          return arith::SelectOp::create(b, p.loc, here, args[0], args[2]);
        Value nothing = arith::ConstantOp::create(b, p.loc, none);
        Value term = arith::SelectOp::create(b, p.loc, here, args[0], nothing);
        return combine(b, p.loc, kind, x.isFloat(), args[2], term);
      });
  double most = std::max(x.magnitude(), init.magnitude());
  if (kind == Combiner::sum)
    most = init.magnitude() + static_cast<double>(isLookup ? 1 : count) * x.magnitude();
  else if (kind == Combiner::prod)
    most = std::max(1.0, init.magnitude());
  bool isOrdered = kind != Combiner::sum && kind != Combiner::prod;
  bool isExact = x.exact && init.exact && (!x.isFloat() || isOrdered);
  p.push(result, -most, most, isExact, std::max(x.steps, init.steps) + (isOrdered ? 0 : 1));
  return true;
}

/// Reads or adds rows of x, of rank 2, at indices: loops of indices, columns and x's or y's rows.
static Value rowsAt(ProgramBuilder &p, Entry x, Entry at, Value y, bool isLookup) {
  AffineExpr index = p.b.getAffineDimExpr(0), column = p.b.getAffineDimExpr(1);
  AffineExpr row = p.b.getAffineDimExpr(2);
  auto mapOf = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(3, 0, exprs, p.b.getContext());
  };
  return p.generic({x, at}, y,
                   {mapOf({isLookup ? row : index, column}), mapOf({index}),
                    mapOf({isLookup ? index : row, column})},
                   {!isLookup, false, isLookup}, [&](OpBuilder &b, ValueRange args) -> Value {
                     Value loop = linalg::IndexOp::create(b, p.loc, 2);
                     Value number = arith::IndexCastOp::create(b, p.loc, args[1].getType(), loop);
                     Value here =
                         arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::eq, args[1], number);
                     Value nothing = arith::ConstantOp::create(
                         b, p.loc, cast<TypedAttr>(b.getZeroAttr(x.element())));
                     Value term = arith::SelectOp::create(b, p.loc, here, args[0], nothing);
                     return combine(b, p.loc, Combiner::sum, x.isFloat(), args[2], term);
                   });
}

/// Rows of a few sums and of a table, at many indices, are added up in the table: the gradient of
/// bags of its rows. What is read may start from a choice by the index; indices of the table are
/// clamped to read and masked to write, and what is added may have another reader.
static bool bags(ProgramBuilder &p) {
  Entry table = p.any(2, 2);
  if (!table.value || table.element().isInteger(1) || table.element().isIndex() ||
      table.element().isBF16())
    return false;
  table = p.within(table, 4);
  Type element = table.element();
  int64_t height = table.shape()[0], width = table.shape()[1];
  int64_t rows = p.random.between(1, 4), count = p.random.between(6, 20);
  Entry sums = p.within(p.ofType({rows, width}, element), 4);
  Entry bag = indices(p, {count}, rows), values = indices(p, {count}, height);
  AffineMap line = p.b.getMultiDimIdentityMap(1);
  auto ofValues = [&](Entry from, Type type, auto body) {
    return Entry{
        p.generic({from}, p.empty({count}, type), {line, line}, {false},
                  [&](OpBuilder &b, ValueRange args) -> Value { return body(b, args[0]); })};
  };
  auto number = [&](OpBuilder &b, Value like, int64_t value) -> Value {
    return arith::ConstantOp::create(b, p.loc, b.getIntegerAttr(like.getType(), value));
  };
  auto isInside = [&](OpBuilder &b, Value at, int64_t extent) -> Value {
    return arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::ult, at, number(b, at, extent));
  };
  Entry clamped = ofValues(values, values.element(), [&](OpBuilder &b, Value at) -> Value {
    Value most = arith::MinSIOp::create(b, p.loc, at, number(b, at, height - 1));
    return arith::MaxSIOp::create(b, p.loc, most, number(b, at, 0));
  });
  Entry masked = ofValues(values, values.element(), [&](OpBuilder &b, Value at) -> Value {
    return arith::SelectOp::create(b, p.loc, isInside(b, at, height), at, number(b, at, -100));
  });
  Value start = p.filled({count, width}, element, 0);
  if (p.random.percent(50)) {
    Entry one = ofValues(bag, element, [&](OpBuilder &b, Value at) -> Value {
      auto constant = [&](double value) -> Value {
        return arith::ConstantOp::create(
            b, p.loc,
            sums.isFloat() ? TypedAttr(b.getFloatAttr(element, value))
                           : TypedAttr(b.getIntegerAttr(element, int64_t(value))));
      };
      return arith::SelectOp::create(b, p.loc, isInside(b, at, rows), constant(0), constant(1));
    });
    start =
        p.generic({one}, p.empty({count, width}, element),
                  {AffineMap::get(2, 0, p.b.getAffineDimExpr(0)), p.b.getMultiDimIdentityMap(2)},
                  {false, false}, [&](OpBuilder &, ValueRange args) { return args[0]; });
  }
  Value read = rowsAt(p, sums, bag, start, /*isLookup=*/true);
  double most = sums.magnitude() + 1;
  int steps = std::max(table.steps, sums.steps) + 1;
  bool isExact = table.exact && sums.exact && !sums.isFloat();
  if (p.random.percent(50)) {
    Value own = rowsAt(p, table, clamped, p.filled({count, width}, element, 0), /*isLookup=*/true);
    AffineMap all = p.b.getMultiDimIdentityMap(2);
    read = p.generic({Entry{read}, Entry{own}}, p.empty({count, width}, element), {all, all, all},
                     {false, false}, [&](OpBuilder &b, ValueRange args) {
                       return combine(b, p.loc, Combiner::sum, sums.isFloat(), args[0], args[1]);
                     });
    most += table.magnitude();
    ++steps;
  }
  if (p.random.percent(50))
    p.push(read, -most, most, isExact, steps);
  Value added = rowsAt(p, Entry{read}, masked, table.value, /*isLookup=*/false);
  most = table.magnitude() + static_cast<double>(count) * most;
  p.push(added, -most, most, isExact, steps + 1);
  return true;
}

/// A product with one-hot rows, or with their transpose.
static bool oneHot(ProgramBuilder &p) {
  int64_t rows = p.random.between(1, 12);
  int64_t classes = p.random.percent(70) ? p.random.between(4, 24) : p.random.between(60, 80);
  Type element = p.anyElement();
  if (element.isBF16())
    element = p.b.getF32Type();
  bool isTransposed = p.random.percent(50);
  Entry x = p.ofType({isTransposed ? rows : classes, p.random.between(1, 5)}, element);
  Entry numbers = indices(p, {rows}, classes);
  MLIRContext *context = p.b.getContext();
  int64_t row = isTransposed ? 1 : 0;
  Shape shape{isTransposed ? classes : rows, isTransposed ? rows : classes};
  Value hot = p.generic(
      {numbers}, p.empty(shape, element),
      {AffineMap::get(2, 0, p.b.getAffineDimExpr(row), context), p.b.getMultiDimIdentityMap(2)},
      SmallVector<bool>(2, false), [&](OpBuilder &b, ValueRange args) -> Value {
        Value loop = linalg::IndexOp::create(b, p.loc, 1 - row);
        Value number = arith::IndexCastOp::create(b, p.loc, args[0].getType(), loop);
        Value here = arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::eq, args[0], number);
        if (x.isFloat())
          return arith::UIToFPOp::create(b, p.loc, element, here);
        return arith::ExtUIOp::create(b, p.loc, element, here);
      });
  Value init = p.filled({shape[0], x.shape()[1]}, element, 0);
  Value result = linalg::MatmulOp::create(p.b, p.loc, TypeRange(init.getType()),
                                          ValueRange{hot, x.value}, ValueRange(init))
                     .getResult(0);
  double most = static_cast<double>(isTransposed ? rows : 1) * x.magnitude();
  p.push(result, -most, most, x.exact && !x.isFloat(), x.steps + 1);
  return true;
}

/// Rows times the matrix of their group, or for each group the sum of outer products of its rows;
/// large enough for blocks of rows.
static bool groupedProduct(ProgramBuilder &p) {
  Type element = p.anyElement();
  if (element.isInteger(1) || element.isIndex() || element.isBF16())
    element = p.b.getF32Type();
  int64_t rows = p.random.between(24, 48), depth = p.random.between(20, 32);
  int64_t columns = p.random.between(24, 40), groups = p.random.between(1, 9);
  bool isSum = p.random.percent(40);
  Entry x = p.fresh({rows, depth}, element);
  Entry y = p.fresh(isSum ? Shape{rows, columns} : Shape{groups, depth, columns}, element);
  Entry numbers = indices(p, {rows}, groups);
  std::vector<int64_t> shuffled{0, 1, 2, 3}; // loops of rows, depth, columns, groups
  p.random.shuffle(shuffled);
  auto mapOf = [&](ArrayRef<int64_t> loops) {
    return AffineMap::get(
        4, 0,
        llvm::map_to_vector(loops,
                            [&](int64_t loop) { return p.b.getAffineDimExpr(shuffled[loop]); }),
        p.b.getContext());
  };
  SmallVector<bool> isReduction(4, false);
  SmallVector<int64_t, 2> summed =
      isSum ? SmallVector<int64_t, 2>{0} : SmallVector<int64_t, 2>{1, 3};
  for (int64_t loop : summed)
    isReduction[shuffled[loop]] = true;
  bool selectsFactor = p.random.percent(50);
  Value init = p.filled(isSum ? Shape{groups, depth, columns} : Shape{rows, columns}, element, 0);
  Value result = p.generic(
      {x, y, numbers}, init,
      {mapOf({0, 1}), isSum ? mapOf({0, 2}) : mapOf({3, 1, 2}), mapOf({0}),
       isSum ? mapOf({3, 1, 2}) : mapOf({0, 2})},
      isReduction, [&](OpBuilder &b, ValueRange args) -> Value {
        Value loop = linalg::IndexOp::create(b, p.loc, shuffled[3]);
        Value number = arith::IndexCastOp::create(b, p.loc, args[2].getType(), loop);
        Value here = arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::eq, args[2], number);
        Value nothing =
            arith::ConstantOp::create(b, p.loc, cast<TypedAttr>(b.getZeroAttr(element)));
        auto select = [&](Value value) -> Value {
          return arith::SelectOp::create(b, p.loc, here, value, nothing);
        };
        auto multiply = [&](Value one, Value other) -> Value {
          if (x.isFloat())
            return arith::MulFOp::create(b, p.loc, one, other);
          return arith::MulIOp::create(b, p.loc, one, other);
        };
        Value term =
            selectsFactor ? multiply(select(args[0]), args[1]) : select(multiply(args[0], args[1]));
        return combine(b, p.loc, Combiner::sum, x.isFloat(), args[3], term);
      });
  double most = static_cast<double>(isSum ? rows : depth) * x.magnitude() * y.magnitude();
  p.push(result, -most, most, x.exact && y.exact && !x.isFloat(), 1);
  return true;
}

/// x where i >= j + offset, else a constant: the causal mask of attention.
static bool mask(ProgramBuilder &p) {
  Entry x = p.any(2, 3);
  if (!x.value)
    return false;
  int64_t rank = x.rank(), offset = p.random.between(-2, 2);
  double other = p.random.percent(50) ? 0 : 5;
  AffineMap identity = p.b.getMultiDimIdentityMap(rank);
  Value result = p.generic(
      {x}, p.empty(x.shape(), x.element()), {identity, identity}, SmallVector<bool>(rank, false),
      [&](OpBuilder &b, ValueRange args) {
        Value i = linalg::IndexOp::create(b, p.loc, rank - 2);
        Value j = linalg::IndexOp::create(b, p.loc, rank - 1);
        Value shift = arith::ConstantIndexOp::create(b, p.loc, offset);
        Value right = arith::AddIOp::create(b, p.loc, j, shift);
        Value keep = arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::sge, i, right);
        Value constant =
            x.isFloat() ? arith::ConstantOp::create(b, p.loc, b.getFloatAttr(x.element(), other))
                              .getResult()
                        : arith::ConstantOp::create(
                              b, p.loc, b.getIntegerAttr(x.element(), static_cast<int64_t>(other)))
                              .getResult();
        return arith::SelectOp::create(b, p.loc, keep, args[0], constant).getResult();
      });
  p.pushLike(result, {x, Entry{result, 0, 5}});
  return true;
}

/// Numbers computed from indices only; no operand determines their mesh.
static bool iota(ProgramBuilder &p) {
  Shape shape = p.anyShape(p.random.between(1, 3));
  int64_t rank = static_cast<int64_t>(shape.size());
  Type element = p.random.percent(50) ? Type(p.b.getI32Type()) : Type(p.b.getI64Type());
  Value result = p.generic({}, p.empty(shape, element), {p.b.getMultiDimIdentityMap(rank)},
                           SmallVector<bool>(rank, false), [&](OpBuilder &b, ValueRange args) {
                             Value sum = arith::ConstantIndexOp::create(b, p.loc, 1);
                             for (int64_t d = 0; d < rank; ++d) {
                               Value i = linalg::IndexOp::create(b, p.loc, d);
                               Value two = arith::ConstantIndexOp::create(b, p.loc, 2);
                               sum = arith::MulIOp::create(b, p.loc, sum, two);
                               sum = arith::AddIOp::create(b, p.loc, sum, i);
                             }
                             return arith::IndexCastOp::create(b, p.loc, element, sum).getResult();
                           });
  Entry entry = p.pin(Entry{result});
  p.pushLike(entry.value, entry);
  return true;
}

/// One element as a scalar: extracted, doubled, splat or filled.
static bool scalar(ProgramBuilder &p) {
  Entry x = p.any(0, 3);
  if (!x.value)
    return false;
  SmallVector<Value> index;
  for (int64_t extent : x.shape())
    index.push_back(p.index(p.random.between(0, extent - 1)));
  Value element = tensor::ExtractOp::create(p.b, p.loc, x.value, index);
  element = x.isFloat() ? arith::AddFOp::create(p.b, p.loc, element, element).getResult()
                        : arith::AddIOp::create(p.b, p.loc, element, element).getResult();
  Shape shape = p.anyShape(p.random.between(1, 2));
  Value result =
      p.random.percent(50)
          ? tensor::SplatOp::create(p.b, p.loc, element, RankedTensorType::get(shape, x.element()))
                .getResult()
          : linalg::FillOp::create(p.b, p.loc, element, p.empty(shape, x.element())).getResult(0);
  Entry like = x;
  like.low = 2 * x.low;
  like.high = 2 * x.high;
  like.value = result;
  like.mesh = -1;
  like = p.pin(like);
  p.pushLike(like.value, like);
  return true;
}

/// A reversed vector: an indexing map that is neither a permutation nor a window.
static bool reverse(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  int64_t rank = x.rank(), dim = p.random.between(0, rank - 1);
  AffineMap identity = p.b.getMultiDimIdentityMap(rank);
  Value result = p.generic({}, p.empty(x.shape(), x.element()), {identity},
                           SmallVector<bool>(rank, false), [&](OpBuilder &b, ValueRange args) {
                             SmallVector<Value> index;
                             for (int64_t d = 0; d < rank; ++d)
                               index.push_back(linalg::IndexOp::create(b, p.loc, d));
                             Value last =
                                 arith::ConstantIndexOp::create(b, p.loc, x.shape()[dim] - 1);
                             index[dim] = arith::SubIOp::create(b, p.loc, last, index[dim]);
                             return tensor::ExtractOp::create(b, p.loc, x.value, index).getResult();
                           });
  p.pushLike(result, x);
  return true;
}

void tessera::fuzz::addIndexKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"gather-generic", 4, gatherGeneric});
  kinds.push_back({"gather", 2, gather});
  kinds.push_back({"scatter", 2, scatter});
  kinds.push_back({"selection", 5, selection});
  kinds.push_back({"bags", 3, bags});
  kinds.push_back({"one-hot", 2, oneHot});
  kinds.push_back({"grouped-product", 2, groupedProduct});
  kinds.push_back({"mask", 4, mask});
  kinds.push_back({"iota", 2, iota});
  kinds.push_back({"scalar", 2, scalar});
  kinds.push_back({"reverse", 2, reverse});
}
