//===- SelectParts.cpp - Sums of one element, and its places --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SelectParts.h"

#include "ConstantTensors.h"
#include "MergeSums.h"
#include "PlainOps.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// Elements of a value where a loop has one index, zero elsewhere.
struct Selection {
  OpOperand *value; ///< what is selected
  unsigned loop;    ///< of the op
  int64_t index, extent;
};

} // namespace

static bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

/// What an elementwise op selects, by a mask along one of its loops.
static std::optional<Selection> selectionOf(linalg::GenericOp op, ConstantTensors &constants) {
  if (!op || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || !isPlain(op) ||
      op.getNumReductionLoops() > 0 || !op.getIndexingMapsArray()[2].isIdentity())
    return std::nullopt;
  auto select = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
  if (!select || select->getBlock() != op.getBody() || !isZero(select.getFalseValue()))
    return std::nullopt;
  auto condition = dyn_cast<BlockArgument>(select.getCondition()),
       value = dyn_cast<BlockArgument>(select.getTrueValue());
  if (!condition || !value || condition.getOwner() != op.getBody() ||
      value.getOwner() != op.getBody() || condition.getArgNumber() > 1 || value.getArgNumber() > 1)
    return std::nullopt;
  OpOperand &mask = op->getOpOperand(condition.getArgNumber());
  std::optional<unsigned> loop;
  AffineMap map = op.getMatchingIndexingMap(&mask);
  for (AffineExpr index : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(index); dim && !loop)
      loop = dim.getPosition();
    else if (index != getAffineConstantExpr(0, op.getContext()))
      return std::nullopt;
  }
  // Other dimensions are read at zero: they must have one element for the mask to be a line.
  auto type = cast<RankedTensorType>(mask.get().getType());
  if (!loop || type.getNumElements() != op.getStaticLoopRanges()[*loop])
    return std::nullopt;
  Value source = mask.get();
  while (auto constraint = source.getDefiningOp<ShardTensorOp>())
    source = constraint.getOperand();
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp, ShardTensorOp>(
      source.getDefiningOp())) // the elements of a line stay in order
    source = source.getDefiningOp()->getOperand(0);
  const ConstantTensors::Elements *elements = constants.of(source);
  if (!elements || llvm::count_if(*elements, [](double each) { return each != 0; }) != 1)
    return std::nullopt;
  auto at = llvm::find_if(*elements, [](double each) { return each != 0; });
  return Selection{&op->getOpOperand(value.getArgNumber()), *loop, at - elements->begin(),
                   static_cast<int64_t>(elements->size())};
}

/// A sum over the selected loop alone, whose other loops keep their order.
static void sliceSum(linalg::LinalgOp sum, ConstantTensors &constants) {
  auto op = sum->getOperand(0).getDefiningOp<linalg::GenericOp>();
  std::optional<Selection> found = selectionOf(op, constants);
  if (!found || sum.getNumReductionLoops() != 1)
    return;
  AffineMap read = sum.getIndexingMapsArray()[0], made = sum.getIndexingMapsArray()[1];
  auto type = cast<RankedTensorType>(found->value->get().getType());
  unsigned next = 0;
  for (unsigned d = 0; d < read.getNumResults(); ++d) {
    bool isSummed =
        sum.getIteratorTypesArray()[read.getDimPosition(d)] == utils::IteratorType::reduction;
    if (isSummed != (d == found->loop) ||
        (!isSummed && made.getResult(next++) != read.getResult(d)))
      return;
  }
  if (!op.getMatchingIndexingMap(found->value).isIdentity())
    return;
  OpBuilder b(sum);
  SmallVector<OpFoldResult> offsets, sizes, strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t d = 0; d < type.getRank(); ++d) {
    bool isSelected = d == static_cast<int64_t>(found->loop);
    offsets.push_back(b.getIndexAttr(isSelected ? found->index : 0));
    sizes.push_back(b.getIndexAttr(isSelected ? 1 : type.getDimSize(d)));
  }
  auto slice = tensor::ExtractSliceOp::create(b, sum.getLoc(),
                                              cast<RankedTensorType>(sum->getResult(0).getType()),
                                              found->value->get(), offsets, sizes, strides);
  sum->getResult(0).replaceAllUsesWith(slice);
  sum->erase();
  if (op->use_empty())
    op.erase();
}

/// A value that the selected loop does not index.
static void padSelected(linalg::GenericOp op, ConstantTensors &constants) {
  std::optional<Selection> found = selectionOf(op, constants);
  if (!found)
    return;
  AffineMap read = op.getMatchingIndexingMap(found->value);
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  auto from = cast<RankedTensorType>(found->value->get().getType());
  if (from.getRank() == 0 || read.getNumResults() + 1 != op.getNumLoops())
    return;
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> groups(from.getRank());
  for (unsigned loop = 0, d = 0; loop < op.getNumLoops(); ++loop) {
    bool isSelected = loop == found->loop;
    if (!isSelected && read.getResult(d) != getAffineDimExpr(loop, op.getContext()))
      return;
    shape.push_back(isSelected ? 1 : to.getDimSize(loop));
    groups[std::min<int64_t>(d, from.getRank() - 1)].push_back(loop);
    d += !isSelected;
  }
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value one = tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, to.getElementType()), found->value->get(), groups);
  SmallVector<OpFoldResult> low(to.getRank(), b.getIndexAttr(0)), high = low;
  low[found->loop] = b.getIndexAttr(found->index);
  high[found->loop] = b.getIndexAttr(found->extent - 1 - found->index);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(to.getElementType()));
  auto pad = tensor::PadOp::create(b, loc, to, one, low, high, zero);
  op->getResult(0).replaceAllUsesWith(pad);
  op.erase();
}

void dist::selectParts(func::FuncOp function) {
  ConstantTensors constants;
  SmallVector<linalg::LinalgOp> sums;
  SmallVector<linalg::GenericOp> others;
  function.walk([&](linalg::LinalgOp op) {
    if (isPlainSum(op))
      sums.push_back(op);
  });
  for (linalg::LinalgOp op : sums)
    sliceSum(op, constants);
  function.walk([&](linalg::GenericOp op) { others.push_back(op); });
  for (linalg::GenericOp op : others)
    padSelected(op, constants);
}
