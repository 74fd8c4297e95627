//===- RefineReshapes.cpp - Reshapes of as few dimensions as needed -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RefineReshapes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;

using Groups = SmallVector<ReassociationIndices>;

/// The most groups of dimensions of both shapes that have equal numbers of elements, in order.
static bool groupDims(ArrayRef<int64_t> from, ArrayRef<int64_t> to, Groups &ofFrom, Groups &ofTo) {
  if (llvm::is_contained(from, 0) || llvm::is_contained(to, 0))
    return false;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    ReassociationIndices left, right;
    int64_t a = from[i], b = to[j];
    left.push_back(static_cast<int64_t>(i++));
    right.push_back(static_cast<int64_t>(j++));
    while (a != b) {
      if (a < b ? i == from.size() : j == to.size())
        return false;
      if (a < b) {
        a *= from[i];
        left.push_back(static_cast<int64_t>(i++));
      } else {
        b *= to[j];
        right.push_back(static_cast<int64_t>(j++));
      }
    }
    ofFrom.push_back(std::move(left));
    ofTo.push_back(std::move(right));
  }
  if (ofFrom.empty())
    return false;
  for (; i < from.size(); ++i) // of extent 1
    ofFrom.back().push_back(static_cast<int64_t>(i));
  for (; j < to.size(); ++j)
    ofTo.back().push_back(static_cast<int64_t>(j));
  return true;
}

static bool isIdentity(const Groups &groups) {
  return llvm::all_of(groups, [](const ReassociationIndices &group) { return group.size() == 1; });
}

static void refine(tensor::ExpandShapeOp expand) {
  auto collapse = expand.getSrc().getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse || !collapse->getDiscardableAttrs().empty() ||
      !expand->getDiscardableAttrs().empty())
    return;
  auto from = cast<RankedTensorType>(collapse.getSrc().getType());
  auto to = cast<RankedTensorType>(expand.getType());
  Groups ofFrom, ofTo;
  if (!groupDims(from.getShape(), to.getShape(), ofFrom, ofTo) ||
      static_cast<int64_t>(ofFrom.size()) <= collapse.getType().getRank())
    return;
  SmallVector<int64_t> shape;
  for (const ReassociationIndices &group : ofTo) {
    shape.push_back(1);
    for (int64_t dim : group)
      shape.back() *= to.getDimSize(dim);
  }
  OpBuilder b(expand);
  Value value = collapse.getSrc();
  auto between = RankedTensorType::get(shape, to.getElementType());
  if (!isIdentity(ofFrom))
    value = tensor::CollapseShapeOp::create(b, collapse.getLoc(), between, value, ofFrom);
  if (!isIdentity(ofTo))
    value = tensor::ExpandShapeOp::create(b, expand.getLoc(), to, value, ofTo);
  expand.replaceAllUsesWith(value);
  expand.erase();
  if (collapse->use_empty())
    collapse.erase();
}

void dist::refineReshapes(func::FuncOp function) {
  SmallVector<tensor::ExpandShapeOp> expands;
  function.walk([&](tensor::ExpandShapeOp op) { expands.push_back(op); });
  llvm::for_each(expands, refine);
}
