//===- CancelSorts.cpp - Compute in the order before a sort ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mixtures of experts sort their tokens by expert, p = argsort(expert), so that rows of
// one expert are consecutive; afterwards they undo it:
//
//   x'[i] = x[p[i]],  y'[i] = f(x'[i], w[p[i]], i),  y[s] = y'[q[s]],  q the inverse of p
//
// Where tokens are cut, each device would need those of all others. But f treats all
// rows alike, so that row s can be computed where it is:
//
//   y[s] = f(x[s], w[s], q[s])
//
// The position i among the sorted rows becomes q[s]: only keys are sorted. Sums over the
// sorted rows (gradients of weights, scattered rows) are sums over the others.
//
// `unsorted` rewrites what computes a tensor of sorted rows, down to p, which becomes
// the numbers of the rows. All or nothing: no tensor is computed in both orders.
//
//===----------------------------------------------------------------------===//

#include "CancelSorts.h"

#include "ElementRanges.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

class Unsorting {
public:
  /// `number`: of the result that has the sorted numbers of the rows.
  Unsorting(ext::SortOp sort, unsigned number, ElementRanges &ranges)
      : sort(sort), number(number), ranges(ranges), lastBehindSort(sort) {}

  bool run() {
    findSorted();
    llvm::SetVector<Operation *> roots;
    llvm::DenseMap<Operation *, Operation *> replaced;
    for (Operation *op : sorted)
      for (unsigned loop : summedLoops(op))
        if (Operation *made = rewrite(cast<linalg::LinalgOp>(op), loop)) {
          roots.insert(op);
          replaced[op] = made;
          break;
        }
    bool isWhole = !roots.empty() && llvm::all_of(visited, [&](Operation *op) {
      return roots.contains(op) || rankOf(op) < 2 ||
             llvm::all_of(op->getUsers(), [&](Operation *user) { return visited.contains(user); });
    });
    bool movesRows = llvm::any_of(visited, [](Operation *op) { return rankOf(op) >= 2; });
    if (!isWhole || !movesRows) {
      for (Operation *op : llvm::reverse(created))
        op->erase();
      return false;
    }
    for (Operation *op : roots) {
      op->replaceAllUsesWith(replaced[op]->getResults());
      op->erase();
    }
    // Indices that came from the sort are numbers of rows now: checks of their range are decided.
    ElementRanges decided;
    decideElements(*sort->getBlock(), decided);
    eraseDead();
    return true;
  }

  /// Erases what is no longer read; other sorts stay, since they are still to be visited.
  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*sort->getBlock())))
      if (!isa<ext::SortOp>(op) && isOpTriviallyDead(&op))
        op.erase();
  }

private:
  static int64_t rankOf(Operation *op) {
    return cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  }

  int64_t extent() { return sort.getShape()[0]; }

  /// All ops of the block that depend on the sort.
  void findSorted() {
    llvm::SmallPtrSet<Operation *, 32> seen{sort};
    for (Operation &op : *sort->getBlock())
      if (llvm::any_of(op.getOperands(), [&](Value operand) {
            return operand.getDefiningOp() && seen.contains(operand.getDefiningOp());
          }))
        if (seen.insert(&op).second)
          sorted.insert(&op);
  }

  /// The loops of an op that only add up, or set rows, with the extent of the sorted rows.
  SmallVector<unsigned> summedLoops(Operation *op) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    SmallVector<unsigned> loops;
    if (!linalgOp || !linalgOp.hasPureTensorSemantics() || op->getNumResults() != 1 ||
        !linalgOp.getNumReductionLoops())
      return loops;
    SmallVector<int64_t> extents = linalgOp.getStaticLoopRanges();
    for (auto [loop, kind] : llvm::enumerate(linalgOp.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction && extents[loop] == extent() &&
          (isSum(linalgOp) || setsRows(linalgOp, loop)))
        loops.push_back(loop);
    return loops;
  }

  /// Whether the order of the iterations of a reduction does not matter.
  static bool isSum(linalg::LinalgOp op) {
    Block *body = op.getBlock();
    Operation *last = body->getTerminator()->getOperand(0).getDefiningOp();
    BlockArgument out = body->getArguments().back();
    return last && out.hasOneUse() && llvm::is_contained(last->getOperands(), out) &&
           isa<arith::AddFOp, arith::AddIOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxSIOp,
               arith::MinSIOp, arith::AndIOp, arith::OrIOp>(last);
  }

  /// Whether iterations of the only reduction write to places p, each its own.
  bool setsRows(linalg::LinalgOp linalgOp, unsigned loop) {
    auto op = dyn_cast<linalg::GenericOp>(linalgOp.getOperation());
    if (!op || op.getNumReductionLoops() != 1)
      return false;
    auto choice = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
    if (!choice || choice.getFalseValue() != op.getBody()->getArguments().back() ||
        !op.getBody()->getArguments().back().hasOneUse())
      return false;
    auto compare = choice.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare)
      return false;
    std::optional<Place> place = placeIn(op, compare);
    return place && place->from == loop;
  }

  /// Loops `from` and `to` of a comparison of p[from] with the position in `to`.
  struct Place {
    unsigned from, to;
  };
  std::optional<Place> placeIn(linalg::GenericOp op, arith::CmpIOp compare) {
    if (compare.getPredicate() != arith::CmpIPredicate::eq)
      return std::nullopt;
    Value sides[2] = {ranges.strip(op, compare.getLhs()), ranges.strip(op, compare.getRhs())};
    for (unsigned i : {0, 1}) {
      auto place = dyn_cast<BlockArgument>(sides[i]);
      auto index = sides[1 - i].getDefiningOp<linalg::IndexOp>();
      if (!place || !index || place.getArgNumber() >= op.getNumDpsInputs())
        continue;
      AffineMap map = op.getIndexingMapsArray()[place.getArgNumber()];
      if (map.getNumResults() != 1)
        continue;
      auto from = dyn_cast<AffineDimExpr>(map.getResult(0));
      if (from && from.getPosition() != index.getDim() &&
          isPermutation(op.getDpsInputs()[place.getArgNumber()]))
        return Place{from.getPosition(), static_cast<unsigned>(index.getDim())};
    }
    return std::nullopt;
  }

  /// Whether iterations of a loop are in the order before the sort, since rows are put there or
  /// looked up there.
  bool isUnsortedAlready(linalg::LinalgOp linalgOp, unsigned loop) {
    auto op = dyn_cast<linalg::GenericOp>(linalgOp.getOperation());
    if (!op)
      return false;
    return llvm::any_of(op.getBody()->getOps<arith::CmpIOp>(), [&](arith::CmpIOp compare) {
      std::optional<Place> place = placeIn(op, compare);
      return place && place->to == loop;
    });
  }

  /// The tensor with element s of a dimension where `value` has element q[s]; null if unknown.
  Value unsorted(Value value, unsigned dim) {
    auto [it, isNew] = done.try_emplace({value, dim});
    if (!isNew)
      return it->second;
    Value result = computeUnsorted(value, dim);
    return done[{value, dim}] = result;
  }

  Value computeUnsorted(Value value, unsigned dim) {
    Operation *op = value.getDefiningOp();
    auto type = cast<RankedTensorType>(value.getType());
    if (!op || type.getDimSize(dim) != extent())
      return {};
    if (op == sort)
      return sort.getInputs()[cast<OpResult>(value).getResultNumber()];
    if (isa<tensor::EmptyOp, tensor::SplatOp>(op))
      return value;
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      return isa<SplatElementsAttr>(constant.getValue()) ? value : Value();
    // What is computed in front of a loop around the sort is computed from indices there.
    if ((isOutside(op) && !isa<linalg::GenericOp>(op)) || op->getNumResults() != 1)
      return {};
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (!linalgOp.hasPureTensorSemantics())
        return {};
      AffineMap map = linalgOp.getIndexingMapsArray().back();
      auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
      Operation *made = loop ? rewrite(linalgOp, loop.getPosition()) : nullptr;
      return made ? made->getResult(0) : Value();
    }
    // The dimension of the operands, if the op leaves it as it is.
    std::optional<unsigned> from;
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      from = dimBefore(expand.getReassociationIndices(), expand.getSrc(), type, dim);
    else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      from = dimAfter(collapse.getReassociationIndices(), collapse.getSrc(), type, dim);
    else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      if (slice.getSourceType().getRank() == type.getRank() &&
          slice.getSourceType().getDimSize(dim) == extent() && slice.hasUnitStride())
        from = dim;
    } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
      if (concat.getDim() != dim)
        from = dim;
    } else if (auto pad = dyn_cast<tensor::PadOp>(op)) {
      if (pad.getSourceType().getDimSize(dim) == extent() && pad.getConstantPaddingValue())
        from = dim;
    }
    if (!from)
      return {};
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType())) {
        Value own = unsorted(operand, *from);
        if (!own)
          return {};
        mapping.map(operand, own);
      }
    return keep(op, builderFor(op).clone(*op, mapping))->getResult(0);
  }

  /// The dimension of an expansion's operand with the extent of `dim`, beside which are only ones.
  static std::optional<unsigned> dimBefore(ArrayRef<ReassociationIndices> groups, Value operand,
                                           RankedTensorType result, unsigned dim) {
    auto shape = cast<RankedTensorType>(operand.getType()).getShape();
    for (auto [from, group] : llvm::enumerate(groups))
      if (llvm::is_contained(group, dim) && shape[from] == result.getDimSize(dim))
        return from;
    return std::nullopt;
  }
  /// The same for a collapse.
  static std::optional<unsigned> dimAfter(ArrayRef<ReassociationIndices> groups, Value operand,
                                          RankedTensorType result, unsigned dim) {
    auto shape = cast<RankedTensorType>(operand.getType()).getShape();
    for (int64_t from : groups[dim])
      if (shape[from] == result.getDimSize(dim))
        return from;
    return std::nullopt;
  }

  bool isOutside(Operation *op) { return op->getBlock() != sort->getBlock(); }
  bool isBeforeSort(Operation *op) { return isOutside(op) || op->isBeforeInBlock(sort); }

  /// Where the copy of an op is written: in front of it, but behind the sort.
  OpBuilder builderFor(Operation *op) {
    OpBuilder b(op);
    if (isBeforeSort(op))
      b.setInsertionPointAfter(lastBehindSort);
    return b;
  }

  Operation *keep(Operation *op, Operation *made) {
    if (!isOutside(op))
      visited.insert(op);
    created.push_back(made);
    if (isBeforeSort(op))
      lastBehindSort = made;
    return made;
  }

  /// A copy of the op whose iterations of a loop are in the order before the sort; null if an
  /// operand is not known in this order.
  Operation *rewrite(linalg::LinalgOp op, unsigned loop) {
    if (isUnsortedAlready(op, loop))
      return nullptr;
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      std::optional<unsigned> at;
      for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
        if (!expr.isFunctionOfDim(loop))
          continue;
        if (at || !isa<AffineDimExpr>(expr))
          return nullptr;
        at = dim;
      }
      operands.push_back(at ? unsorted(operand.get(), *at) : operand.get());
      if (!operands.back())
        return nullptr;
    }
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    if (generic && llvm::any_of(generic.getBody()->getOps<linalg::IndexOp>(),
                                [&](linalg::IndexOp index) { return index.getDim() == loop; }))
      return rewriteIndices(generic, loop, operands);
    Operation *made = builderFor(op).clone(*op.getOperation());
    made->setOperands(operands);
    return keep(op, made);
  }

  /// A comparison of the position in a loop with an element of q over another loop, or with the
  /// position itself.
  struct Match {
    arith::CmpIOp compare;
    BlockArgument argument;
  };

  Operation *rewriteIndices(linalg::GenericOp op, unsigned loop, ArrayRef<Value> operands) {
    // q[s] equals the position of row r, q[r], if s is r: there the rows' numbers are compared.
    SmallVector<Match> matches;
    for (auto compare : op.getBody()->getOps<arith::CmpIOp>())
      if (BlockArgument argument = inverseIn(op, compare, loop))
        matches.push_back({compare, argument});
    Location loc = op.getLoc();
    SmallVector<Value> inputs(operands.take_front(op.getNumDpsInputs()));
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    for (Match match : matches)
      inputs[match.argument.getArgNumber()] = rowNumbers(match.argument.getType());
    auto isMatched = [&](Operation *user) {
      return llvm::any_of(matches, [&](Match match) { return match.compare == user; });
    };
    bool needsPosition = false;
    for (auto index : op.getBody()->getOps<linalg::IndexOp>())
      if (index.getDim() == loop)
        needsPosition |= !onlyLeadsTo(index.getResult(), isMatched);
    if (needsPosition) {
      inputs.push_back(inverse());
      maps.insert(maps.end() - 1,
                  AffineMap::get(op.getNumLoops(), 0, {getAffineDimExpr(loop, op.getContext())},
                                 op.getContext()));
    }
    OpBuilder b = builderFor(op);
    auto made = linalg::GenericOp::create(
        b, loc, op->getResultTypes(), inputs, operands.take_back(1), maps,
        op.getIteratorTypesArray(), [&](OpBuilder &body, Location at, ValueRange arguments) {
          SmallVector<Value> own(arguments);
          Value position = needsPosition ? own[own.size() - 2] : Value();
          if (needsPosition)
            own.erase(own.end() - 2);
          IRMapping mapping;
          mapping.map(op.getBody()->getArguments(), own);
          for (Operation &inner : *op.getBody()) {
            auto index = dyn_cast<linalg::IndexOp>(inner);
            if (index && index.getDim() == loop && needsPosition) {
              mapping.map(index.getResult(),
                          arith::IndexCastOp::create(body, at, body.getIndexType(), position));
              continue;
            }
            auto *match =
                llvm::find_if(matches, [&](Match match) { return match.compare == &inner; });
            if (match == matches.end()) {
              body.clone(inner, mapping);
              continue;
            }
            Value here = linalg::IndexOp::create(body, at, loop);
            Value row = mapping.lookup(match->argument);
            here = arith::IndexCastOp::create(body, at, row.getType(), here);
            mapping.map(match->compare.getResult(),
                        arith::CmpIOp::create(body, at, arith::CmpIPredicate::eq, row, here));
          }
        });
    return keep(op, made);
  }

  /// Whether a value of a body is used by nothing else than some ops, possibly converted.
  static bool onlyLeadsTo(Value value, llvm::function_ref<bool(Operation *)> isWanted) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      return isWanted(user) || (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(user) &&
                                onlyLeadsTo(user->getResult(0), isWanted));
    });
  }

  /// The argument for q over another loop, or for positions over `loop`, that a comparison relates
  /// to the position in `loop`, if nothing else reads it.
  BlockArgument inverseIn(linalg::GenericOp op, arith::CmpIOp compare, unsigned loop) {
    if (compare.getPredicate() != arith::CmpIPredicate::eq)
      return {};
    Value sides[2] = {ranges.strip(op, compare.getLhs()), ranges.strip(op, compare.getRhs())};
    for (unsigned i : {0, 1}) {
      auto index = sides[i].getDefiningOp<linalg::IndexOp>();
      auto argument = dyn_cast<BlockArgument>(sides[1 - i]);
      if (!index || index.getDim() != loop || !argument ||
          argument.getArgNumber() >= op.getNumDpsInputs())
        continue;
      AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
      if (map.getNumResults() != 1)
        continue;
      auto other = dyn_cast<AffineDimExpr>(map.getResult(0));
      Value operand = op.getDpsInputs()[argument.getArgNumber()];
      bool isMatch =
          other && (other.getPosition() == loop ? ranges.isIota(operand) : isInverse(operand));
      if (isMatch && onlyLeadsTo(argument, [&](Operation *user) { return user == compare; }))
        return argument;
    }
    return {};
  }

  bool isPermutation(Value value) { return ranges.sourceOf(value) == sort.getResult(number); }

  /// Whether a vector is the inverse permutation: the numbers of the rows, set at p or sorted by p.
  bool isInverse(Value value) {
    Operation *op = ranges.sourceOf(value).getDefiningOp();
    if (!op)
      return false;
    if (auto second = dyn_cast<ext::SortOp>(op)) {
      auto result = cast<OpResult>(ranges.sourceOf(value));
      return second.getShape().size() == 1 && second.getKeys() == 1 && !second.getDescending() &&
             second.getCount() == extent() && isPermutation(second.getInputs().front()) &&
             ranges.isIota(second.getInputs()[result.getResultNumber()]);
    }
    auto set = dyn_cast<linalg::GenericOp>(op);
    if (!set || set->getNumResults() != 1 || set.getNumLoops() != 2 ||
        set.getNumReductionLoops() != 1 || set.getStaticLoopRanges()[0] != extent())
      return false;
    SmallVector<AffineMap> maps = set.getIndexingMapsArray();
    auto over = [&](Value scalar, unsigned loop) -> Value {
      auto argument = dyn_cast<BlockArgument>(ranges.strip(set, scalar));
      if (!argument || argument.getArgNumber() >= set.getNumDpsInputs())
        return {};
      AffineMap map = maps[argument.getArgNumber()];
      bool isOver =
          map.getNumResults() == 1 && map.getResult(0) == getAffineDimExpr(loop, set.getContext());
      return isOver ? set.getDpsInputs()[argument.getArgNumber()] : Value();
    };
    auto choice = set.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
    if (maps.back() !=
            AffineMap::get(2, 0, {getAffineDimExpr(0, set.getContext())}, set.getContext()) ||
        !choice || choice.getFalseValue() != set.getBody()->getArguments().back())
      return false;
    Value rows = over(choice.getTrueValue(), 1);
    auto compare = choice.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!rows || !ranges.isIota(rows) || !compare ||
        compare.getPredicate() != arith::CmpIPredicate::eq)
      return false;
    for (bool swapped : {false, true}) {
      Value place = over(swapped ? compare.getRhs() : compare.getLhs(), 1);
      auto index = ranges.strip(set, swapped ? compare.getLhs() : compare.getRhs())
                       .getDefiningOp<linalg::IndexOp>();
      if (place && isPermutation(place) && index && index.getDim() == 0)
        return true;
    }
    return false;
  }

  /// The numbers of the rows, in front of all that is rewritten.
  Value rowNumbers(Type element) {
    Value &rows = numbers[element];
    if (rows)
      return rows;
    OpBuilder b(sort);
    Location loc = sort.getLoc();
    Value empty = tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>{extent()}, element);
    auto op = linalg::GenericOp::create(
        b, loc, empty.getType(), ValueRange{}, empty, b.getMultiDimIdentityMap(1),
        utils::IteratorType::parallel, [&](OpBuilder &body, Location at, ValueRange) {
          Value index = linalg::IndexOp::create(body, at, 0);
          if (!element.isIndex())
            index = arith::IndexCastOp::create(body, at, element, index);
          linalg::YieldOp::create(body, at, index);
        });
    created.insert(created.end(), {empty.getDefiningOp(), op});
    return rows = op.getResult(0);
  }

  /// q, behind the sort.
  Value inverse() {
    if (inversePermutation)
      return inversePermutation;
    Value places = sort.getResult(number);
    Type element = getElementTypeOrSelf(places.getType());
    Value rows = rowNumbers(element);
    OpBuilder b(sort->getContext());
    b.setInsertionPointAfter(lastBehindSort);
    Location loc = sort.getLoc();
    auto zero = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(places.getType())));
    AffineMap over = AffineMap::get(2, 0, {b.getAffineDimExpr(1)}, b.getContext());
    AffineMap into = AffineMap::get(2, 0, {b.getAffineDimExpr(0)}, b.getContext());
    auto op = linalg::GenericOp::create(
        b, loc, places.getType(), ValueRange{rows, places}, zero.getResult(),
        ArrayRef<AffineMap>{over, over, into},
        ArrayRef{utils::IteratorType::parallel, utils::IteratorType::reduction},
        [&](OpBuilder &body, Location at, ValueRange in) {
          Value here = linalg::IndexOp::create(body, at, 0);
          here = arith::IndexCastOp::create(body, at, element, here);
          Value isHere = arith::CmpIOp::create(body, at, arith::CmpIPredicate::eq, in[1], here);
          linalg::YieldOp::create(
              body, at, arith::SelectOp::create(body, at, isHere, in[0], in[2]).getResult());
        });
    created.insert(created.end(), {zero.getOperation(), op});
    lastBehindSort = op;
    return inversePermutation = op.getResult(0);
  }

  ext::SortOp sort;
  unsigned number;
  ElementRanges &ranges;
  Operation *lastBehindSort;            ///< of what is written there
  llvm::SetVector<Operation *> sorted;  ///< ops that depend on the sort, in program order
  llvm::SetVector<Operation *> visited; ///< ops that have a copy
  std::vector<Operation *> created;     ///< operands first
  llvm::DenseMap<std::pair<Value, unsigned>, Value> done; ///< looked up only
  llvm::DenseMap<Type, Value> numbers;                    ///< looked up only
  Value inversePermutation;
};

} // namespace

bool dist::cancelSorts(func::FuncOp function) {
  bool changed = false;
  SmallVector<ext::SortOp> sorts;
  function.walk([&](ext::SortOp sort) {
    if (sort.getShape().size() == 1 && sort.getCount() == sort.getShape()[0])
      sorts.push_back(sort);
  });
  for (ext::SortOp sort : sorts) {
    ElementRanges ranges;
    for (unsigned i = sort.getKeys(); i < sort.getNumResults(); ++i)
      if (ranges.isIota(sort.getInputs()[i])) {
        changed |= Unsorting(sort, i, ranges).run();
        break;
      }
  }
  for (ext::SortOp sort : llvm::reverse(sorts))
    if (sort->use_empty())
      sort.erase();
  return changed;
}
