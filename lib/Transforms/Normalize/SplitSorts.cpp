//===- SplitSorts.cpp - First elements of cut dimensions ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitSorts.h"

#include "ConnectedDims.h"
#include "PlainOps.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A dimension as two: `outer` times `inner`.
struct Split {
  int64_t dim, outer, inner;

  RankedTensorType typeOf(Type merged) const {
    auto type = cast<RankedTensorType>(merged);
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = inner;
    shape.insert(shape.begin() + dim, outer);
    return type.clone(shape);
  }
  SmallVector<ReassociationIndices> groups(int64_t rank) const {
    SmallVector<ReassociationIndices> groups;
    for (int64_t d = 0; d < rank; ++d)
      groups.push_back(d == dim ? ReassociationIndices{d, d + 1}
                                : ReassociationIndices{d + (d > dim)});
    return groups;
  }
};

} // namespace

/// The merge of the sorted values, if they have no other form.
static tensor::CollapseShapeOp mergeOf(ext::SortOp op) {
  auto merge = op.getInputs()[0].getDefiningOp<tensor::CollapseShapeOp>();
  bool isFirst = op.getLimit() && isPlain(op) && merge && isPlain(merge);
  return isFirst && merge.getReassociationIndices()[op.getDim()].size() > 1 ? merge : nullptr;
}

/// Splits in front of the first dimension that is cut, if that is an inner one.
static std::optional<Split> splitOf(ext::SortOp op, const ConnectedDims &connected) {
  tensor::CollapseShapeOp merge = mergeOf(op);
  ArrayRef<int64_t> shape = merge.getSrcType().getShape();
  int64_t outer = 1, all = op.getShape()[op.getDim()];
  ReassociationIndices merged = merge.getReassociationIndices()[op.getDim()];
  for (int64_t d : merged) {
    if (connected.partsOf({merge.getSrc(), d}) > 1) {
      bool isLess = outer > 1 && all > 0 && outer * op.getCount() < all;
      return isLess ? std::optional(Split{op.getDim(), outer, all / outer}) : std::nullopt;
    }
    outer *= shape[d];
  }
  return std::nullopt;
}

/// Splits a dimension that is cut into its parts.
static std::optional<Split> partsOf(ext::SortOp op, const ConnectedDims &connected) {
  int64_t dim = op.getDim(), all = op.getShape()[dim], parts = 1;
  for (Value input : op.getInputs())
    parts = std::max(parts, connected.partsOf({input, dim}));
  bool isLess = parts > 1 && all > 0 && all % parts == 0 && parts * op.getCount() < all;
  return isLess ? std::optional(Split{dim, parts, all / parts}) : std::nullopt;
}

/// A function of indices alone, with the dimension split.
static Value splitIndices(OpBuilder &b, linalg::GenericOp op, const Split &split) {
  RankedTensorType type = split.typeOf(op->getResult(0).getType());
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
  int64_t rank = type.getRank();
  return linalg::GenericOp::create(
             b, op.getLoc(), type, ValueRange(), empty, b.getMultiDimIdentityMap(rank),
             SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
             [&](OpBuilder &body, Location at, ValueRange arguments) {
               IRMapping mapping;
               mapping.map(op.getBody()->getArguments(), arguments);
               for (Operation &inner : *op.getBody()) {
                 auto index = dyn_cast<linalg::IndexOp>(inner);
                 if (!index) {
                   body.clone(inner, mapping);
                   continue;
                 }
                 auto loop = static_cast<int64_t>(index.getDim());
                 Value own = linalg::IndexOp::create(body, at, loop + (loop >= split.dim));
                 if (loop == split.dim) {
                   Value before =
                       arith::MulIOp::create(body, at, linalg::IndexOp::create(body, at, loop),
                                             arith::ConstantIndexOp::create(body, at, split.inner));
                   own = arith::AddIOp::create(body, at, before, own);
                 }
                 mapping.map(index.getResult(), own);
               }
             })
      .getResult(0);
}

static Value splitInput(OpBuilder &b, Value value, const Split &split) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (generic && isPlain(generic) && generic->getNumResults() == 1 &&
      generic.getNumDpsInputs() == 0 && generic.getNumReductionLoops() == 0 &&
      generic.getIndexingMapsArray()[0].isIdentity() &&
      generic.getDpsInits()[0].getDefiningOp<tensor::EmptyOp>())
    return splitIndices(b, generic, split);
  RankedTensorType type = split.typeOf(value.getType());
  if (auto merge = value.getDefiningOp<tensor::CollapseShapeOp>();
      merge && merge.getSrcType() == type)
    return merge.getSrc();
  return tensor::ExpandShapeOp::create(b, value.getLoc(), type, value,
                                       split.groups(type.getRank() - 1));
}

static void splitSort(ext::SortOp op, const Split &split) {
  OpBuilder b(op);
  SmallVector<Value> inputs =
      llvm::map_to_vector(op.getInputs(), [&](Value value) { return splitInput(b, value, split); });
  auto first = ext::SortOp::create(
      b, op.getLoc(), b.getI64IntegerAttr(split.dim + 1), op.getKeysAttr(), op.getDescendingAttr(),
      b.getI64IntegerAttr(std::min(op.getCount(), split.inner)), inputs);
  SmallVector<Value> candidates =
      llvm::map_to_vector(first.getResults(), [&](Value value) -> Value {
        auto type = cast<RankedTensorType>(value.getType());
        return tensor::CollapseShapeOp::create(b, op.getLoc(), value,
                                               split.groups(type.getRank() - 1));
      });
  auto made = ext::SortOp::create(b, op.getLoc(), op.getDimensionAttr(), op.getKeysAttr(),
                                  op.getDescendingAttr(), op.getLimitAttr(), candidates);
  op->replaceAllUsesWith(made.getResults());
  SmallVector<Value> merged(op.getInputs());
  op.erase();
  for (Value value : merged)
    if (Operation *unused = value.getDefiningOp(); unused && isOpTriviallyDead(unused))
      unused->erase();
}

/// Sorts no values that nobody reads along with the keys.
static void dropUnread(ext::SortOp op) {
  SmallVector<Value> inputs;
  SmallVector<OpResult> results;
  for (OpResult result : op->getResults())
    if (result.getResultNumber() < op.getKeys() || !result.use_empty()) {
      inputs.push_back(op.getInputs()[result.getResultNumber()]);
      results.push_back(result);
    }
  if (results.size() == op->getNumResults() || !isPlain(op))
    return;
  OpBuilder b(op);
  auto made = ext::SortOp::create(b, op.getLoc(), op.getDimensionAttr(), op.getKeysAttr(),
                                  op.getDescendingAttr(), op.getLimitAttr(), inputs);
  for (auto [result, value] : llvm::zip_equal(results, made.getResults()))
    result.replaceAllUsesWith(value);
  op.erase();
}

void dist::splitSorts(func::FuncOp function, const MeshTable &meshes) {
  SmallVector<ext::SortOp> sorts;
  function.walk([](ext::SortOp op) { dropUnread(op); });
  function.walk([&](ext::SortOp op) {
    if (op.getLimit() && isPlain(op))
      sorts.push_back(op);
  });
  if (sorts.empty() || meshes.empty())
    return;
  std::optional<ConnectedDims> connected = ConnectedDims::of(function, meshes);
  if (!connected)
    return;
  SmallVector<std::pair<ext::SortOp, Split>> splits;
  for (ext::SortOp op : sorts) {
    std::optional<Split> split = mergeOf(op) ? splitOf(op, *connected) : std::nullopt;
    if (!split)
      split = partsOf(op, *connected);
    if (split)
      splits.push_back({op, *split});
  }
  for (auto &[op, split] : splits)
    splitSort(op, split);
}
