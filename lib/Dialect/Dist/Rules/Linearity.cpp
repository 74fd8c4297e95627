//===- Linearity.cpp - Which ops contributions pass through ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Whether the value yielded is linear in the chosen block arguments, taken together. `either`
/// arguments count as chosen or not, whatever makes it so.
class Linearity {
public:
  enum Class { zero, independent, linear, either, other };

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
  static Class add(Class a, Class b) {
    if (a == zero)
      return b;
    if (b == zero)
      return a;
    if (a == either || b == either)
      return a == either ? b : a;
    return a == b && a != other ? a : other; // linear + independent is affine
  }
  static Class multiply(Class a, Class b) {
    if (a == zero || b == zero)
      return zero;
    if (a == either || b == either) { // the other one may be whole
      Class rest = a == either ? b : a;
      return rest == independent ? either : rest;
    }
    if (a == other || b == other || (a == linear && b == linear))
      return other;
    return a == linear || b == linear ? linear : independent;
  }

  Class compute(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() != block)
        return independent;
      if (unknown[argument.getArgNumber()])
        return either;
      return chosen[argument.getArgNumber()] ? linear : independent;
    }
    Operation *op = value.getDefiningOp();
    if (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()))
      return zero;
    if (op->getBlock() != block)
      return independent;
    if (op->getNumRegions() > 0)
      return other; // its regions may read anything
    auto operand = [&](unsigned i) { return classify(op->getOperand(i)); };
    if (isa<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>(op))
      return add(operand(0), operand(1));
    if (isa<arith::MulFOp, arith::MulIOp>(op))
      return multiply(operand(0), operand(1));
    if (isa<arith::DivFOp>(op))
      return isWhole(operand(1)) ? operand(0) : independentOrOther(op);
    if (isa<arith::NegFOp, arith::ExtFOp>(op))
      return operand(0);
    if (isa<arith::SelectOp>(op))
      return isWhole(operand(0)) ? add(operand(1), operand(2)) : other;
    return independentOrOther(op);
  }

  Class independentOrOther(Operation *op) {
    for (Value input : op->getOperands())
      if (!isWhole(classify(input)) && classify(input) != zero)
        return other;
    return independent;
  }
  static bool isWhole(Class c) { return c == independent || c == either; }

  Block *block;
  const llvm::SmallBitVector &chosen, &unknown;
  llvm::DenseMap<Value, Class> known;
};

} // namespace

/// Whether elements of an init are in the result though the body does not read it: where the output
/// map does not reach, as behind a write to a diagonal.
static bool keepsPartOfInit(linalg::LinalgOp op) {
  return llvm::any_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    return !op.getMatchingIndexingMap(&init).isProjectedPermutation();
  });
}

static bool passesSum(linalg::LinalgOp op, ArrayRef<int64_t> operands,
                      ArrayRef<int64_t> unknown) {
  Block *block = op.getBlock();
  llvm::SmallBitVector chosen(block->getNumArguments()), either(block->getNumArguments());
  for (int64_t operand : operands)
    chosen.set(operand);
  for (int64_t operand : unknown)
    either.set(operand);
  // An accumulator that is read starts the sum: it is counted once a device otherwise. So is what
  // is kept of an init.
  bool kept = keepsPartOfInit(op);
  for (BlockArgument output : op.getRegionOutputArgs())
    if ((kept || !output.use_empty()) && !chosen[output.getArgNumber()] &&
        !either[output.getArgNumber()])
      return false;
  Linearity linearity(block, chosen, either);
  return llvm::all_of(block->getTerminator()->getOperands(), [&](Value yielded) {
    Linearity::Class c = linearity.classify(yielded);
    return c == Linearity::linear || c == Linearity::zero || c == Linearity::either;
  });
}

/// Whether a body yields its input as it is, or in more bits: that changes no sum, product or
/// order.
static bool yieldsInput(linalg::LinalgOp op) {
  Value yielded = op.getBlock()->getTerminator()->getOperand(0);
  if (auto extended = yielded.getDefiningOp<arith::ExtFOp>())
    yielded = extended.getIn();
  return yielded == op.getBlock()->getArgument(0);
}

/// Whether every element of the result is an element of the first operand, or of all operands.
static bool movesOperands(Operation *op, ArrayRef<int64_t> operands, ArrayRef<int64_t> unknown) {
  auto onlyFirst = [&]() { return operands.size() == 1 && operands.front() == 0; };
  auto all = [&](int64_t count) {
    return llvm::all_of(llvm::seq<int64_t>(0, count), [&](int64_t i) {
      return llvm::is_contained(operands, i) || llvm::is_contained(unknown, i);
    });
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp>(
          [&](auto) { return onlyFirst(); })
      .Case([&](tensor::ConcatOp op) { return all(op.getInputs().size()); })
      .Case([&](tensor::InsertSliceOp) { return all(2); })
      .Case([&](linalg::LinalgOp op) {
        return op.getNumDpsInputs() == 1 && op.getNumParallelLoops() == op.getNumLoops() &&
               yieldsInput(op) && onlyFirst() && !keepsPartOfInit(op);
      })
      .Default([](Operation *) { return false; });
}

bool dist::passesPartial(Operation *op, sharding::ReduceKind kind, ArrayRef<int64_t> operands,
                         ArrayRef<int64_t> unknown) {
  if (op->getNumResults() != 1 || operands.empty())
    return false;
  if (movesOperands(op, operands, unknown))
    return true;
  if (kind != sharding::ReduceKind::sum)
    return false;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return passesSum(linalgOp, operands, unknown);
  auto pad = dyn_cast<tensor::PadOp>(op);
  return pad && operands.size() == 1 && operands.front() == 0 && pad.getConstantPaddingValue() &&
         (matchPattern(pad.getConstantPaddingValue(), m_AnyZeroFloat()) ||
          matchPattern(pad.getConstantPaddingValue(), m_Zero()));
}

SmallVector<int64_t> dist::operandsToPass(Operation *op, sharding::ReduceKind kind,
                                          ArrayRef<int64_t> partial) {
  SmallVector<int64_t> tensors, none;
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
  } else { // a fused body: what is partial, that with the accumulators, everything
    candidates.emplace_back(partial.begin(), partial.end());
    candidates.push_back(tensors);
    for (int64_t one : partial)
      candidates.push_back({one});
  }
  auto partialIn = [&](ArrayRef<int64_t> set) {
    return llvm::count_if(set, [&](int64_t i) { return llvm::is_contained(partial, i); });
  };
  // Of two factors the larger stays a contribution: the other is reduced at less cost.
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
    if (partialIn(set) > 0 && passesPartial(op, kind, set))
      return set;
  return none;
}
