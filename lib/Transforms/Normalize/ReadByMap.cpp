//===- ReadByMap.cpp - Look-ups at computable indices ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops on index tensors compute the indices of a look-up. If these are computed from
// iotas and constants, an element is an affine function of its index (AffineValues.h).
//
//===----------------------------------------------------------------------===//

#include "ReadByMap.h"

#include "AffineValues.h"
#include "ConstantIndices.h"
#include "ConstantTensors.h"
#include "ElementRanges.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Beyond this number, indices are evaluated as whole tensors only.
static constexpr int64_t kMostIndices = 4096;

//===----------------------------------------------------------------------===//
// Look-ups
//===----------------------------------------------------------------------===//

/// Whether all elements of a tensor are known to be zero: also those of copies of known tensors.
static bool isZeroTensor(Value value, ConstantTensors &constants) {
  constexpr int kMostSteps = 8;
  for (int step = 0; step < kMostSteps; ++step) {
    if (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()))
      return true;
    if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
      value = fill.getInputs()[0];
      continue;
    }
    auto copy = value.getDefiningOp<linalg::GenericOp>();
    if (!copy || copy.getNumDpsInputs() != 1 || copy->getNumResults() != 1 ||
        copy.getBody()->getTerminator()->getOperand(0) != copy.getBody()->getArgument(0))
      break;
    value = copy.getInputs()[0];
  }
  if (!isa<RankedTensorType>(value.getType()))
    return false;
  const ConstantTensors::Elements *elements = constants.of(value);
  return elements && llvm::all_of(*elements, [](double element) { return element == 0; });
}

/// The input from which the op selects an element: the op sums one of its elements and zeros,
/// starting from zero. Null for other ops.
static BlockArgument lookedUp(linalg::GenericOp op, ConstantTensors &constants) {
  Operation *sum = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum) || op.getNumDpsInits() != 1)
    return {};
  BlockArgument accumulator = op.getBody()->getArguments().back();
  bool first = sum->getOperand(0) == accumulator;
  auto select = sum->getOperand(first ? 1 : 0).getDefiningOp<arith::SelectOp>();
  if (!select || (!first && sum->getOperand(1) != accumulator) ||
      !select.getCondition().getDefiningOp<arith::CmpIOp>())
    return {};
  auto element = dyn_cast<BlockArgument>(select.getTrueValue());
  auto isZero = [](Value value) {
    return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
  };
  return element && element.getOwner() == op.getBody() && element != accumulator &&
                 isZero(select.getFalseValue()) && isZeroTensor(op.getDpsInits()[0], constants)
             ? element
             : BlockArgument();
}

/// The number of repetitions of each element if all runs are plain repetitions; else 1.
static int64_t repetitionsOf(ArrayRef<int64_t> indices) {
  int64_t count = std::ssize(indices), times = 1;
  while (times < count && indices[times] == indices[0])
    ++times;
  if (count % times != 0)
    return 1;
  for (int64_t i = 0; i < count; ++i)
    if (indices[i] != indices[0] + i / times)
      return 1;
  return times;
}

/// Elements `first` to `first + count - 1` of a dimension, each repeated `times` times.
static Value repeat(OpBuilder &b, Location loc, Value table, int64_t dim, int64_t first,
                    int64_t count, int64_t times) {
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      strides(shape.size(), b.getIndexAttr(1));
  offsets[dim] = b.getIndexAttr(first);
  if (shape[dim] != count) {
    shape[dim] = count;
    table = tensor::ExtractSliceOp::create(b, loc, type.clone(shape), table, offsets,
                                           getAsIndexOpFoldResult(b.getContext(), shape), strides);
  }
  shape.insert(shape.begin() + dim + 1, times);
  int64_t rank = std::ssize(shape);
  SmallVector<AffineExpr> read;
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != dim + 1) {
      read.push_back(getAffineDimExpr(d, b.getContext()));
      groups.push_back({d});
    } else {
      groups.back().push_back(d);
    }
  }
  Value init = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto repeated =
      linalg::GenericOp::create(b, loc, init.getType(), table, init,
                                ArrayRef<AffineMap>{AffineMap::get(rank, 0, read, b.getContext()),
                                                    b.getMultiDimIdentityMap(rank)},
                                iterators, [](OpBuilder &body, Location at, ValueRange arguments) {
                                  linalg::YieldOp::create(body, at, arguments[0]);
                                });
  return tensor::CollapseShapeOp::create(b, loc, repeated.getResult(0), groups);
}

/// The values of an index that is an element of a known tensor over one loop, `expr`.
static std::optional<SmallVector<int64_t>> elementsOf(linalg::GenericOp op, Value index,
                                                      AffineExpr expr, ConstantTensors &constants) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument || argument.getOwner() != op.getBody() ||
      argument.getArgNumber() >= op.getNumDpsInputs() ||
      op.getIndexingMapsArray()[argument.getArgNumber()].getResults() != ArrayRef(expr))
    return std::nullopt;
  const ConstantTensors::Elements *elements = constants.of(op.getInputs()[argument.getArgNumber()]);
  if (!elements)
    return std::nullopt;
  return llvm::map_to_vector(*elements, [](double number) { return static_cast<int64_t>(number); });
}

/// Reads a table at constant indices: as repeated elements, or as a few runs. `element` is the
/// look-up's argument for the table; the selected loop is compared with `index`. Returns whether
/// the op was replaced.
static bool readByRuns(linalg::GenericOp op, BlockArgument element, Value index, unsigned loop,
                       ConstantTensors &constants) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap read = maps[element.getArgNumber()], written = maps.back();
  AffineExpr searched = getAffineDimExpr(loop, op.getContext());
  for (auto [dim, expr] : llvm::enumerate(written.getResults())) {
    // The result is the table with the indexed dimension replaced by another one.
    if (!isa<AffineDimExpr>(expr) || read.getNumResults() != written.getNumResults() ||
        read.getResult(dim) != searched ||
        read.replace(searched, expr, op.getNumLoops(), 0) != written)
      continue;
    OpBuilder b(op);
    Value table = op.getInputs()[element.getArgNumber()], made;
    auto d = static_cast<int64_t>(dim);
    int64_t rows = op.getStaticLoopRanges()[loop];
    auto replace = [&](Value by) {
      op->getResult(0).replaceAllUsesWith(by);
      op.erase();
      return true;
    };
    int64_t count = cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(d);
    if (auto argument = dyn_cast<BlockArgument>(index);
        argument && count > kMostIndices &&
        maps[argument.getArgNumber()].getResults() == ArrayRef(expr))
      if (int64_t times = ElementRanges().repetitionsOf(op.getDpsInputs()[argument.getArgNumber()]);
          times > 1 && count % times == 0 && count / times <= rows)
        return replace(repeat(b, op.getLoc(), table, d, 0, count / times, times));
    std::optional<SmallVector<int64_t>> indices =
        count > kMostIndices
            ? elementsOf(op, index, expr, constants)
            : valuesOver(op, index, cast<AffineDimExpr>(expr).getPosition(), kMostIndices);
    if (!indices || llvm::any_of(*indices, [&](int64_t i) { return i < 0 || i >= rows; }))
      return false; // an index out of bounds selects nothing
    if (int64_t times = repetitionsOf(*indices); times > 1) {
      made =
          repeat(b, op.getLoc(), table, d, indices->front(), std::ssize(*indices) / times, times);
    } else {
      SmallVector<sharding::Segment> runs = runsOf(*indices);
      if (runs.empty())
        return false;
      SmallVector<int64_t> fields;
      for (const sharding::Segment &run : runs)
        llvm::append_range(
            fields, ArrayRef<int64_t>{run.from, run.fromStep, run.to, run.toStep, run.count});
      made = RearrangeOp::create(b, op.getLoc(), cast<RankedTensorType>(op->getResult(0).getType()),
                                 SmallVector<Value>(runs.size(), table), d, fields, TypedAttr());
    }
    return replace(made);
  }
  return false;
}

/// Whether the op was replaced.
static bool readByMap(linalg::GenericOp op, ConstantTensors &constants) {
  BlockArgument element = lookedUp(op, constants);
  if (!element)
    return false;
  SmallVector<SelectedLoop, 2> selected = selectedLoops(op);
  if (selected.size() != 1 || !selected[0].offsets.empty() || op.getNumReductionLoops() != 1 ||
      op.getIteratorTypesArray()[selected[0].loop] != utils::IteratorType::reduction)
    return false;
  unsigned loop = selected[0].loop;
  AffineValues functions(op);
  AffineExpr place = functions.of(selected[0].index);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap read = maps[element.getArgNumber()];
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  // The table is indexed by the loop itself, once; the result has all other loops, in order.
  AffineExpr searched = getAffineDimExpr(loop, op.getContext());
  int64_t uses = llvm::count(read.getResults(), searched);
  bool isPlain =
      llvm::all_of(read.getResults(), [&](AffineExpr expr) { return isa<AffineDimExpr>(expr); });
  if (!place && uses == 1 && isPlain && op->getDiscardableAttrs().empty())
    return readByRuns(op, element, selected[0].index, loop, constants);
  if (!place || place.isFunctionOfDim(loop) || uses != 1 || !isPlain)
    return false;
  // A diagonal stays a look-up, whose loops may be cut (ReadDiagonals.cpp).
  if (llvm::any_of(read.getResults(), [&](AffineExpr expr) {
        return place.isFunctionOfDim(cast<AffineDimExpr>(expr).getPosition());
      }))
    return false;
  std::optional<AffineValues::Interval> range = functions.rangeOf(place);
  if (!range || range->low < 0 || range->high >= extents[loop])
    return false; // an index out of bounds selects nothing
  SmallVector<AffineExpr> renumbered;
  unsigned next = 0;
  for (unsigned d = 0; d < extents.size(); ++d)
    renumbered.push_back(d == loop ? place : getAffineDimExpr(next++, op.getContext()));
  SmallVector<AffineExpr> rest = renumbered; // of `place` itself
  renumbered[loop] = place.replaceDims(rest);
  AffineMap written = maps.back();
  if (written.getNumResults() != next)
    return false;
  for (auto [d, expr] : llvm::enumerate(written.getResults()))
    if (expr.replaceDims(renumbered) != getAffineDimExpr(d, op.getContext()))
      return false;
  OpBuilder b(op);
  SmallVector<AffineExpr> places;
  for (AffineExpr expr : read.getResults())
    places.push_back(expr.replaceDims(renumbered));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value init = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(next, utils::IteratorType::parallel);
  AffineMap reads = AffineMap::get(next, 0, places, b.getContext());
  Value table =
      readPart(b, op.getLoc(), op.getInputs()[element.getArgNumber()], reads, type.getShape());
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), type, table, init, ArrayRef<AffineMap>{reads, b.getMultiDimIdentityMap(next)},
      iterators, [](OpBuilder &body, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(body, loc, arguments[0]);
      });
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->getResult(0).replaceAllUsesWith(made.getResult(0));
  op.erase();
  return true;
}

void dist::readByMap(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  ConstantTensors constants; // of ops that are there
  for (linalg::GenericOp op : ops)
    if (::readByMap(op, constants))
      constants = ConstantTensors();
}
