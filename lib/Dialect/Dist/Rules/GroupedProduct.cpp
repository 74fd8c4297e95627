//===- GroupedProduct.cpp - Rows times the matrix of their group ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/GroupedProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

class GroupedMatcher {
public:
  explicit GroupedMatcher(linalg::GenericOp op) : op(op), body(*op.getBody()) {}

  std::optional<GroupedProduct> match() {
    if (op.getNumDpsInits() != 1 || op->getNumResults() != 1 || !op.hasPureTensorSemantics() ||
        op.getNumReductionLoops() == 0 || op.hasDynamicShape() ||
        !llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isProjectedPermutation(); }) ||
        !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
      return std::nullopt;
    if (!addSum(body.getTerminator()->getOperand(0)) || leaves.size() != 2 ||
        leaves[0] == leaves[1])
      return std::nullopt;
    for (auto [place, condition] : llvm::enumerate(conditions))
      if (std::optional<GroupedProduct> found = groupsIn(condition)) {
        for (auto [other, guard] : llvm::enumerate(conditions))
          if (other != place)
            found->guards.push_back(guard);
        return found;
      }
    return std::nullopt;
  }

private:
  OpOperand *inputOf(Value scalar) {
    auto argument = dyn_cast<BlockArgument>(scalar);
    bool isInput =
        argument && argument.getOwner() == &body && argument.getArgNumber() < op.getNumDpsInputs();
    return isInput ? op.getDpsInputOperand(argument.getArgNumber()) : nullptr;
  }

  bool addSum(Value value) {
    BlockArgument accumulator = body.getArguments().back();
    if (auto select =
            value.getDefiningOp<arith::SelectOp>()) { // skips the padding of an uneven cut
      if (select.getFalseValue() != accumulator)
        return false;
      addCondition(select.getCondition());
      return addSum(select.getTrueValue());
    }
    Operation *sum = value.getDefiningOp();
    if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum) || value.getType().isInteger(1))
      return false;
    bool isFirst = sum->getOperand(0) == accumulator;
    return (isFirst || sum->getOperand(1) == accumulator) && addFactors(sum->getOperand(isFirst));
  }

  /// Adds the factors of a term and the conditions without which it is 0.
  bool addFactors(Value value) {
    constexpr size_t kMostFactors = 8; // likewise a factor
    if (leaves.size() > kMostFactors)
      return false;
    if (OpOperand *input = inputOf(value)) {
      leaves.push_back(input);
      return true;
    }
    Operation *inner = value.getDefiningOp();
    if (auto select = dyn_cast_or_null<arith::SelectOp>(inner)) {
      if (!matchPattern(select.getFalseValue(), m_AnyZeroFloat()) &&
          !matchPattern(select.getFalseValue(), m_Zero()))
        return false;
      addCondition(select.getCondition());
      return addFactors(select.getTrueValue());
    }
    if (isa_and_nonnull<arith::MulFOp, arith::MulIOp>(inner)) { // in the type of the sum
      if (value.getType() != body.getArguments().back().getType() || value.getType().isInteger(1))
        return false;
      return addFactors(inner->getOperand(0)) && addFactors(inner->getOperand(1));
    }
    auto extend = dyn_cast_or_null<arith::ExtFOp>(inner); // of a factor, not of a rounded product
    if (!extend)
      return false;
    size_t before = leaves.size();
    return addFactors(extend.getIn()) && leaves.size() == before + 1;
  }

  void addCondition(Value condition) {
    if (!seen.insert(condition).second) // a body may reach a condition in many ways
      return;
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      addCondition(both.getLhs());
      addCondition(both.getRhs());
      return;
    }
    conditions.push_back(condition);
  }

  /// The element of a tensor that an integer is, behind conversions.
  OpOperand *elementOf(Value number) {
    while (Operation *inner = number.getDefiningOp()) {
      if (!isa<arith::IndexCastOp, arith::ExtSIOp>(inner))
        return nullptr;
      number = inner->getOperand(0);
    }
    return inputOf(number);
  }

  /// A comparison of the group of a row with a loop.
  std::optional<GroupedProduct> groupsIn(Value condition) {
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
      return std::nullopt;
    for (auto [number, side] : {std::pair(compare.getLhs(), compare.getRhs()),
                                std::pair(compare.getRhs(), compare.getLhs())}) {
      OpOperand *index = elementOf(number);
      SmallVector<Value, 2> offsets;
      std::optional<unsigned> group = loopPlusOffsets(side, offsets);
      if (!index || !group || llvm::is_contained(leaves, index))
        continue;
      AffineMap map = op.getMatchingIndexingMap(index);
      if (map.getNumResults() == 0)
        continue;
      GroupedProduct found{{}, *group, index, {leaves[0], leaves[1]}, number, offsets, {}};
      for (AffineExpr row : map.getResults())
        found.rows.push_back(cast<AffineDimExpr>(row).getPosition());
      if (isProduct(found))
        return found;
    }
    return std::nullopt;
  }

  /// The loop that a scalar is, plus values from outside of the body or constants.
  std::optional<unsigned> loopPlusOffsets(Value value, SmallVectorImpl<Value> &offsets) {
    if (auto index = value.getDefiningOp<linalg::IndexOp>())
      return index.getDim();
    if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
      return loopPlusOffsets(cast.getIn(), offsets);
    auto add = value.getDefiningOp<arith::AddIOp>();
    if (!add)
      return std::nullopt;
    for (auto [one, other] :
         {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
      if (isInvariant(other)) {
        size_t before = offsets.size();
        offsets.push_back(other);
        if (std::optional<unsigned> loop = loopPlusOffsets(one, offsets))
          return loop;
        offsets.resize(before);
      }
    return std::nullopt;
  }

  /// Whether no loop changes a value, as none of one iteration does.
  bool isInvariant(Value value) {
    if (isa<BlockArgument>(value))
      return cast<BlockArgument>(value).getOwner() != &body;
    Operation *producer = value.getDefiningOp();
    if (auto number = dyn_cast<linalg::IndexOp>(producer))
      return number->getBlock() != &body || op.getStaticLoopRanges()[number.getDim()] == 1;
    return producer->getBlock() != &body ||
           (producer->getNumRegions() == 0 &&
            llvm::all_of(producer->getOperands(), [&](Value v) { return isInvariant(v); }));
  }

  /// A row meets the matrix of its group, or the rows of both factors are summed for the group of
  /// the result; in either case each factor has a loop of its own in the result, or the sum has one
  /// of both. Others are look-ups and scatters with a gate.
  bool isProduct(const GroupedProduct &found) {
    if (llvm::is_contained(found.rows, found.group))
      return false;
    auto hasRows = [&](AffineMap map) {
      return llvm::any_of(found.rows, [&](unsigned row) { return map.isFunctionOfDim(row); });
    };
    AffineMap out = op.getIndexingMapsArray().back();
    unsigned rows = 0, groups = 0;
    for (OpOperand *factor : found.factors) {
      AffineMap map = op.getMatchingIndexingMap(factor);
      rows += hasRows(map);
      groups += map.isFunctionOfDim(found.group);
      if (hasRows(map) && map.isFunctionOfDim(found.group))
        return false;
    }
    bool rowsInOut =
        llvm::all_of(found.rows, [&](unsigned row) { return out.isFunctionOfDim(row); });
    bool groupsInOut = out.isFunctionOfDim(found.group);
    if (!rowsInOut && hasRows(out))
      return false;
    bool isSummed = false, isOwn[2] = {false, false};
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
      if (llvm::is_contained(found.rows, loop) || loop == found.group)
        continue;
      bool in[2];
      for (unsigned n : {0, 1})
        in[n] = op.getMatchingIndexingMap(found.factors[n]).isFunctionOfDim(loop);
      isSummed |= in[0] && in[1] && !out.isFunctionOfDim(loop);
      for (unsigned n : {0, 1})
        isOwn[n] |= in[n] && !in[1 - n] && out.isFunctionOfDim(loop);
      if (!in[0] && !in[1])
        return false;
    }
    if (rows == 2)
      return groups == 0 && groupsInOut && !rowsInOut && isOwn[0] && isOwn[1];
    bool isMatrixFirst = op.getMatchingIndexingMap(found.factors[0]).isFunctionOfDim(found.group);
    return rows == 1 && groups == 1 && rowsInOut && !groupsInOut && isSummed &&
           isOwn[isMatrixFirst ? 0 : 1];
  }

  linalg::GenericOp op;
  Block &body;
  SmallVector<OpOperand *, 2> leaves;
  SmallVector<Value> conditions;
  llvm::DenseSet<Value> seen; ///< conditions, looked up only
};

} // namespace

std::optional<GroupedProduct> dist::matchGroupedProduct(linalg::GenericOp op) {
  return GroupedMatcher(op).match();
}
