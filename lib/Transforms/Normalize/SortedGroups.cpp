//===- SortedGroups.cpp - The group of each sorted row --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of groups of rows get the number of rows of each group, of rows that are
// sorted by group:
//
//   k' = sort(k),  n[g] = number of i with k[i] == g,  ends = cumulative sum of n
//   group[r] = number of g with ends[g] <= r
//
// If no key is negative, row r is in the group that is its key: group[r] = k'[r], or
// the number of groups for a key that is not less. As sorted keys, groups follow when
// the sort is undone (CancelSorts.cpp).
//
//===----------------------------------------------------------------------===//

#include "SortedGroups.h"

#include "ElementRanges.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A scalar of a body, whose loops are some of those of the op that the search began with.
struct Scalar {
  linalg::GenericOp op;
  Value value;
  SmallVector<unsigned> loops; ///< by loop of `op`
};

class GroupFinder {
public:
  explicit GroupFinder(func::FuncOp function) {
    function.walk([&](ext::SortOp sort) {
      if (sort.getShape().size() == 1 && sort.getKeys() == 1 && !sort.getDescending() &&
          sort.getCount() == sort.getShape()[0])
        sorts.push_back(sort);
    });
  }
  bool hasSorts() const { return !sorts.empty(); }
  bool replace(linalg::GenericOp op);

private:
  std::optional<Scalar> addedBy(linalg::GenericOp op);
  Scalar resolve(Scalar scalar);
  std::optional<Scalar> conditionOf(Scalar term);
  Value vectorOver(Scalar scalar, unsigned loop);
  Value elementOver(Scalar scalar, unsigned loop);
  bool isNumber(Scalar scalar, int64_t number);
  bool isIndexOf(Scalar scalar, unsigned loop);
  Value sizesOf(Value ends, int64_t rows);
  Value keysCountedBy(Value sizes);
  ext::SortOp sortOf(Value keys, Operation *groups);

  ElementRanges ranges;
  SmallVector<ext::SortOp> sorts;
};

} // namespace

/// What a sum of integers in two loops, of which the second is reduced, adds up from zero.
std::optional<Scalar> GroupFinder::addedBy(linalg::GenericOp op) {
  if (op.getNumLoops() != 2 || op->getNumResults() != 1 || !op.hasPureTensorSemantics() ||
      op.getNumReductionLoops() != 1 || !matchPattern(op.getDpsInits()[0], m_Zero()))
    return std::nullopt;
  auto out = dyn_cast<AffineDimExpr>(op.getIndexingMapsArray().back().getResult(0));
  auto sum = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddIOp>();
  BlockArgument accumulator = op.getBody()->getArguments().back();
  if (!out || !sum || !accumulator.hasOneUse() ||
      op.getIteratorTypesArray()[out.getPosition()] != utils::IteratorType::parallel)
    return std::nullopt;
  Value term = sum.getLhs() == accumulator ? sum.getRhs() : sum.getLhs();
  if (sum.getLhs() != accumulator && sum.getRhs() != accumulator)
    return std::nullopt;
  // Loop 0 is that of the result.
  bool isSwapped = out.getPosition() == 1;
  return resolve({op, term, isSwapped ? SmallVector<unsigned>{1, 0} : SmallVector<unsigned>{0, 1}});
}

/// The scalar without conversions, where an elementwise op computes it.
Scalar GroupFinder::resolve(Scalar scalar) {
  while (true) {
    scalar.value = ranges.strip(scalar.op, scalar.value);
    if (auto extend = scalar.value.getDefiningOp<arith::ExtUIOp>()) {
      scalar.value = extend.getIn();
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(scalar.value);
    if (!argument || argument.getOwner() != scalar.op.getBody() ||
        argument.getArgNumber() >= scalar.op.getNumDpsInputs())
      return scalar;
    AffineMap map = scalar.op.getIndexingMapsArray()[argument.getArgNumber()];
    auto maker =
        scalar.op.getDpsInputs()[argument.getArgNumber()].getDefiningOp<linalg::GenericOp>();
    if (!maker || maker->getNumResults() != 1 || maker.getNumReductionLoops() != 0 ||
        !maker.getIndexingMapsArray().back().isIdentity() || !map.isProjectedPermutation())
      return scalar;
    SmallVector<unsigned> loops;
    for (AffineExpr expr : map.getResults())
      loops.push_back(scalar.loops[cast<AffineDimExpr>(expr).getPosition()]);
    scalar = {maker, maker.getBody()->getTerminator()->getOperand(0), std::move(loops)};
  }
}

/// The comparison that a term is 1 for, if it is 0 otherwise.
std::optional<Scalar> GroupFinder::conditionOf(Scalar term) {
  if (auto choice = term.value.getDefiningOp<arith::SelectOp>()) {
    auto part = [&](Value value) { return resolve({term.op, value, term.loops}); };
    if (!isNumber(part(choice.getTrueValue()), 1) || !isNumber(part(choice.getFalseValue()), 0))
      return std::nullopt;
    term = part(choice.getCondition());
  }
  if (!term.value.getDefiningOp<arith::CmpIOp>())
    return std::nullopt;
  return term;
}

/// The vector whose element at a loop the scalar is, possibly broadcast; null for other scalars.
Value GroupFinder::vectorOver(Scalar scalar, unsigned loop) {
  if (Value vector = elementOver(scalar, loop))
    return vector;
  return elementOver(resolve(std::move(scalar)), loop);
}

Value GroupFinder::elementOver(Scalar scalar, unsigned loop) {
  scalar.value = ranges.strip(scalar.op, scalar.value);
  auto argument = dyn_cast<BlockArgument>(scalar.value);
  if (!argument || argument.getOwner() != scalar.op.getBody() ||
      argument.getArgNumber() >= scalar.op.getNumDpsInputs())
    return {};
  AffineMap map = scalar.op.getIndexingMapsArray()[argument.getArgNumber()];
  if (map.getNumResults() != 1)
    return {};
  auto dim = dyn_cast<AffineDimExpr>(map.getResult(0));
  return dim && scalar.loops[dim.getPosition()] == loop
             ? scalar.op.getDpsInputs()[argument.getArgNumber()]
             : Value();
}

bool GroupFinder::isNumber(Scalar scalar, int64_t number) {
  IntegerAttr value;
  if (matchPattern(scalar.value, m_Constant(&value)))
    return value.getInt() == number;
  auto argument = dyn_cast<BlockArgument>(scalar.value);
  if (!argument || argument.getArgNumber() >= scalar.op.getNumDpsInputs())
    return false;
  auto all = dyn_cast_or_null<IntegerAttr>(
      ranges.constantOf(scalar.op.getDpsInputs()[argument.getArgNumber()]));
  return all && all.getInt() == number;
}

/// Whether a scalar is the index of a loop.
bool GroupFinder::isIndexOf(Scalar scalar, unsigned loop) {
  if (auto index = scalar.value.getDefiningOp<linalg::IndexOp>())
    return scalar.loops[index.getDim()] == loop;
  Value vector = vectorOver(scalar, loop);
  return vector && ranges.isIota(vector);
}

/// The sizes of groups that end at `ends`, which may be limited to the number of rows.
Value GroupFinder::sizesOf(Value ends, int64_t rows) {
  while (auto op = ends.getDefiningOp<linalg::GenericOp>()) {
    if (op.getNumLoops() != 1 || op->getNumResults() != 1 || op.getNumParallelLoops() != 1)
      return {};
    Value value = ranges.strip(op, op.getBody()->getTerminator()->getOperand(0));
    if (auto least = value.getDefiningOp<arith::MinSIOp>()) {
      IntegerAttr limit;
      if (!matchPattern(least.getRhs(), m_Constant(&limit)) || limit.getInt() < rows)
        return {};
      value = ranges.strip(op, least.getLhs());
    }
    ends = vectorOver({op, value, {0}}, 0);
    if (!ends)
      return {};
  }
  auto scan = ends.getDefiningOp<ext::ScanOp>();
  if (!scan || scan.getShape().size() != 1 || scan.getExclusive() || scan.getReverse() ||
      scan.getInputs().size() != 1)
    return {};
  Block &body = scan.getBody();
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddIOp>();
  bool addsUp = sum && llvm::is_contained(sum->getOperands(), body.getArgument(0)) &&
                llvm::is_contained(sum->getOperands(), body.getArgument(1));
  return addsUp ? ranges.sourceOf(scan.getInputs()[0]) : Value();
}

/// The vector of keys of which `sizes` has the number of each; null if unknown.
Value GroupFinder::keysCountedBy(Value sizes) {
  auto op = sizes.getDefiningOp<linalg::GenericOp>();
  std::optional<Scalar> term = op ? addedBy(op) : std::nullopt;
  std::optional<Scalar> condition = term ? conditionOf(*term) : std::nullopt;
  if (!condition)
    return {};
  auto compare = condition->value.getDefiningOp<arith::CmpIOp>();
  if (compare.getPredicate() != arith::CmpIPredicate::eq)
    return {};
  for (auto [number, keys] : {std::pair(compare.getLhs(), compare.getRhs()),
                              std::pair(compare.getRhs(), compare.getLhs())})
    if (isIndexOf(resolve({condition->op, number, condition->loops}), 0))
      if (Value vector = vectorOver({condition->op, keys, condition->loops}, 1))
        return ranges.sourceOf(vector);
  return {};
}

/// The sort of keys whose results are available where `groups` is read.
ext::SortOp GroupFinder::sortOf(Value keys, Operation *groups) {
  for (ext::SortOp sort : sorts) {
    if (ranges.sourceOf(sort.getInputs()[0]) != keys || sort->getBlock() != groups->getBlock())
      continue;
    bool isBefore = llvm::all_of(groups->getUsers(), [&](Operation *user) {
      Operation *reader = groups->getBlock()->findAncestorOpInBlock(*user);
      return reader && sort->isBeforeInBlock(reader);
    });
    if (isBefore)
      return sort;
  }
  return {};
}

/// Replaces the result of `op` if it has the groups of sorted rows.
bool GroupFinder::replace(linalg::GenericOp op) {
  ranges = ElementRanges(); // a value that was erased may have the address of a new one
  std::optional<Scalar> term = addedBy(op);
  std::optional<Scalar> condition = term ? conditionOf(*term) : std::nullopt;
  if (!condition)
    return false;
  auto compare = condition->value.getDefiningOp<arith::CmpIOp>();
  Scalar end{condition->op, compare.getLhs(), condition->loops};
  Scalar row{condition->op, compare.getRhs(), condition->loops};
  if (compare.getPredicate() == arith::CmpIPredicate::sge)
    std::swap(end, row);
  else if (compare.getPredicate() != arith::CmpIPredicate::sle)
    return false;
  Value ends = vectorOver(end, 1);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!ends || !isIndexOf(resolve(row), 0))
    return false;
  Value sizes = sizesOf(ends, type.getDimSize(0));
  Value keys = sizes ? keysCountedBy(sizes) : Value();
  if (!keys || cast<RankedTensorType>(keys.getType()).getDimSize(0) != type.getDimSize(0))
    return false;
  std::optional<ElementRanges::Interval> range = ranges.of(keys);
  ext::SortOp sort = range && range->low >= 0 ? sortOf(keys, op) : ext::SortOp();
  if (!sort)
    return false;
  Value sorted = sort.getResult(0);
  int64_t groups = cast<RankedTensorType>(ends.getType()).getDimSize(0);
  if (sorted.getType() != type || range->high > groups) {
    OpBuilder b(op);
    if (op->isBeforeInBlock(sort))
      b.setInsertionPointAfter(sort);
    Value empty = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
    AffineMap identity = b.getMultiDimIdentityMap(1);
    sorted = linalg::GenericOp::create(
                 b, op.getLoc(), type, sorted, empty, ArrayRef<AffineMap>{identity, identity},
                 utils::IteratorType::parallel,
                 [&](OpBuilder &body, Location at, ValueRange in) {
                   Value key = in[0];
                   Value most = arith::ConstantOp::create(
                       body, at, body.getIntegerAttr(key.getType(), groups));
                   key = arith::MinSIOp::create(body, at, key, most);
                   unsigned from = key.getType().getIntOrFloatBitWidth();
                   unsigned to = type.getElementTypeBitWidth();
                   if (from > to)
                     key = arith::TruncIOp::create(body, at, type.getElementType(), key);
                   else if (from < to)
                     key = arith::ExtSIOp::create(body, at, type.getElementType(), key);
                   linalg::YieldOp::create(body, at, key);
                 })
                 .getResult(0);
  }
  op->getResult(0).replaceAllUsesWith(sorted);
  op.erase();
  return true;
}

void dist::takeSortedGroups(func::FuncOp function) {
  GroupFinder finder(function);
  if (!finder.hasSorts())
    return;
  SmallVector<linalg::GenericOp> sums;
  function.walk([&](linalg::GenericOp op) {
    if (op->getNumResults() == 1 && op.getNumLoops() == 2 && op.getNumReductionLoops() == 1 &&
        isa<IntegerType>(getElementTypeOrSelf(op->getResult(0).getType())))
      sums.push_back(op);
  });
  for (linalg::GenericOp op : sums)
    finder.replace(op);
}
