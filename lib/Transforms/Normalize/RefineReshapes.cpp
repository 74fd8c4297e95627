//===- RefineReshapes.cpp - Reshapes of as few dimensions as needed -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RefineReshapes.h"
#include "PlainOps.h"

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

/// A shape that both shapes merge dimensions of, with the dimensions that each merges:
///   8x64x64 and 2x16384    2x4x64x64, (01)23 and 0(123)
/// It has the ends of dimensions of both. Nothing if one end does not divide the next.
struct Refinement {
  SmallVector<int64_t> shape;
  Groups ofFrom, ofTo;

  static std::optional<Refinement> of(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
    Refinement result{{}, Groups(from.size()), Groups(to.size())};
    size_t i = 0, j = 0;
    int64_t a = from.front(), b = to.front(); // what is left of both dimensions
    auto take = [&](int64_t extent) {
      result.ofFrom[i].push_back(std::ssize(result.shape));
      result.ofTo[j].push_back(std::ssize(result.shape));
      result.shape.push_back(extent);
      a /= extent, b /= extent;
    };
    while (true) {
      int64_t extent = std::min(a, b);
      if (a % extent != 0 || b % extent != 0)
        return std::nullopt;
      take(extent);
      bool moreFrom = i + 1 < from.size(), moreTo = j + 1 < to.size();
      if (!moreFrom && !moreTo && a == 1 && b == 1)
        return result;
      if (a == 1 && moreFrom)
        a = from[++i];
      if (b == 1 && moreTo)
        b = to[++j];
    }
  }
};

static bool isIdentity(const Groups &groups) {
  return llvm::all_of(groups, [](const ReassociationIndices &group) { return group.size() == 1; });
}

static int64_t product(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t result = 1;
  for (int64_t dim : dims)
    result *= shape[dim];
  return result;
}

static Value collapse(OpBuilder &b, Location loc, Value value, const Groups &groups) {
  if (isIdentity(groups))
    return value;
  return tensor::CollapseShapeOp::create(b, loc, value, groups);
}

static Value expand(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> shape,
                    const Groups &groups) {
  if (isIdentity(groups))
    return value;
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  return tensor::ExpandShapeOp::create(b, loc, type, value, groups);
}

static void refine(tensor::ExpandShapeOp op) {
  auto merge = op.getSrc().getDefiningOp<tensor::CollapseShapeOp>();
  if (!merge || !dist::isPlain(merge) || !dist::isPlain(op))
    return;
  ArrayRef<int64_t> from = merge.getSrcType().getShape(), to = op.getResultType().getShape();
  Groups ofFrom, ofTo;
  if (!groupDims(from, to, ofFrom, ofTo))
    return;
  // What both only merge is divided first; the rest is merged, then divided.
  Groups divided, merged, dividedAgain; // one after the other
  SmallVector<int64_t> first, last;     // the shapes after the first and the last
  auto add = [](Groups &groups, int64_t at, const ReassociationIndices &group) {
    groups.emplace_back(llvm::map_to_vector(group, [&](int64_t dim) { return dim + at; }));
  };
  bool isFiner = static_cast<int64_t>(ofFrom.size()) > op.getSrcType().getRank();
  for (auto [left, right] : llvm::zip_equal(ofFrom, ofTo)) {
    auto extentsOf = [](ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
      return llvm::map_to_vector(dims, [&](int64_t dim) { return shape[dim]; });
    };
    SmallVector<int64_t> leftShape = extentsOf(from, left), rightShape = extentsOf(to, right);
    if (auto refinement = Refinement::of(leftShape, rightShape);
        refinement && left.size() > 1 && right.size() > 1) {
      isFiner = true;
      for (const ReassociationIndices &group : refinement->ofFrom)
        add(divided, std::ssize(first), group);
      for (const ReassociationIndices &group : refinement->ofTo) {
        add(merged, std::ssize(first), group);
        add(dividedAgain, std::ssize(last), {0});
        last.push_back(product(refinement->shape, group));
      }
      first.append(refinement->shape);
      continue;
    }
    ReassociationIndices all;
    for (int64_t dim : left) {
      add(divided, std::ssize(first), {0});
      all.push_back(std::ssize(first));
      first.push_back(from[dim]);
    }
    merged.push_back(std::move(all));
    ReassociationIndices parts;
    for (int64_t dim : right) {
      parts.push_back(std::ssize(last));
      last.push_back(to[dim]);
    }
    dividedAgain.push_back(std::move(parts));
  }
  if (!isFiner)
    return;
  OpBuilder b(op);
  Value value = expand(b, op.getLoc(), merge.getSrc(), first, divided);
  value = collapse(b, merge.getLoc(), value, merged);
  value = expand(b, op.getLoc(), value, last, dividedAgain);
  op.replaceAllUsesWith(value);
  op.erase();
  if (merge->use_empty())
    merge.erase();
}

void dist::refineReshapes(func::FuncOp function) {
  SmallVector<tensor::ExpandShapeOp> expands;
  function.walk([&](tensor::ExpandShapeOp op) { expands.push_back(op); });
  llvm::for_each(expands, refine);
}
