//===- IndexKinds.cpp - Ops that depend on indices: gathers, masks, single elements ===//
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

/// Reads rows of a table by an index tensor, inside a generic: an embedding.
static bool gatherGeneric(ProgramBuilder &p) {
  Entry table = p.any(1, 2);
  if (!table.value)
    return false;
  Shape shape = p.anyShape(p.random.between(1, 2));
  Entry rows =
      p.pin(p.fresh(shape, p.random.percent(50) ? Type(p.b.getI32Type()) : Type(p.b.getI64Type()),
                    0, table.shape()[0]));
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
  Entry rows = p.pin(p.fresh({count, 1}, p.b.getIndexType(), 0, table.shape()[dim]));
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
  kinds.push_back({"mask", 4, mask});
  kinds.push_back({"iota", 2, iota});
  kinds.push_back({"scalar", 2, scalar});
  kinds.push_back({"reverse", 2, reverse});
}
