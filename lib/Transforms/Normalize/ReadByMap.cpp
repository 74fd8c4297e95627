//===- ReadByMap.cpp - Look-ups at computable indices ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops on index tensors compute the indices of a look-up. If they start from iotas and
// constants, an element is an affine function of its position: its range decides
// comparisons and clamps, everything else is arithmetic on affine functions.
//
//===----------------------------------------------------------------------===//

#include "ReadByMap.h"

#include "ConstantIndices.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limit on the depth of the ops that compute indices.
static constexpr int kMostSteps = 24;
/// Larger values are treated as unknown, so that sums of values do not overflow.
static constexpr int64_t kFar = int64_t(1) << 40;
/// Limit on the number of indices evaluated at compile time.
static constexpr int64_t kMostIndices = 4096;

namespace {

struct Interval {
  int64_t low, high; ///< both included
};

/// Integers of a body as affine functions of the loops of its op.
class Functions {
public:
  explicit Functions(linalg::GenericOp op, int steps)
      : op(op), context(op.getContext()), steps(steps), extents(op.getStaticLoopRanges()) {}

  /// Null if a value is not known to be affine. A condition that is always true is 1, one that is
  /// always false 0.
  AffineExpr of(Value value);
  /// Nothing if it is unknown or too large.
  std::optional<Interval> rangeOf(AffineExpr expr) const;

private:
  AffineExpr compute(Value value);
  AffineExpr compare(arith::CmpIOp compare);
  /// The function, if all its values fit the type.
  AffineExpr within(AffineExpr expr, Type type) const;
  AffineExpr constant(int64_t value) const { return getAffineConstantExpr(value, context); }

  linalg::GenericOp op;
  MLIRContext *context;
  int steps;
  SmallVector<int64_t> extents;
  llvm::DenseMap<Value, AffineExpr> known; ///< looked up only
};

} // namespace

/// The elements of a tensor as an affine function of their indices; null if they are not.
static AffineExpr elementsOf(Value tensor, int steps) {
  DenseElementsAttr elements;
  if (matchPattern(tensor, m_Constant(&elements)) && elements.isSplat() &&
      elements.getElementType().isInteger()) {
    APInt number = elements.getSplatValue<APInt>();
    if (number.getSignificantBits() > 40)
      return {};
    int64_t value = number.getBitWidth() == 1 ? number.getZExtValue() : number.getSExtValue();
    return getAffineConstantExpr(value, tensor.getContext());
  }
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  if (steps == 0 || !generic || generic->getNumResults() != 1 ||
      generic.getNumReductionLoops() > 0 || !generic.hasPureTensorSemantics() ||
      !generic.getIndexingMapsArray().back().isIdentity())
    return {};
  return Functions(generic, steps - 1).of(generic.getBody()->getTerminator()->getOperand(0));
}

std::optional<Interval> Functions::rangeOf(AffineExpr expr) const {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    int64_t extent = extents[dim.getPosition()];
    return extent > 0 && extent < kFar ? std::optional(Interval{0, extent - 1}) : std::nullopt;
  }
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return Interval{number.getValue(), number.getValue()};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<Interval> left = rangeOf(binary.getLHS()), right = rangeOf(binary.getRHS());
  if (!left || !right)
    return std::nullopt;
  Interval result{};
  if (expr.getKind() == AffineExprKind::Add) {
    result = {left->low + right->low, left->high + right->high};
  } else if (expr.getKind() == AffineExprKind::Mul && right->low == right->high) {
    int64_t a, b;
    if (llvm::MulOverflow(left->low, right->low, a) || llvm::MulOverflow(left->high, right->low, b))
      return std::nullopt;
    result = {std::min(a, b), std::max(a, b)};
  } else {
    return std::nullopt;
  }
  return result.low > -kFar && result.high < kFar ? std::optional(result) : std::nullopt;
}

AffineExpr Functions::within(AffineExpr expr, Type type) const {
  if (!expr)
    return {};
  expr = simplifyAffineExpr(expr, extents.size(), 0);
  std::optional<Interval> range = rangeOf(expr);
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (!range || (width < 64 && (range->low < -(int64_t(1) << (width - 1)) ||
                                range->high >= int64_t(1) << (width - 1))))
    return {};
  return expr;
}

AffineExpr Functions::of(Value value) {
  auto [it, isNew] = known.try_emplace(value);
  if (!isNew)
    return it->second;
  AffineExpr result = compute(value);
  return known[value] = result;
}

AffineExpr Functions::compare(arith::CmpIOp compare) {
  AffineExpr left = of(compare.getLhs()), right = of(compare.getRhs());
  if (!left || !right)
    return {};
  std::optional<Interval> by = rangeOf(simplifyAffineExpr(left - right, extents.size(), 0));
  if (!by)
    return {};
  auto decide = [&](bool always, bool never) {
    return always ? constant(1) : never ? constant(0) : AffineExpr();
  };
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return decide(by->high < 0, by->low >= 0);
  case arith::CmpIPredicate::sle:
    return decide(by->high <= 0, by->low > 0);
  case arith::CmpIPredicate::sgt:
    return decide(by->low > 0, by->high <= 0);
  case arith::CmpIPredicate::sge:
    return decide(by->low >= 0, by->high < 0);
  case arith::CmpIPredicate::eq:
    return decide(by->low == 0 && by->high == 0, by->low > 0 || by->high < 0);
  case arith::CmpIPredicate::ne:
    return decide(by->low > 0 || by->high < 0, by->low == 0 && by->high == 0);
  default:
    return {};
  }
}

AffineExpr Functions::compute(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) && number.getSignificantBits() <= 40)
    return constant(value.getType().isInteger(1) ? number.getZExtValue() : number.getSExtValue());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
      return {};
    AffineExpr elements = elementsOf(op.getInputs()[argument.getArgNumber()], steps);
    AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
    return elements ? simplifyAffineExpr(elements.replaceDims(map.getResults()), extents.size(), 0)
                    : AffineExpr();
  }
  Operation *producer = value.getDefiningOp();
  if (producer->getBlock() != op.getBody())
    return {};
  if (auto index = dyn_cast<linalg::IndexOp>(producer))
    return getAffineDimExpr(index.getDim(), op.getContext());
  if (auto comparison = dyn_cast<arith::CmpIOp>(producer))
    return compare(comparison);
  auto operand = [&](unsigned n) { return of(producer->getOperand(n)); };
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(producer))
    return producer->getOperand(0).getType().isInteger(1) ? AffineExpr()
                                                          : within(operand(0), value.getType());
  if (isa<arith::SelectOp>(producer)) {
    auto condition = dyn_cast_or_null<AffineConstantExpr>(operand(0));
    return condition ? operand(condition.getValue() ? 1 : 2) : AffineExpr();
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MaxSIOp, arith::MinSIOp>(producer))
    return {};
  AffineExpr left = operand(0), right = operand(1);
  if (!left || !right || value.getType().isInteger(1))
    return {};
  if (isa<arith::AddIOp>(producer))
    return within(left + right, value.getType());
  if (isa<arith::SubIOp>(producer))
    return within(left - right, value.getType());
  if (isa<arith::MulIOp>(producer))
    return isa<AffineConstantExpr>(left) || isa<AffineConstantExpr>(right)
               ? within(left * right, value.getType())
               : AffineExpr();
  std::optional<Interval> by = rangeOf(simplifyAffineExpr(left - right, extents.size(), 0));
  if (!by || (by->low < 0 && by->high > 0))
    return {};
  return (by->low >= 0) == isa<arith::MaxSIOp>(producer) ? left : right;
}

//===----------------------------------------------------------------------===//
// Look-ups
//===----------------------------------------------------------------------===//

/// The input from which the op selects an element: a sum, from zero, of one of its elements and
/// zeros. Null for other ops.
static BlockArgument lookedUp(linalg::GenericOp op) {
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
  bool fromZero = isZero(op.getDpsInits()[0]);
  if (auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>())
    fromZero = isZero(fill.getInputs()[0]);
  return element && element.getOwner() == op.getBody() && element != accumulator && fromZero &&
                 isZero(select.getFalseValue())
             ? element
             : BlockArgument();
}

/// How often each element is repeated, where nothing else happens to a run of them; else 1.
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

/// Elements `first` to `first + count - 1` of a dimension, each `times` times.
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

/// Reads a table at constant indices: as repeated elements, or as a few runs. `element` is the
/// look-up's argument for the table, `index` is compared with the selected loop.
static void readByRuns(linalg::GenericOp op, BlockArgument element, Value index, unsigned loop) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap read = maps[element.getArgNumber()], written = maps.back();
  AffineExpr searched = getAffineDimExpr(loop, op.getContext());
  for (auto [dim, expr] : llvm::enumerate(written.getResults())) {
    // The result is the table with another dimension instead of the indexed one.
    if (!isa<AffineDimExpr>(expr) || read.getNumResults() != written.getNumResults() ||
        read.getResult(dim) != searched ||
        read.replace(searched, expr, op.getNumLoops(), 0) != written)
      continue;
    std::optional<SmallVector<int64_t>> indices =
        valuesOver(op, index, cast<AffineDimExpr>(expr).getPosition(), kMostIndices);
    int64_t rows = op.getStaticLoopRanges()[loop];
    if (!indices || llvm::any_of(*indices, [&](int64_t i) { return i < 0 || i >= rows; }))
      return; // beyond the edge it finds nothing
    OpBuilder b(op);
    Value table = op.getInputs()[element.getArgNumber()], made;
    auto d = static_cast<int64_t>(dim);
    if (int64_t times = repetitionsOf(*indices); times > 1) {
      made =
          repeat(b, op.getLoc(), table, d, indices->front(), std::ssize(*indices) / times, times);
    } else {
      SmallVector<sharding::Segment> runs = runsOf(*indices);
      if (runs.empty())
        return;
      SmallVector<int64_t> fields;
      for (const sharding::Segment &run : runs)
        llvm::append_range(
            fields, ArrayRef<int64_t>{run.from, run.fromStep, run.to, run.toStep, run.count});
      made = RearrangeOp::create(b, op.getLoc(), cast<RankedTensorType>(op->getResult(0).getType()),
                                 SmallVector<Value>(runs.size(), table), d, fields, TypedAttr());
    }
    op->getResult(0).replaceAllUsesWith(made);
    op.erase();
    return;
  }
}

static void readByMap(linalg::GenericOp op) {
  BlockArgument element = lookedUp(op);
  if (!element)
    return;
  SmallVector<SelectedLoop, 2> selected = selectedLoops(op);
  if (selected.size() != 1 || !selected[0].offsets.empty() || op.getNumReductionLoops() != 1 ||
      op.getIteratorTypesArray()[selected[0].loop] != utils::IteratorType::reduction)
    return;
  unsigned loop = selected[0].loop;
  Functions functions(op, kMostSteps);
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
    return readByRuns(op, element, selected[0].index, loop);
  if (!place || place.isFunctionOfDim(loop) || uses != 1 || !isPlain)
    return;
  std::optional<Interval> range = functions.rangeOf(place);
  if (!range || range->low < 0 || range->high >= extents[loop])
    return; // beyond the edge it finds nothing
  SmallVector<AffineExpr> renumbered;
  unsigned next = 0;
  for (unsigned d = 0; d < extents.size(); ++d)
    renumbered.push_back(d == loop ? place : getAffineDimExpr(next++, op.getContext()));
  SmallVector<AffineExpr> rest = renumbered; // of `place` itself
  renumbered[loop] = place.replaceDims(rest);
  AffineMap written = maps.back();
  if (written.getNumResults() != next)
    return;
  for (auto [d, expr] : llvm::enumerate(written.getResults()))
    if (expr.replaceDims(renumbered) != getAffineDimExpr(d, op.getContext()))
      return;
  OpBuilder b(op);
  SmallVector<AffineExpr> places;
  for (AffineExpr expr : read.getResults())
    places.push_back(expr.replaceDims(renumbered));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value init = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(next, utils::IteratorType::parallel);
  auto made =
      linalg::GenericOp::create(b, op.getLoc(), type, op.getInputs()[element.getArgNumber()], init,
                                ArrayRef<AffineMap>{AffineMap::get(next, 0, places, b.getContext()),
                                                    b.getMultiDimIdentityMap(next)},
                                iterators, [](OpBuilder &body, Location loc, ValueRange arguments) {
                                  linalg::YieldOp::create(body, loc, arguments[0]);
                                });
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->getResult(0).replaceAllUsesWith(made.getResult(0));
  op.erase();
}

void dist::readByMap(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops)
    ::readByMap(op);
}
