//===- BatchKinds.cpp - Batches concatenated of parts ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of several parts, each cut, go through layers: of each row, of its number, of sums
// over all rows, of pairs of rows. Then come the parts again, or rows in other ways.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

namespace {

/// Rows that layers compute: tensors of rows x width.
class Layers {
public:
  Layers(ProgramBuilder &p, Entry rows) : p(p), h(std::move(rows)) {}

  void add() {
    switch (p.random.between(0, 6)) {
    case 0:
      return multiply();
    case 1:
      return number();
    case 2:
      return subtractSum();
    case 3:
      return scan();
    case 4:
      return compareRows();
    case 5:
      return selectRow();
    default:
      return multiplyMerged();
    }
  }
  const Entry &get() const { return h; }

private:
  using Body = llvm::function_ref<Value(OpBuilder &, ValueRange)>;

  AffineMap map(int64_t loops, ArrayRef<int64_t> dims) {
    SmallVector<AffineExpr> exprs;
    for (int64_t dim : dims)
      exprs.push_back(p.b.getAffineDimExpr(dim));
    return AffineMap::get(loops, 0, exprs, p.b.getContext());
  }

  /// A value of the rows and another, each with a dimension per number.
  Value combined(ArrayRef<Entry> inputs, ArrayRef<AffineMap> maps, ArrayRef<bool> isReduction,
                 ArrayRef<int64_t> shape, Body body) {
    bool sums = llvm::is_contained(isReduction, true);
    Value init = sums ? p.filled(shape, h.element(), 0) : p.empty(shape, h.element());
    return p.generic(inputs, init, maps, isReduction, body);
  }

  /// Takes the rows' new values, with a bound of their magnitude.
  void set(Value value, double bound) {
    h.value = value;
    h.low = -bound;
    h.high = bound;
    h.exact = false;
    ++h.steps;
    h = p.within(h, 4);
  }

  Value product(const Entry &rows, const Entry &weight) {
    return combined({rows, weight}, {map(3, {0, 2}), map(3, {2, 1}), map(3, {0, 1})},
                    {false, false, true}, {rows.shape()[0], weight.shape()[1]},
                    [&](OpBuilder &b, ValueRange in) -> Value {
                      Value term = arith::MulFOp::create(b, p.loc, in[0], in[1]);
                      return arith::AddFOp::create(b, p.loc, in[2], term);
                    });
  }

  void multiply() {
    int64_t width = h.shape()[1];
    Entry weight = p.ofType({width, p.random.between(1, 6)}, h.element());
    set(product(h, weight), h.magnitude() * weight.magnitude() * static_cast<double>(width));
  }

  /// The product of several rows in one, as of tokens.
  void multiplyMerged() {
    int64_t rows = h.shape()[0], width = h.shape()[1];
    Entry weight = p.ofType({1, 3}, h.element()), tokens = h;
    tokens.value = tensor::CollapseShapeOp::create(p.b, p.loc, h.value,
                                                   SmallVector<ReassociationIndices>{{0, 1}});
    tokens.value = tensor::ExpandShapeOp::create(
        p.b, p.loc, RankedTensorType::get({rows * width, 1}, h.element()), tokens.value,
        SmallVector<ReassociationIndices>{{0, 1}});
    Value wide = product(tokens, weight);
    wide = tensor::ExpandShapeOp::create(p.b, p.loc,
                                         RankedTensorType::get({rows, width, 3}, h.element()), wide,
                                         SmallVector<ReassociationIndices>{{0, 1}, {2}});
    set(tensor::CollapseShapeOp::create(p.b, p.loc, wide,
                                        SmallVector<ReassociationIndices>{{0}, {1, 2}}),
        h.magnitude() * weight.magnitude());
  }

  /// Adds a function of the number of the row.
  void number() {
    int64_t period = p.random.between(2, 5);
    AffineMap all = map(2, {0, 1});
    Value value = combined(
        {h}, {all, all}, {false, false}, h.shape(), [&](OpBuilder &b, ValueRange in) -> Value {
          Value row = linalg::IndexOp::create(b, p.loc, 0);
          Value phase = arith::RemUIOp::create(b, p.loc, row,
                                               arith::ConstantIndexOp::create(b, p.loc, period));
          Value integer = arith::IndexCastOp::create(b, p.loc, b.getI32Type(), phase);
          Value number = arith::SIToFPOp::create(b, p.loc, h.element(), integer);
          return arith::AddFOp::create(b, p.loc, in[0], number);
        });
    set(value, h.magnitude() + static_cast<double>(period));
  }

  /// Subtracts the sum of all rows.
  void subtractSum() {
    auto rows = static_cast<double>(h.shape()[0]);
    AffineMap all = map(2, {0, 1});
    Entry sum = h;
    sum.value = combined({h}, {all, map(2, {1})}, {true, false}, {h.shape()[1]},
                         [&](OpBuilder &b, ValueRange in) -> Value {
                           return arith::AddFOp::create(b, p.loc, in[1], in[0]);
                         });
    Value value = combined({h, sum}, {all, map(2, {1}), all}, {false, false}, h.shape(),
                           [&](OpBuilder &b, ValueRange in) -> Value {
                             return arith::SubFOp::create(b, p.loc, in[0], in[1]);
                           });
    set(value, h.magnitude() * (rows + 1));
  }

  /// The greatest element so far, along the row or, which mixes parts, along the rows.
  void scan() {
    int64_t dim = p.random.percent(80) ? 1 : 0;
    auto op =
        ext::ScanOp::create(p.b, p.loc, TypeRange(h.value.getType()), p.b.getI64IntegerAttr(dim),
                            UnitAttr(), UnitAttr(), ValueRange(h.value), ArrayAttr());
    Block &body = op.getCombiner().emplaceBlock();
    body.addArguments({h.element(), h.element()}, {p.loc, p.loc});
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    Value greatest =
        arith::MaximumFOp::create(inner, p.loc, body.getArgument(0), body.getArgument(1));
    ext::YieldOp::create(inner, p.loc, greatest);
    set(op.getResult(0), h.magnitude());
  }

  /// The sum of the products with all rows but the row itself, or only those before it.
  void compareRows() {
    int64_t rows = h.shape()[0], width = h.shape()[1];
    auto predicate = p.random.percent(70) ? arith::CmpIPredicate::ne : arith::CmpIPredicate::slt;
    Entry scores = h;
    scores.value =
        combined({h, h}, {map(3, {0, 2}), map(3, {1, 2}), map(3, {0, 1})}, {false, false, true},
                 {rows, rows}, [&](OpBuilder &b, ValueRange in) -> Value {
                   Value term = arith::MulFOp::create(b, p.loc, in[0], in[1]);
                   return arith::AddFOp::create(b, p.loc, in[2], term);
                 });
    scores.low = -h.magnitude() * h.magnitude() * static_cast<double>(width);
    scores.high = -scores.low;
    scores.exact = false;
    scores = p.within(scores, 1);
    AffineMap pairs = map(2, {0, 1});
    scores.value =
        combined({scores}, {pairs, pairs}, {false, false}, {rows, rows},
                 [&](OpBuilder &b, ValueRange in) -> Value {
                   Value row = linalg::IndexOp::create(b, p.loc, 0),
                         column = linalg::IndexOp::create(b, p.loc, 1);
                   Value isSeen = arith::CmpIOp::create(b, p.loc, predicate, column, row);
                   Value zero = arith::ConstantOp::create(b, p.loc, b.getZeroAttr(h.element()));
                   return arith::SelectOp::create(b, p.loc, isSeen, in[0], zero);
                 });
    set(product(scores, h), h.magnitude() * static_cast<double>(rows));
  }

  /// Adds the element of each row that an index of the row selects.
  void selectRow() {
    int64_t rows = h.shape()[0], width = h.shape()[1];
    Entry index = p.fresh({rows}, p.b.getI32Type(), 0, width), found = h;
    found.value =
        combined({index, h}, {map(2, {0}), map(2, {0, 1}), map(2, {0})}, {false, true}, {rows},
                 [&](OpBuilder &b, ValueRange in) -> Value {
                   Value column = arith::IndexCastOp::create(b, p.loc, b.getI32Type(),
                                                             linalg::IndexOp::create(b, p.loc, 1));
                   Value isWanted =
                       arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::eq, in[0], column);
                   Value zero = arith::ConstantOp::create(b, p.loc, b.getZeroAttr(h.element()));
                   Value term = arith::SelectOp::create(b, p.loc, isWanted, in[1], zero);
                   return arith::AddFOp::create(b, p.loc, in[2], term);
                 });
    AffineMap all = map(2, {0, 1});
    Value value = combined({h, found}, {all, map(2, {0}), all}, {false, false}, h.shape(),
                           [&](OpBuilder &b, ValueRange in) -> Value {
                             return arith::AddFOp::create(b, p.loc, in[0], in[1]);
                           });
    set(value, 2 * h.magnitude());
  }

  ProgramBuilder &p;
  Entry h;
};

} // namespace

static void pushRows(ProgramBuilder &p, const Entry &h, int64_t first, int64_t count) {
  Entry part = h;
  SmallVector<OpFoldResult> offsets{p.b.getIndexAttr(first), p.b.getIndexAttr(0)},
      sizes{p.b.getIndexAttr(count), p.b.getIndexAttr(h.shape()[1])},
      strides(2, p.b.getIndexAttr(1));
  part.value = tensor::ExtractSliceOp::create(
      p.b, p.loc, RankedTensorType::get({count, h.shape()[1]}, h.element()), h.value, offsets,
      sizes, strides);
  p.pushLike(part.value, part);
}

static bool batchOfParts(ProgramBuilder &p) {
  int64_t devices = 1;
  Entry first = p.cutRows(2, devices);
  int64_t rows = first.shape()[0], width = first.shape()[1];
  bool isUniform = p.random.percent(60);
  SmallVector<Entry> parts{first};
  SmallVector<int64_t> sizes{rows};
  for (int64_t n = p.random.between(1, 2); n > 0; --n) {
    int64_t size = isUniform ? rows : rows * p.random.between(1, 2);
    Entry part = p.fresh({size, width}, first.element());
    part.value = p.cutLike(part.value, first);
    part.mesh = first.mesh;
    parts.push_back(part);
    sizes.push_back(size);
  }
  auto values = llvm::map_to_vector(parts, [](const Entry &part) { return part.value; });
  Entry joined = first;
  joined.value = tensor::ConcatOp::create(p.b, p.loc, 0, values);
  for (const Entry &part : parts) {
    joined.low = std::min(joined.low, part.low);
    joined.high = std::max(joined.high, part.high);
  }
  Layers layers(p, joined);
  for (int64_t n = p.random.between(1, 3); n > 0; --n)
    layers.add();
  const Entry &h = layers.get();
  int64_t offset = 0, all = h.shape()[0];
  for (int64_t size : sizes) {
    if (p.random.percent(70))
      pushRows(p, h, offset, size);
    offset += size;
  }
  if (p.random.percent(25))
    p.pushLike(h.value, h);
  if (p.random.percent(15))
    pushRows(p, h, p.random.between(0, all - 2), 2);
  if (isUniform && p.random.percent(30)) { // as a dimension of parts
    Entry wide = h;
    wide.value = tensor::ExpandShapeOp::create(
        p.b, p.loc, RankedTensorType::get({all / rows, rows, h.shape()[1]}, h.element()), h.value,
        SmallVector<ReassociationIndices>{{0, 1}, {2}});
    p.pushLike(wide.value, wide);
  }
  return true;
}

void tessera::fuzz::addBatchKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"batch-of-parts", 6, batchOfParts});
}
