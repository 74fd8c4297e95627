//===- WriteByMap.cpp - Updates at indices that follow a rule -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[r, j] = x[r, j] * (product over k of select(index[k] == r, u[k, j], 1))
//
// If the indices are known and distinct, at most one k contributes to a row r:
//
//   y[r, j] = x[r, j] * select(from[r] >= 0, u'[r, j], 1)        u'[index[k]] = u[k]
//
// where `from` is a constant, the k of each row or -1, and u' is a rearrangement of u.
// If each row has q updates, one behind the other, as in the derivative of a repetition,
// the updates get a dimension for the rows:
//
//   y[r, j] = x[r, j] * (product over p < q of u'[r, p, j])              u'[k / q, k % q] = u[k]
//
//===----------------------------------------------------------------------===//

#include "WriteByMap.h"
#include "PlainOps.h"

#include "ConstantIndices.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::Segment;

/// Beyond this number of rows or updates, the search stays at run time.
static constexpr int64_t kMostIndices = 1 << 15;

/// Whether a value is the index of a loop.
static bool isIndexOf(Value value, unsigned loop) {
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto index = value.getDefiningOp<linalg::IndexOp>();
  return index && index.getDim() == loop;
}

/// The comparisons in a body between an index and a loop.
static SmallVector<arith::CmpIOp> comparisons(linalg::GenericOp op, Value index, unsigned loop) {
  SmallVector<arith::CmpIOp> found;
  for (auto compare : op.getBody()->getOps<arith::CmpIOp>())
    if (compare.getPredicate() == arith::CmpIPredicate::eq &&
        ((compare.getLhs() == index && isIndexOf(compare.getRhs(), loop)) ||
         (compare.getRhs() == index && isIndexOf(compare.getLhs(), loop))))
      found.push_back(compare);
  return found;
}

/// Runs of a table that updates write, as segments of the updates.
static SmallVector<int64_t> segmentsOf(ArrayRef<Segment> runs) {
  SmallVector<int64_t> fields;
  for (const Segment &run : runs) {
    bool isReversed = run.toStep < 0;
    int64_t last = run.count - 1;
    // Updates run.to + i * run.toStep are rows run.from + i * run.fromStep; updates ascend.
    llvm::append_range(fields,
                       ArrayRef<int64_t>{isReversed ? run.to + last * run.toStep : run.to,
                                         std::abs(run.toStep),
                                         isReversed ? run.from + last * run.fromStep : run.from,
                                         isReversed ? -run.fromStep : run.fromStep, run.count});
  }
  return fields;
}

/// The map without `loop`, which `inPlace` replaces; the other loops keep their order.
static AffineMap without(AffineMap map, unsigned loop, unsigned inPlace) {
  SmallVector<AffineExpr> renumbered;
  unsigned next = 0;
  for (unsigned d = 0; d < map.getNumDims(); ++d)
    renumbered.push_back(d == loop ? AffineExpr() : getAffineDimExpr(next++, map.getContext()));
  renumbered[loop] = renumbered[inPlace];
  return map.replaceDimsAndSymbols(renumbered, {}, next, 0);
}

/// The number of updates of each row, if each has as many, one behind the other; else 0.
static int64_t updatesOfEachRow(ArrayRef<int64_t> indices, int64_t rows) {
  int64_t count = std::ssize(indices), each = rows == 0 ? 0 : count / rows;
  auto isOfRow = [&](int64_t k) { return indices[k] == k / each; };
  bool fits =
      each > 1 && each * rows == count && llvm::all_of(llvm::seq<int64_t>(0, count), isOfRow);
  return fits ? each : 0;
}

/// Combines the updates of each row along a dimension of their own.
static void splitUpdates(linalg::GenericOp op, unsigned row, unsigned update, int64_t each,
                         ArrayRef<arith::CmpIOp> compares) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  AffineExpr searched = getAffineDimExpr(update, op.getContext());
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> newArgument(op->getNumOperands(), -1);
  auto isRead = [&](BlockArgument argument) {
    return llvm::any_of(argument.getUsers(), [&](Operation *user) {
      return !llvm::is_contained(compares, dyn_cast<arith::CmpIOp>(user));
    });
  };
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned n = operand.getOperandNumber();
    AffineMap map = op.getMatchingIndexingMap(&operand);
    Value value = operand.get();
    if (op.isDpsInput(&operand) && map.isFunctionOfDim(update)) {
      if (!isRead(op.getBody()->getArgument(n)))
        continue; // the indices
      auto type = cast<RankedTensorType>(value.getType());
      auto dim = llvm::find(map.getResults(), searched) - map.getResults().begin();
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] = each;
      shape.insert(shape.begin() + dim, type.getDimSize(dim) / each);
      SmallVector<ReassociationIndices> groups;
      for (int64_t d = 0; d < type.getRank(); ++d)
        groups.push_back(d == dim ? ReassociationIndices{d, d + 1}
                                  : ReassociationIndices{d + (d > dim)});
      value = tensor::ExpandShapeOp::create(b, loc, type.clone(shape), value, groups);
      SmallVector<AffineExpr> results(map.getResults());
      results.insert(results.begin() + dim, getAffineDimExpr(row, op.getContext()));
      map = AffineMap::get(map.getNumDims(), 0, results, op.getContext());
    }
    newArgument[n] = std::ssize(maps);
    if (op.isDpsInput(&operand))
      inputs.push_back(value);
    maps.push_back(map);
  }
  auto made = linalg::GenericOp::create(
      b, loc, op->getResultTypes(), inputs, op.getDpsInits(), maps, op.getIteratorTypesArray(),
      [&](OpBuilder &body, Location at, ValueRange arguments) {
        IRMapping mapping;
        for (auto [argument, n] : llvm::zip_equal(op.getBody()->getArguments(), newArgument))
          if (n >= 0)
            mapping.map(argument, arguments[n]);
        Value hits = arith::ConstantIntOp::create(body, at, 1, 1);
        for (Operation &inner : *op.getBody()) {
          if (auto compare = dyn_cast<arith::CmpIOp>(inner);
              llvm::is_contained(compares, compare)) {
            mapping.map(compare.getResult(), hits);
            continue;
          }
          auto select = dyn_cast<arith::SelectOp>(inner);
          if (select && mapping.lookupOrNull(select.getCondition()) == hits) {
            mapping.map(select.getResult(), mapping.lookupOrDefault(select.getTrueValue()));
            continue;
          }
          auto index = dyn_cast<linalg::IndexOp>(inner);
          Operation *clone = body.clone(inner, mapping);
          if (index && index.getDim() == update) {
            Value all = arith::MulIOp::create(body, at, linalg::IndexOp::create(body, at, row),
                                              arith::ConstantIndexOp::create(body, at, each));
            mapping.map(index.getResult(),
                        arith::AddIOp::create(body, at, all, clone->getResult(0)).getResult());
          }
        }
      });
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(*made.getBody())))
    if (isOpTriviallyDead(&inner))
      inner.erase();
  op->replaceAllUsesWith(made->getResults());
  op.erase();
}

static void writeByMap(linalg::GenericOp op) {
  SmallVector<SelectedLoop, 2> selected = selectedLoops(op);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  if (selected.size() != 1 || !selected[0].offsets.empty() || op.getNumReductionLoops() != 1 ||
      iterators[selected[0].loop] != utils::IteratorType::parallel || !isPlain(op))
    return;
  unsigned row = selected[0].loop;
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  unsigned update = reductions[0];
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<arith::CmpIOp> compares = comparisons(op, selected[0].index, row);
  if (extents[row] > kMostIndices || extents[update] > kMostIndices || compares.empty())
    return;
  // An operand that depends on `update` must have one dimension for it alone, and none for `row`.
  AffineExpr searched = getAffineDimExpr(update, op.getContext());
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    if (map.isFunctionOfDim(update) &&
        (llvm::count(map.getResults(), searched) != 1 || map.isFunctionOfDim(row) ||
         !map.isProjectedPermutation() || !isa<RankedTensorType>(operand->get().getType())))
      return;
  }
  std::optional<SmallVector<int64_t>> indices =
      valuesOver(op, selected[0].index, update, kMostIndices);
  if (!indices)
    return;
  if (int64_t each = updatesOfEachRow(*indices, extents[row]))
    return splitUpdates(op, row, update, each, compares);
  SmallVector<int64_t> from(extents[row], -1);
  for (auto [k, index] : llvm::enumerate(*indices)) {
    if (index < 0 || index >= extents[row] || from[index] >= 0)
      return; // no row is written, or one twice
    from[index] = static_cast<int64_t>(k);
  }
  SmallVector<Segment> runs = runsOf(*indices);
  if (runs.empty())
    return;
  SmallVector<int64_t> fields = segmentsOf(runs);

  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    Value value = operand.get();
    if (op.isDpsInput(&operand) && map.isFunctionOfDim(update)) {
      auto type = cast<RankedTensorType>(value.getType());
      auto dim = llvm::find(map.getResults(), searched) - map.getResults().begin();
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] = extents[row];
      bool isCovered = std::ssize(*indices) == extents[row];
      value = RearrangeOp::create(b, loc, type.clone(shape), SmallVector<Value>(runs.size(), value),
                                  dim, fields,
                                  isCovered ? TypedAttr() : b.getZeroAttr(type.getElementType()));
    }
    if (op.isDpsInput(&operand))
      inputs.push_back(value);
    maps.push_back(without(map, update, row));
  }
  auto tableType = RankedTensorType::get({extents[row]}, b.getI64Type());
  inputs.push_back(arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(tableType, ArrayRef<int64_t>(from))));
  AffineMap rows = AffineMap::get(op.getNumLoops(), 0, getAffineDimExpr(row, b.getContext()));
  maps.insert(maps.end() - 1, without(rows, update, row));
  iterators.erase(iterators.begin() + update);
  auto made = linalg::GenericOp::create(
      b, loc, op->getResultTypes(), inputs, op.getDpsInits(), maps, iterators,
      [&](OpBuilder &body, Location at, ValueRange arguments) {
        IRMapping mapping;
        unsigned numInputs = op.getNumDpsInputs();
        for (BlockArgument argument : op.getBody()->getArguments()) {
          unsigned n = argument.getArgNumber();
          mapping.map(argument, arguments[n < numInputs ? n : n + 1]);
        }
        Value own = arguments[numInputs];
        Value hits = arith::CmpIOp::create(body, at, arith::CmpIPredicate::sge, own,
                                           arith::ConstantIntOp::create(body, at, 0, 64));
        for (Operation &inner : *op.getBody()) {
          if (auto compare = dyn_cast<arith::CmpIOp>(inner); llvm::is_contained(compares, compare))
            mapping.map(compare.getResult(), hits);
          else if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
            unsigned loop = index.getDim();
            mapping.map(
                index.getResult(),
                loop == update
                    ? arith::IndexCastOp::create(body, at, body.getIndexType(), own).getResult()
                    : linalg::IndexOp::create(body, at, loop - (loop > update)).getResult());
          } else
            body.clone(inner, mapping);
        }
      });
  op->replaceAllUsesWith(made->getResults());
  op.erase();
}

void dist::writeByMap(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops)
    ::writeByMap(op);
}
