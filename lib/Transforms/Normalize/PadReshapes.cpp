//===- PadReshapes.cpp - Reshapes of dimensions cut unevenly --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of a convolution with stride 2 computes pairs, of which the last may be half:
//
//   y: 2051x2    collapse y: 4102    x = slice of it: 4101
//
// Eight devices hold 257 rows of y, the first 514 elements of the collapsed tensor, but of
// x 513. A reshape cannot be cut so, and moves to another dimension and back. If rows are
// padded to a multiple of the devices,
//
//   pad y: 2056x2    collapse: 4112    x = slice of it: 4101
//
// the reshape is cut evenly, the pad moves nothing, and the slice exchanges a few
// elements of neighbors.
//
//===----------------------------------------------------------------------===//

#include "PadReshapes.h"

#include "ConnectedDims.h"
#include "PlainOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Rows for each device below which padding would leave too many devices without any.
static constexpr int64_t kLeastRows = 4;

namespace {

/// A dimension of the merged tensor, and the outermost of the dimensions that it consists of.
struct Padding {
  int64_t merged, outer;
  int64_t rows, padded, inner; ///< rows of `inner` elements; `padded` is a multiple of the devices
};

} // namespace

static std::optional<Padding> paddingOf(Value merged, Value split,
                                        ArrayRef<ReassociationIndices> groups,
                                        const ConnectedDims &dims) {
  auto type = cast<RankedTensorType>(split.getType());
  for (auto [position, group] : llvm::enumerate(groups)) {
    auto outer = llvm::find_if(group, [&](int64_t d) { return type.getDimSize(d) != 1; });
    if (outer == group.end())
      continue;
    int64_t rows = type.getDimSize(*outer), inner = 1;
    for (int64_t d : group)
      inner *= d == *outer ? 1 : type.getDimSize(d);
    auto at = static_cast<int64_t>(position);
    int64_t devices = std::max(dims.partsOf({split, *outer}), dims.partsOf({merged, at}));
    if (inner == 1 || devices < 2 || rows % devices == 0 || rows < kLeastRows * devices)
      continue;
    return Padding{at, *outer, rows, (rows / devices + 1) * devices, inner};
  }
  return std::nullopt;
}

static RankedTensorType withExtent(Type type, int64_t dim, int64_t extent) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = extent;
  return tensor.clone(shape);
}

static Value pad(OpBuilder &b, Location loc, Value value, int64_t dim, int64_t extent) {
  RankedTensorType type = withExtent(value.getType(), dim, extent);
  SmallVector<int64_t> low(type.getRank(), 0), high(type.getRank(), 0);
  high[dim] = extent - cast<RankedTensorType>(value.getType()).getDimSize(dim);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(b, loc, type, value, getAsIndexOpFoldResult(b.getContext(), low),
                               getAsIndexOpFoldResult(b.getContext(), high), zero);
}

static Value slice(OpBuilder &b, Location loc, Value value, RankedTensorType type) {
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      strides(type.getRank(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, type, value, offsets,
                                        getAsIndexOpFoldResult(b.getContext(), type.getShape()),
                                        strides);
}

static void padCollapse(tensor::CollapseShapeOp op, const Padding &padding) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value rows = pad(b, loc, op.getSrc(), padding.outer, padding.padded);
  Value merged = tensor::CollapseShapeOp::create(
      b, loc, withExtent(op.getType(), padding.merged, padding.padded * padding.inner), rows,
      op.getReassociationIndices());
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (auto part = dyn_cast<tensor::ExtractSliceOp>(user); part && isPlainSlice(part))
      part.getSourceMutable().assign(merged);
  if (!op->use_empty())
    op.getResult().replaceAllUsesWith(slice(b, loc, merged, cast<RankedTensorType>(op.getType())));
  op.erase();
}

static void padExpand(tensor::ExpandShapeOp op, const Padding &padding) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value source = pad(b, loc, op.getSrc(), padding.merged, padding.padded * padding.inner);
  Value split =
      tensor::ExpandShapeOp::create(b, loc, withExtent(op.getType(), padding.outer, padding.padded),
                                    source, op.getReassociationIndices());
  op.getResult().replaceAllUsesWith(slice(b, loc, split, cast<RankedTensorType>(op.getType())));
  op.erase();
}

void dist::padReshapes(func::FuncOp function, const MeshTable &meshes) {
  SmallVector<Operation *> reshapes;
  function.walk([&](Operation *op) {
    auto result = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                           : RankedTensorType();
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op) && isPlain(op) && result &&
        result.getElementType().isIntOrFloat())
      reshapes.push_back(op);
  });
  if (reshapes.empty() || meshes.empty())
    return;
  std::optional<ConnectedDims> dims = ConnectedDims::of(function, meshes);
  if (!dims)
    return;
  SmallVector<std::pair<Operation *, Padding>> paddings;
  for (Operation *op : reshapes) {
    auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
    std::optional<Padding> padding =
        collapse ? paddingOf(collapse.getResult(), collapse.getSrc(),
                             collapse.getReassociationIndices(), *dims)
                 : paddingOf(op->getOperand(0), op->getResult(0),
                             cast<tensor::ExpandShapeOp>(op).getReassociationIndices(), *dims);
    if (padding)
      paddings.emplace_back(op, *padding);
  }
  for (auto &[op, padding] : paddings) {
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      padCollapse(collapse, padding);
    else
      padExpand(cast<tensor::ExpandShapeOp>(op), padding);
  }
}
