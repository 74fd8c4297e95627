//===- Selection.cpp - Loops with one nonzero iteration -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tessera::dist;

/// Least extent of a selected loop, or of several in all, for which an index pays off.
static constexpr int64_t kLeastExtent = 8;
/// Up to this many indices are compared with each row in the kernel that reads the sum, which then
/// is never in memory.
static constexpr int64_t kMostCompared = 16;
/// Up to this many comparisons of an updated tensor cost less than a kernel.
static constexpr int64_t kMostComparisons = 4096;

namespace {

/// Finds the selected loops of one op.
class SelectionFinder {
public:
  explicit SelectionFinder(linalg::GenericOp op) : op(op), body(*op.getBody()) {}

  SmallVector<SelectedLoop, 2> find() {
    if (op.getNumDpsInits() != 1 || !op.hasPureTensorSemantics())
      return {};
    if (!addConditions(body.getTerminator()->getOperand(0)))
      return {};
    // An index that depends on another selected loop is not known before that loop.
    llvm::SmallBitVector selected(op.getNumLoops());
    for (const SelectedLoop &each : found)
      selected.set(each.loop);
    llvm::erase_if(found, [&](const SelectedLoop &each) {
      return loopsOf(each.index).anyCommon(selected) ||
             llvm::any_of(each.offsets, [&](Value v) { return loopsOf(v).anyCommon(selected); });
    });
    return found;
  }

private:
  /// Adds the conjuncts of the conditions without which a value is the accumulator; false if there
  /// is none.
  bool addConditions(Value value) {
    BlockArgument accumulator = body.getArguments().back();
    Operation *last = value.getDefiningOp();
    if (!last || last->getBlock() != &body)
      return false;
    if (auto select = dyn_cast<arith::SelectOp>(last)) {
      if (select.getFalseValue() != accumulator)
        return false;
      addConjuncts(select.getCondition());
      addConditions(select.getTrueValue()); // a sum that skips the padding of an uneven cut
      return true;
    }
    std::optional<TypedAttr> neutral = arith::getNeutralElement(last);
    if (!neutral || last->getNumOperands() != 2)
      return false;
    bool first = last->getOperand(0) == accumulator;
    if (!first && last->getOperand(1) != accumulator)
      return false;
    Value added = last->getOperand(first ? 1 : 0);
    if (auto widened = added.getDefiningOp<arith::ExtFOp>()) // of an f32 accumulator
      added = widened.getIn();
    auto select = added.getDefiningOp<arith::SelectOp>();
    if (!select || !(isNeutral(select.getFalseValue(), *neutral) ||
                     (isIdempotent(last) && isInitial(select.getFalseValue()))))
      return false;
    addConjuncts(select.getCondition());
    return true;
  }

  static bool isIdempotent(Operation *op) {
    return isa<arith::MaxSIOp, arith::MinSIOp, arith::MaximumFOp, arith::MinimumFOp>(op);
  }

  /// Whether `value` is the constant initial value of the accumulator, which bounds a maximum from
  /// below.
  bool isInitial(Value value) {
    Attribute constant, initial;
    DenseElementsAttr elements;
    Value init = op.getDpsInits()[0];
    if (matchPattern(init, m_Constant(&elements)) && elements.isSplat())
      initial = elements.getSplatValue<Attribute>();
    else if (auto fill = init.getDefiningOp<linalg::FillOp>())
      matchPattern(fill.getInputs()[0], m_Constant(&initial));
    return initial && matchPattern(value, m_Constant(&constant)) && constant == initial;
  }

  static bool isNeutral(Value value, TypedAttr neutral) {
    Attribute constant;
    if (!matchPattern(value, m_Constant(&constant)))
      return false;
    if (auto number = dyn_cast<FloatAttr>(constant)) // identity of sums: -0, and 0 is accepted
      return number.getValue().isZero() ? cast<FloatAttr>(neutral).getValue().isZero()
                                        : constant == neutral;
    return constant == neutral;
  }

  void addConjuncts(Value condition) {
    if (!conjuncts.insert(condition).second)
      return;
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      addConjuncts(both.getLhs());
      addConjuncts(both.getRhs());
      return;
    }
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
      return;
    // Of two loops, as in v == start[i] + j, one that is reduced is looked up.
    for (bool mayBeParallel : {false, true})
      if (addSelected(compare.getLhs(), compare.getRhs(), mayBeParallel) ||
          addSelected(compare.getRhs(), compare.getLhs(), mayBeParallel))
        return;
  }

  bool addSelected(Value loopSide, Value index, bool mayBeParallel) {
    SelectedLoop each{0, index, {}};
    std::optional<unsigned> loop = matchLoopPlusOffsets(loopSide, each.offsets);
    if (!loop || loopsOf(index).test(*loop) ||
        (!mayBeParallel && op.getIteratorTypesArray()[*loop] != utils::IteratorType::reduction) ||
        llvm::any_of(each.offsets, [&](Value offset) { return loopsOf(offset).test(*loop); }) ||
        llvm::any_of(found, [&](const SelectedLoop &other) { return other.loop == *loop; }))
      return false;
    each.loop = *loop;
    // Narrow integers would wrap around: several iterations would match one index.
    int64_t extent = op.getStaticLoopRanges()[*loop];
    auto width = static_cast<unsigned>(
        index.getType().isIndex() ? 64 : index.getType().getIntOrFloatBitWidth());
    if (ShapedType::isDynamic(extent) || extent == 0 ||
        (width < 64 && extent >= int64_t(1) << (width - 1)) ||
        (width < 32 && !each.offsets.empty()))
      return false;
    found.push_back(std::move(each));
    return true;
  }

  /// The loop that `value` equals plus `offsets`. Sums of terms with a common loop are no
  /// candidates, so a value is visited once per loop, not once per path to it.
  std::optional<unsigned> matchLoopPlusOffsets(Value value, SmallVectorImpl<Value> &offsets) {
    if (auto index = value.getDefiningOp<linalg::IndexOp>())
      return index.getDim();
    if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
      return matchLoopPlusOffsets(cast.getIn(), offsets);
    auto add = value.getDefiningOp<arith::AddIOp>();
    if (!add || loopsOf(add).none() || loopsOf(add.getLhs()).anyCommon(loopsOf(add.getRhs())))
      return std::nullopt;
    for (auto [one, other] :
         {std::pair(add.getLhs(), add.getRhs()), {add.getRhs(), add.getLhs()}}) {
      size_t before = offsets.size();
      offsets.push_back(other);
      if (std::optional<unsigned> loop = matchLoopPlusOffsets(one, offsets))
        return loop;
      offsets.truncate(before);
    }
    return std::nullopt;
  }

  /// The loops on which a value of the body depends.
  llvm::SmallBitVector loopsOf(Value value) {
    if (auto it = loopsOfValue.find(value); it != loopsOfValue.end())
      return it->second;
    llvm::SmallBitVector loops = findLoopsOf(value);
    return loopsOfValue[value] = loops;
  }

  llvm::SmallBitVector findLoopsOf(Value value) {
    llvm::SmallBitVector loops(op.getNumLoops());
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() != &body)
        return loops;
      AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
      for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
        if (map.isFunctionOfDim(loop))
          loops.set(loop);
      if (argument.getArgNumber() + 1 == body.getNumArguments())
        loops.set(); // the accumulator
      return loops;
    }
    Operation *producer = value.getDefiningOp();
    if (producer->getBlock() != &body)
      return loops;
    if (auto index = dyn_cast<linalg::IndexOp>(producer)) {
      loops.set(index.getDim());
      return loops;
    }
    if (producer->getNumRegions() != 0)
      loops.set(); // unknown
    for (Value operand : producer->getOperands())
      loops |= loopsOf(operand);
    return loops;
  }

  linalg::GenericOp op;
  Block &body;
  SmallVector<SelectedLoop, 2> found;
  llvm::SmallPtrSet<Value, 4> conjuncts;                    ///< visited
  llvm::DenseMap<Value, llvm::SmallBitVector> loopsOfValue; ///< looked up only
};

} // namespace

SmallVector<SelectedLoop, 2> tessera::dist::selectedLoops(linalg::GenericOp op) {
  return SelectionFinder(op).find();
}

SmallVector<SelectedLoop, 2> tessera::dist::replaceableLoops(linalg::GenericOp op) {
  SmallVector<SelectedLoop, 2> selected = selectedLoops(op);
  if (selected.empty())
    return selected;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  // Short loops stay, the shortest first, while they have few iterations in all.
  SmallVector<int64_t> lengths;
  for (const SelectedLoop &each : selected)
    lengths.push_back(extents[each.loop]);
  llvm::sort(lengths);
  int64_t iterations = 1, longest = 0;
  for (int64_t length : lengths) {
    iterations *= length;
    if (iterations >= kLeastExtent)
      break;
    longest = length;
  }
  llvm::erase_if(selected, [&](const SelectedLoop &each) { return extents[each.loop] <= longest; });
  return selected;
}

SmallVector<SelectedLoop, 2> tessera::dist::lookedUpLoops(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0)
    return {};
  SmallVector<SelectedLoop, 2> selected = replaceableLoops(op);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  llvm::erase_if(selected, [&](const SelectedLoop &each) {
    return iterators[each.loop] != utils::IteratorType::reduction;
  });
  return selected;
}

bool tessera::dist::isLookedUp(linalg::GenericOp op, OpOperand &operand) {
  if (!op.isDpsInput(&operand))
    return false;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  return llvm::any_of(lookedUpLoops(op),
                      [&](const SelectedLoop &each) { return map.isFunctionOfDim(each.loop); });
}

/// Whether the result starts from a tensor in memory, not from a constant.
static bool updatesTensor(linalg::GenericOp op) {
  Value init = op.getDpsInits()[0];
  if (auto maker = init.getDefiningOp<linalg::LinalgOp>())
    return llvm::any_of(maker.getDpsInputs(), llvm::IsaPred<TypedValue<RankedTensorType>>);
  return !matchPattern(init, m_Constant());
}

bool tessera::dist::isScatter(linalg::GenericOp op) {
  SmallVector<SelectedLoop, 2> selected = replaceableLoops(op);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  if (llvm::none_of(selected, [&](const SelectedLoop &each) {
        return iterators[each.loop] == utils::IteratorType::parallel;
      }))
    return false;
  int64_t summands = 1, comparisons = 1;
  for (auto [loop, extent] : llvm::enumerate(op.getStaticLoopRanges())) {
    comparisons *= extent;
    if (iterators[loop] == utils::IteratorType::reduction)
      summands *= extent;
  }
  return summands > kMostCompared || (comparisons > kMostComparisons && updatesTensor(op));
}
