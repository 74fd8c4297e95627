//===- ReadDiagonals.cpp - Diagonals as look-ups --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[i] = f(x[i, i])
//
// becomes
//
//   d[i] = sum over j of select(i == j, x[i, j], 0)
//   y[i] = f(d[i])
//
// One loop of both dimensions cannot be cut as x is, by rows or by columns. Kernels read the
// element itself (FormLookups.cpp).
//
//===----------------------------------------------------------------------===//

#include "ReadDiagonals.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Whether a loop indexes several dimensions of an operand, and nothing but loops indexes it.
static bool readsDiagonal(AffineMap map) {
  llvm::SmallBitVector seen(map.getNumDims());
  bool isRepeated = false;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return false;
    isRepeated |= seen[dim.getPosition()];
    seen.set(dim.getPosition());
  }
  return isRepeated;
}

/// Reads an operand in `map`: returns the tensor with a dimension for each loop of the map, in the
/// order in which they occur in it, `loops`.
static Value lookUp(OpBuilder &b, Location loc, Value operand, AffineMap map,
                    SmallVectorImpl<unsigned> &loops) {
  auto type = cast<RankedTensorType>(operand.getType());
  Type element = type.getElementType();
  SmallVector<int64_t> shape;
  SmallVector<std::pair<unsigned, unsigned>> pairs; // dimension of the result, dimension of x
  SmallVector<int64_t> resultDim;                   // by dimension of x, or -1: summed
  for (auto [d, expr] : llvm::enumerate(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    auto *known = llvm::find(loops, loop);
    if (known == loops.end()) {
      resultDim.push_back(static_cast<int64_t>(loops.size()));
      loops.push_back(loop);
      shape.push_back(type.getDimSize(d));
    } else {
      resultDim.push_back(-1);
      pairs.push_back({static_cast<unsigned>(known - loops.begin()), static_cast<unsigned>(d)});
    }
  }
  auto rank = static_cast<unsigned>(loops.size());
  SmallVector<AffineExpr> read;
  unsigned next = rank;
  for (int64_t dim : resultDim)
    read.push_back(b.getAffineDimExpr(dim < 0 ? next++ : static_cast<unsigned>(dim)));
  SmallVector<AffineMap> maps{
      AffineMap::get(next, 0, read, b.getContext()),
      AffineMap::getMultiDimIdentityMap(next, b.getContext()).getMajorSubMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.append(next - rank, utils::IteratorType::reduction);
  auto result = RankedTensorType::get(shape, element);
  TypedAttr zero = b.getZeroAttr(element);
  Value zeros =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(result, ArrayRef<Attribute>(zero)));
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value isWanted;
    for (unsigned i = 0; i < pairs.size(); ++i) {
      Value same = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         linalg::IndexOp::create(b, loc, pairs[i].first),
                                         linalg::IndexOp::create(b, loc, rank + i));
      isWanted = isWanted ? arith::AndIOp::create(b, loc, isWanted, same).getResult() : same;
    }
    Value none = arith::ConstantOp::create(b, loc, zero);
    Value term = arith::SelectOp::create(b, loc, isWanted, args[0], none);
    Value sum;
    if (isa<FloatType>(element))
      sum = arith::AddFOp::create(b, loc, args[1], term);
    else if (element.isInteger(1))
      sum = arith::OrIOp::create(b, loc, args[1], term);
    else
      sum = arith::AddIOp::create(b, loc, args[1], term);
    linalg::YieldOp::create(b, loc, sum);
  };
  return linalg::GenericOp::create(b, loc, result, operand, zeros, maps, iterators, body)
      .getResult(0);
}

void dist::readDiagonals(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) {
    if (op.hasPureTensorSemantics() && llvm::any_of(op.getIndexingMapsArray(), readsDiagonal))
      ops.push_back(op);
  });
  for (linalg::GenericOp op : ops) {
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    OpBuilder b(op);
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap &map = maps[operand->getOperandNumber()];
      Type element = getElementTypeOrSelf(operand->get().getType());
      if (!readsDiagonal(map) || !(isa<FloatType, IntegerType>(element)))
        continue;
      SmallVector<unsigned> loops;
      operand->set(lookUp(b, op.getLoc(), operand->get(), map, loops));
      SmallVector<AffineExpr> dims;
      for (unsigned loop : loops)
        dims.push_back(b.getAffineDimExpr(loop));
      map = AffineMap::get(map.getNumDims(), 0, dims, b.getContext());
    }
    op.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
  }
}
