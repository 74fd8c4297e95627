//===- SortReverse.cpp - The reverse of sorts -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reverse of a sort applies the inverse permutation: it sorts the cotangents by
// the original positions of their elements.
//
//===----------------------------------------------------------------------===//

#include "DimensionOps.h"
#include "Reverse.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

using Values = SmallVector<Value>;

LogicalResult dist::reverseSort(Reverse &reverse, ext::SortOp op, ArrayRef<Value> cotangents) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  int64_t dim = op.getDim(), extent = op.getShape()[dim];
  // The original position of each element.
  auto type = RankedTensorType::get(op.getShape(), b.getI32Type());
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  Value iota = linalg::GenericOp::create(
                   b, loc, TypeRange(type), ValueRange(), empty, map, parallel,
                   [&](OpBuilder &inner, Location, ValueRange) {
                     Value index = linalg::IndexOp::create(inner, loc, dim);
                     linalg::YieldOp::create(
                         inner, loc,
                         arith::IndexCastOp::create(inner, loc, b.getI32Type(), index).getResult());
                   })
                   .getResult(0);
  Values keys(op.getInputs().take_front(op.getKeys()));
  keys.push_back(iota);
  Value places = ext::SortOp::create(b, loc, op.getDimensionAttr(), op.getKeysAttr(),
                                     op.getDescendingAttr(), IntegerAttr(), keys)
                     .getResults()
                     .back();
  Values moved{places};
  SmallVector<unsigned> targets;
  for (auto [index, value] : llvm::enumerate(cotangents)) {
    if (!value || !reverse.isActive(op.getInputs()[index]))
      continue;
    targets.push_back(index);
    moved.push_back(padDim(b, loc, value, dim, 0, extent - op.getCount()));
  }
  if (targets.empty())
    return success();
  auto back = ext::SortOp::create(b, loc, op.getDimensionAttr(), b.getI64IntegerAttr(1), UnitAttr(),
                                  IntegerAttr(), moved);
  for (auto [number, index] : llvm::enumerate(targets))
    reverse.add(op.getInputs()[index], back.getResult(number + 1));
  return success();
}
