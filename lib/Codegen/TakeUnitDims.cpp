//===- TakeUnitDims.cpp - Read tensors through their unit dimensions ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction that keeps its dimension is followed by a reshape:
//
//   m = max over j of x[i, j];   e[i, 0] = m[i];   y[i, j] = x[i, j] - e[i, 0]
//
// The last op reads m[i] instead.
//
//===----------------------------------------------------------------------===//

#include "TakeUnitDims.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;

/// For each dimension of a reshape's source, the dimension of its result with the same elements;
/// none unless all others have extent 1.
static std::optional<SmallVector<int64_t>> dimsOfSource(tensor::ExpandShapeOp reshape) {
  ArrayRef<int64_t> shape = reshape.getResultType().getShape();
  SmallVector<int64_t> dims;
  for (const ReassociationIndices &group : reshape.getReassociationIndices()) {
    auto isSized = [&](int64_t dim) { return shape[dim] != 1; };
    if (llvm::count_if(group, isSized) > 1)
      return std::nullopt;
    auto sized = llvm::find_if(group, isSized);
    dims.push_back(sized == group.end() ? group.front() : *sized);
  }
  return dims;
}

static void readSource(linalg::GenericOp op, OpOperand &operand) {
  auto reshape = operand.get().getDefiningOp<tensor::ExpandShapeOp>();
  auto dims = reshape ? dimsOfSource(reshape) : std::nullopt;
  if (!dims)
    return;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap &map = maps[operand.getOperandNumber()];
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : *dims)
    exprs.push_back(map.getResult(dim));
  map = AffineMap::get(map.getNumDims(), 0, exprs, op.getContext());
  // The extents of all loops follow from the operands.
  if (!inversePermutation(concatAffineMaps(maps, op.getContext())))
    return;
  operand.set(reshape.getSrc());
  op.setIndexingMapsAttr(OpBuilder(op).getAffineMapArrayAttr(maps));
}

void codegen::takeUnitDims(func::FuncOp function) {
  function.walk([](linalg::GenericOp op) {
    for (OpOperand *operand : op.getDpsInputOperands())
      readSource(op, *operand);
  });
}
