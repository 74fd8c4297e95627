//===- MergeGroupRows.cpp - One dimension of rows of groups ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each token chooses several groups:
//
//   y[t, c, n] = sum over g, k of select(group[t, c] == g, x[t, k] w[g, k, n], 0)
//
// Blocks of rows of one group (LowerGroups.cpp) are of one dimension r = (t, c). What lacks
// some of the dimensions is copied for these:
//
//   y[r, n] = sum over g, k of select(group[r] == g, x[r, k] w[g, k, n], 0)
//
//===----------------------------------------------------------------------===//

#include "MergeGroupRows.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;

namespace {
/// An operand with merged rows.
struct Merged {
  Value value;
  AffineMap map; ///< over the loops of before
};
} // namespace

static bool hasRow(AffineMap map, ArrayRef<unsigned> rows) {
  return llvm::any_of(rows, [&](unsigned row) { return map.isFunctionOfDim(row); });
}

/// The first of consecutive dimensions that are the rows; nothing if they are not.
static std::optional<unsigned> firstRowDim(AffineMap map, ArrayRef<unsigned> rows) {
  std::optional<unsigned> first =
      map.getResultPosition(getAffineDimExpr(rows[0], map.getContext()));
  if (!first || *first + rows.size() > map.getNumResults())
    return std::nullopt;
  for (auto [n, row] : llvm::enumerate(rows))
    if (map.getDimPosition(*first + n) != row)
      return std::nullopt;
  return first;
}

/// Dimensions of a tensor before rows are merged, by those after.
static SmallVector<ReassociationIndices> mergedDims(int64_t rank, int64_t first, int64_t count) {
  SmallVector<ReassociationIndices> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim <= first || dim >= first + count)
      dims.push_back({dim});
    else
      dims.back().push_back(dim);
  return dims;
}

static Merged merge(OpBuilder &b, Value value, AffineMap map, ArrayRef<unsigned> rows,
                    unsigned first) {
  auto count = static_cast<unsigned>(rows.size());
  SmallVector<AffineExpr> exprs(map.getResults());
  exprs.erase(exprs.begin() + first + 1, exprs.begin() + first + count);
  return {tensor::CollapseShapeOp::create(b, value.getLoc(), value,
                                          mergedDims(map.getNumResults(), first, count)),
          AffineMap::get(map.getNumDims(), 0, exprs, b.getContext())};
}

/// A copy with all rows in front.
static Merged copyRows(OpBuilder &b, Value value, AffineMap map, ArrayRef<unsigned> rows,
                       ArrayRef<int64_t> extents) {
  Location loc = value.getLoc();
  SmallVector<AffineExpr> all;
  for (unsigned row : rows)
    all.push_back(b.getAffineDimExpr(row));
  for (AffineExpr expr : map.getResults())
    if (!llvm::is_contained(rows, cast<AffineDimExpr>(expr).getPosition()))
      all.push_back(expr);
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> read(extents.size(), b.getAffineConstantExpr(0));
  for (auto [dim, expr] : llvm::enumerate(all)) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    shape.push_back(extents[loop]);
    read[loop] = b.getAffineDimExpr(dim);
  }
  Value empty = tensor::EmptyOp::create(b, loc, shape, getElementTypeOrSelf(value.getType()));
  SmallVector<AffineMap> maps{map.replaceDimsAndSymbols(read, {}, shape.size(), 0),
                              b.getMultiDimIdentityMap(shape.size())};
  SmallVector<utils::IteratorType> loops(shape.size(), utils::IteratorType::parallel);
  Value copy = linalg::GenericOp::create(b, loc, TypeRange(empty.getType()), ValueRange(value),
                                         ValueRange(empty), maps, loops,
                                         [&](OpBuilder &in, Location, ValueRange arguments) {
                                           linalg::YieldOp::create(in, loc, arguments[0]);
                                         })
                   .getResult(0);
  return merge(b, copy, AffineMap::get(map.getNumDims(), 0, all, b.getContext()), rows, 0);
}

linalg::GenericOp codegen::mergeGroupRows(linalg::GenericOp op,
                                          const dist::GroupedProduct &product) {
  ArrayRef<unsigned> rows = product.rows;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  WalkResult numbered = op.getBody()->walk([&](linalg::IndexOp index) {
    return llvm::is_contained(rows, index.getDim()) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
  });
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  std::optional<unsigned> outRow;
  if (hasRow(maps.back(), rows) && !(outRow = firstRowDim(maps.back(), rows)))
    return {};
  if (numbered.wasInterrupted())
    return {};
  OpBuilder b(op);
  SmallVector<Value> operands(op->getOperands());
  for (auto [value, map] : llvm::zip_equal(operands, maps)) {
    if (!hasRow(map, rows))
      continue;
    std::optional<unsigned> first = firstRowDim(map, rows);
    Merged merged =
        first ? merge(b, value, map, rows, *first) : copyRows(b, value, map, rows, extents);
    value = merged.value;
    map = merged.map;
  }
  // The first loop over rows is over all of them.
  SmallVector<AffineExpr> renumbered;
  SmallVector<int64_t> numbers;
  SmallVector<utils::IteratorType> iterators;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    renumbered.push_back(b.getAffineDimExpr(iterators.size()));
    numbers.push_back(static_cast<int64_t>(iterators.size()));
    if (!llvm::is_contained(rows.drop_front(), loop))
      iterators.push_back(kind);
  }
  for (AffineMap &map : maps)
    map = map.replaceDimsAndSymbols(renumbered, {}, iterators.size(), 0);
  auto merged =
      linalg::GenericOp::create(b, op.getLoc(), TypeRange(operands.back().getType()),
                                ArrayRef(operands).drop_back(), operands.back(), maps, iterators);
  merged->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping mapping;
  op.getRegion().cloneInto(&merged.getRegion(), mapping);
  merged.walk([&](linalg::IndexOp index) { index.setDim(numbers[index.getDim()]); });
  Value result = merged.getResult(0);
  if (outRow)
    result = tensor::ExpandShapeOp::create(
        b, op.getLoc(), op->getResult(0).getType(), result,
        mergedDims(maps.back().getNumResults() + rows.size() - 1, *outRow, rows.size()));
  op->getResult(0).replaceAllUsesWith(result);
  op.erase();
  return merged;
}
