//===- Linearity.cpp - Ops that contributions pass through ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "tessera/Dialect/Dist/Rules/Rounding.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tessera;

namespace {

/// How a value depends on chosen values, taken together; `either` values may be chosen or not.
enum class Class { zero, independent, linear, either, other };

} // namespace

static bool isWhole(Class c) {
  return c == Class::independent || c == Class::either;
}

static bool isLinear(Class c) {
  return c == Class::linear || c == Class::zero || c == Class::either;
}

static Class add(Class a, Class b) {
  if (a == Class::zero)
    return b;
  if (b == Class::zero)
    return a;
  if (a == Class::either || b == Class::either)
    return a == Class::either ? b : a;
  return a == b && a != Class::other ? a : Class::other; // linear + independent is affine
}

static Class multiply(Class a, Class b) {
  if (a == Class::zero || b == Class::zero)
    return Class::zero;
  if (a == Class::either || b == Class::either) { // the other one may be whole
    Class rest = a == Class::either ? b : a;
    return rest == Class::independent ? Class::either : rest;
  }
  if (a == Class::other || b == Class::other || (a == Class::linear && b == Class::linear))
    return Class::other;
  return a == Class::linear || b == Class::linear ? Class::linear : Class::independent;
}

/// The dependence of the result of an `arith` or `math` op, given those of its operands.
static Class classify(Operation *op, llvm::function_ref<Class(unsigned)> operand) {
  auto independentOrOther = [&]() {
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (!isWhole(operand(i)) && operand(i) != Class::zero)
        return Class::other;
    return Class::independent;
  };
  if (isa<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>(op))
    return add(operand(0), operand(1));
  if (isa<arith::MulFOp, arith::MulIOp>(op))
    return multiply(operand(0), operand(1));
  if (isa<arith::DivFOp>(op))
    return isWhole(operand(1)) ? operand(0) : independentOrOther();
  if (isa<arith::NegFOp, arith::ExtFOp>(op))
    return operand(0);
  if (isa<arith::TruncFOp>(op))
    if (Operation *parent = op->getParentOp(); parent && parent->hasAttr(dist::kRoundsPartials))
      return operand(0);
  if (isa<arith::SelectOp>(op))
    return isWhole(operand(0)) ? add(operand(1), operand(2)) : Class::other;
  return independentOrOther();
}

bool dist::passesSumElementwise(Operation *op, ArrayRef<int64_t> operands,
                                ArrayRef<int64_t> unknown) {
  return isLinear(classify(op, [&](unsigned i) {
    return llvm::is_contained(unknown, i)    ? Class::either
           : llvm::is_contained(operands, i) ? Class::linear
                                             : Class::independent;
  }));
}

namespace {

/// The dependence of the values of a body on chosen arguments of its block.
class Linearity {
public:
  Linearity(Block *block, const llvm::SmallBitVector &chosen, const llvm::SmallBitVector &unknown)
      : block(block), chosen(chosen), unknown(unknown) {}

  Class classify(Value value) {
    auto it = known.find(value);
    if (it != known.end())
      return it->second;
    Class result = compute(value);
    known[value] = result;
    return result;
  }

private:
  Class compute(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() != block)
        return Class::independent;
      if (unknown[argument.getArgNumber()])
        return Class::either;
      return chosen[argument.getArgNumber()] ? Class::linear : Class::independent;
    }
    Operation *op = value.getDefiningOp();
    if (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()))
      return Class::zero;
    if (op->getBlock() != block)
      return Class::independent;
    if (op->getNumRegions() > 0)
      return Class::other; // its regions may read anything
    return ::classify(op, [&](unsigned i) { return classify(op->getOperand(i)); });
  }

  Block *block;
  const llvm::SmallBitVector &chosen, &unknown;
  llvm::DenseMap<Value, Class> known;
};

} // namespace

/// Whether elements of an init are in the result although the body does not read it: elements
/// outside of the output map, such as those beside a written diagonal.
static bool keepsPartOfInit(linalg::LinalgOp op) {
  return llvm::any_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    return !op.getMatchingIndexingMap(&init).isProjectedPermutation();
  });
}

/// Operands and unknown ones as arguments of the body.
static std::pair<llvm::SmallBitVector, llvm::SmallBitVector>
argumentsOf(Block *block, ArrayRef<int64_t> operands, ArrayRef<int64_t> unknown) {
  llvm::SmallBitVector chosen(block->getNumArguments()), either(block->getNumArguments());
  for (int64_t operand : operands)
    chosen.set(operand);
  for (int64_t operand : unknown)
    either.set(operand);
  return {chosen, either};
}

static bool passesSum(linalg::LinalgOp op, ArrayRef<int64_t> operands, ArrayRef<int64_t> unknown) {
  Block *block = op.getBlock();
  auto [chosen, either] = argumentsOf(block, operands, unknown);
  // An accumulator that is read starts the sum and must be a contribution: otherwise each device
  // would add it. The same holds for kept elements of an init.
  bool kept = keepsPartOfInit(op);
  for (BlockArgument output : op.getRegionOutputArgs())
    if ((kept || !output.use_empty()) && !chosen[output.getArgNumber()] &&
        !either[output.getArgNumber()])
      return false;
  Linearity linearity(block, chosen, either);
  return llvm::all_of(block->getTerminator()->getOperands(),
                      [&](Value yielded) { return isLinear(linearity.classify(yielded)); });
}

/// Whether every element of the result is one of the chosen operands, unchanged or in more bits,
/// which changes no sum, product or order, and the choice does not depend on contributions.
/// Rounding to fewer bits is monotone: the maximum of rounded values is the rounded maximum.
static bool picksOperand(linalg::LinalgOp op, sharding::ReduceKind kind, ArrayRef<int64_t> operands,
                         ArrayRef<int64_t> unknown) {
  if (op.getNumParallelLoops() != op.getNumLoops() || keepsPartOfInit(op))
    return false;
  Block *block = op.getBlock();
  auto [chosen, either] = argumentsOf(block, operands, unknown);
  Linearity linearity(block, chosen, either);
  bool isOrder = kind == sharding::ReduceKind::max || kind == sharding::ReduceKind::min;
  SmallVector<Value> pending(block->getTerminator()->getOperands());
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *maker = value.getDefiningOp();
    if (auto select = dyn_cast_or_null<arith::SelectOp>(maker);
        select && isWhole(linearity.classify(select.getCondition()))) {
      pending.append({select.getTrueValue(), select.getFalseValue()});
    } else if (isa_and_nonnull<arith::ExtFOp>(maker) ||
               (isOrder && isa_and_nonnull<arith::TruncFOp>(maker))) {
      pending.push_back(maker->getOperand(0));
    } else {
      auto argument = dyn_cast<BlockArgument>(value);
      if (!argument || argument.getOwner() != block ||
          !(chosen[argument.getArgNumber()] || either[argument.getArgNumber()]))
        return false;
    }
  }
  return true;
}

bool dist::passesPartialThroughBody(linalg::LinalgOp op, sharding::ReduceKind kind,
                                    ArrayRef<int64_t> operands, ArrayRef<int64_t> unknown) {
  return picksOperand(op, kind, operands, unknown) ||
         (kind == sharding::ReduceKind::sum && passesSum(op, operands, unknown));
}

bool dist::passesPartial(Operation *op, sharding::ReduceKind kind, ArrayRef<int64_t> operands,
                         ArrayRef<int64_t> unknown) {
  if (op->getNumResults() != 1 || operands.empty())
    return false;
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  return rule && rule.passesPartial(kind, operands, unknown);
}

SmallVector<int64_t> dist::operandsToPass(Operation *op, sharding::ReduceKind kind,
                                          ArrayRef<int64_t> partial) {
  SmallVector<int64_t> tensors, none;
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rule || op->getNumResults() != 1)
    return none;
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    if (isa<RankedTensorType>(type))
      tensors.push_back(i);
  SmallVector<SmallVector<int64_t>> candidates;
  constexpr size_t kMostOperandsToTry = 6;
  if (tensors.size() <= kMostOperandsToTry) {
    for (uint64_t bits = 1; bits < (uint64_t(1) << tensors.size()); ++bits) {
      SmallVector<int64_t> set;
      for (size_t i = 0; i < tensors.size(); ++i)
        if (bits >> i & 1)
          set.push_back(tensors[i]);
      candidates.push_back(std::move(set));
    }
  } else { // a fused body: the partial operands, all tensors, each partial operand
    candidates.emplace_back(partial.begin(), partial.end());
    candidates.push_back(tensors);
    for (int64_t one : partial)
      candidates.push_back({one});
  }
  auto partialIn = [&](ArrayRef<int64_t> set) {
    return llvm::count_if(set, [&](int64_t i) { return llvm::is_contained(partial, i); });
  };
  // Of two factors the larger stays a contribution: reducing the other is cheaper.
  auto elements = [&](ArrayRef<int64_t> set) {
    int64_t sum = 0;
    for (int64_t i : set)
      if (llvm::is_contained(partial, i))
        sum += cast<RankedTensorType>(op->getOperand(i).getType()).getNumElements();
    return sum;
  };
  llvm::stable_sort(candidates, [&](const auto &a, const auto &b) {
    return std::make_tuple(-partialIn(a), a.size(), -elements(a)) <
           std::make_tuple(-partialIn(b), b.size(), -elements(b));
  });
  for (SmallVector<int64_t> &set : candidates)
    if (partialIn(set) > 0 && rule.passesPartial(kind, set, {}))
      return set;
  return none;
}

bool dist::passesAllOperands(Operation *op) {
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  SmallVector<int64_t> read;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) &&
        !(destination && destination.isDpsInit(&operand)))
      read.push_back(operand.getOperandNumber());
  if (read.empty())
    return false;
  SmallVector<int64_t> passing = operandsToPass(op, sharding::ReduceKind::sum, read);
  return llvm::all_of(read, [&](int64_t i) { return llvm::is_contained(passing, i); });
}
