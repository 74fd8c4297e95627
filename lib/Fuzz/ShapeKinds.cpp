//===- ShapeKinds.cpp - Ops that only move elements -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace tessera::fuzz;

static bool transpose(ProgramBuilder &p) {
  Entry x = p.any(2, 4);
  if (!x.value)
    return false;
  std::vector<int64_t> permutation;
  for (int64_t d = 0; d < x.rank(); ++d)
    permutation.push_back(d);
  p.random.shuffle(permutation);
  Shape shape;
  for (int64_t d : permutation)
    shape.push_back(x.shape()[d]);
  auto op =
      linalg::TransposeOp::create(p.b, p.loc, x.value, p.empty(shape, x.element()), permutation);
  p.pushLike(op->getResult(0), x);
  return true;
}

/// Splits each dimension into one to three with the same product, some of extent 1.
static bool expandShape(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  Shape shape;
  SmallVector<ReassociationIndices> groups;
  for (int64_t extent : x.shape()) {
    ReassociationIndices &group = groups.emplace_back();
    int64_t rest = extent;
    auto add = [&](int64_t size) {
      group.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(size);
    };
    for (int64_t parts = p.random.between(0, 2); parts > 0; --parts) {
      std::vector<int64_t> divisors;
      for (int64_t d = 1; d <= rest; ++d)
        if (rest % d == 0)
          divisors.push_back(d);
      int64_t size = p.random.pick(divisors);
      rest /= size;
      add(size);
    }
    add(rest);
  }
  if (shape.size() > 5)
    return false;
  auto type = RankedTensorType::get(shape, x.element());
  p.pushLike(tensor::ExpandShapeOp::create(p.b, p.loc, type, x.value, groups), x);
  return true;
}

static bool collapseShape(ProgramBuilder &p) {
  Entry x = p.any(2, 5);
  if (!x.value)
    return false;
  SmallVector<ReassociationIndices> groups(1);
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d > 0 && p.random.percent(50))
      groups.emplace_back();
    groups.back().push_back(d);
  }
  p.pushLike(tensor::CollapseShapeOp::create(p.b, p.loc, x.value, groups), x);
  return true;
}

static bool concat(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  int64_t dim = p.random.between(0, x.rank() - 1);
  SmallVector<Entry> parts{x};
  SmallVector<Value> values{x.value};
  for (int64_t more = p.random.between(1, 2); more > 0; --more) {
    Shape shape(x.shape());
    shape[dim] = p.random.percent(40) ? shape[dim] : p.random.between(1, 9);
    parts.push_back(p.ofType(shape, x.element()));
    values.push_back(parts.back().value);
  }
  p.pushLike(tensor::ConcatOp::create(p.b, p.loc, dim, values), parts);
  return true;
}

/// A random box of a shape: offsets, sizes, strides.
static void anyBox(ProgramBuilder &p, ArrayRef<int64_t> shape, SmallVector<OpFoldResult> &offsets,
                   SmallVector<OpFoldResult> &sizes, SmallVector<OpFoldResult> &strides,
                   Shape &extents) {
  for (int64_t extent : shape) {
    int64_t offset = p.random.percent(40) ? 0 : p.random.between(0, extent - 1);
    int64_t stride = p.random.percent(80) ? 1 : p.random.between(1, 3);
    int64_t most = (extent - offset - 1) / stride + 1;
    int64_t size = p.random.percent(40) ? most : p.random.between(1, most);
    offsets.push_back(p.b.getIndexAttr(offset));
    sizes.push_back(p.b.getIndexAttr(size));
    strides.push_back(p.b.getIndexAttr(stride));
    extents.push_back(size);
  }
}

static bool extractSlice(ProgramBuilder &p) {
  Entry x = p.any(1, 4);
  if (!x.value)
    return false;
  SmallVector<OpFoldResult> offsets, sizes, strides;
  Shape extents;
  anyBox(p, x.shape(), offsets, sizes, strides, extents);
  // Sometimes drops dimensions of extent 1.
  Shape kept;
  bool drops = p.random.percent(25);
  for (int64_t extent : extents)
    if (extent != 1 || !drops || p.random.percent(50))
      kept.push_back(extent);
  auto type = RankedTensorType::get(kept, x.element());
  p.pushLike(tensor::ExtractSliceOp::create(p.b, p.loc, type, x.value, offsets, sizes, strides), x);
  return true;
}

static bool insertSlice(ProgramBuilder &p) {
  Entry into = p.any(1, 4);
  if (!into.value)
    return false;
  SmallVector<OpFoldResult> offsets, sizes, strides;
  Shape extents;
  anyBox(p, into.shape(), offsets, sizes, strides, extents);
  Entry x = p.ofType(extents, into.element());
  p.pushLike(
      tensor::InsertSliceOp::create(p.b, p.loc, x.value, into.value, offsets, sizes, strides),
      {x, into});
  return true;
}

static bool pad(ProgramBuilder &p) {
  Entry x = p.any(1, 4);
  if (!x.value)
    return false;
  SmallVector<OpFoldResult> low, high;
  Shape shape;
  for (int64_t extent : x.shape()) {
    bool here = p.random.percent(50);
    int64_t before = here ? p.random.between(0, 2) : 0, after = here ? p.random.between(0, 3) : 0;
    low.push_back(p.b.getIndexAttr(before));
    high.push_back(p.b.getIndexAttr(after));
    shape.push_back(before + extent + after);
  }
  Value fill = p.constant(x.element(), p.random.percent(60) ? 0 : 3);
  auto type = RankedTensorType::get(shape, x.element());
  Value value = tensor::PadOp::create(p.b, p.loc, type, x.value, low, high, fill);
  p.pushLike(value, {x, Entry{value, 0, 3}});
  return true;
}

void tessera::fuzz::addShapeKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"transpose", 7, transpose});
  kinds.push_back({"expand-shape", 6, expandShape});
  kinds.push_back({"collapse-shape", 6, collapseShape});
  kinds.push_back({"concat", 5, concat});
  kinds.push_back({"extract-slice", 6, extractSlice});
  kinds.push_back({"insert-slice", 5, insertSlice});
  kinds.push_back({"pad", 5, pad});
}
