//===- ConstantIndices.cpp - Integers known at compile time ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops are folded element by element with the program's arithmetic, including floats
// (the rounded-down positions of an interpolation).
//
//===----------------------------------------------------------------------===//

#include "ConstantIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limit on the length of a chain of ops.
static constexpr int kMostSteps = 64;
/// Runs of indices with one step, at most.
static constexpr size_t kMostRuns = 16;

namespace {

using Indices = std::vector<std::optional<int64_t>>;
/// Known elements of tensors; null if known not to be constant. Looked up only.
using Elements = std::map<std::pair<Operation *, Indices>, Attribute>;

/// Folds the values of a body for one iteration.
class Iteration {
public:
  /// `indices`: of the loops; results must not depend on loops without a number.
  Iteration(linalg::GenericOp op, Indices indices, int steps, Elements &elements)
      : op(op), indices(std::move(indices)), steps(steps), elements(elements) {}

  /// Null if it is unknown.
  Attribute of(Value value) {
    auto [known, isNew] = values.try_emplace(value);
    if (!isNew)
      return known->second;
    Attribute result = compute(value);
    return values[value] = result;
  }

private:
  Attribute compute(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
        return {};
      return element(op.getInputs()[argument.getArgNumber()],
                     op.getIndexingMapsArray()[argument.getArgNumber()]);
    }
    Operation *made = value.getDefiningOp();
    if (auto index = dyn_cast<linalg::IndexOp>(made)) {
      std::optional<int64_t> number = indices[index.getDim()];
      return number ? IntegerAttr::get(index.getType(), *number) : Attribute();
    }
    Attribute constant;
    if (matchPattern(made, m_Constant(&constant)))
      return constant;
    if (!isMemoryEffectFree(made) || made->getNumResults() != 1 || made->getNumRegions() > 0)
      return {};
    // The operand of a select that is not chosen may be unknown.
    if (auto select = dyn_cast<arith::SelectOp>(made)) {
      auto condition = dyn_cast_or_null<IntegerAttr>(of(select.getCondition()));
      if (!condition)
        return {};
      return of(condition.getValue().isZero() ? select.getFalseValue() : select.getTrueValue());
    }
    SmallVector<Attribute> operands;
    for (Value operand : made->getOperands()) {
      Attribute known = of(operand);
      if (!known)
        return {};
      operands.push_back(known);
    }
    SmallVector<OpFoldResult> folded;
    if (failed(made->fold(operands, folded)) || folded.size() != 1)
      return {};
    if (auto attribute = dyn_cast<Attribute>(folded[0]))
      return attribute;
    return of(cast<Value>(folded[0]));
  }

  /// The element of a tensor that a map reads.
  Attribute element(Value tensor, AffineMap map) {
    Indices read;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      auto number = dyn_cast<AffineConstantExpr>(expr);
      if (!dim && !number)
        return {};
      read.push_back(dim ? indices[dim.getPosition()] : std::optional(number.getValue()));
    }
    DenseElementsAttr constant;
    if (matchPattern(tensor, m_Constant(&constant))) {
      if (constant.isSplat())
        return constant.getSplatValue<Attribute>();
      SmallVector<uint64_t> place;
      for (std::optional<int64_t> index : read) {
        if (!index)
          return {};
        place.push_back(static_cast<uint64_t>(*index));
      }
      return constant.getValues<Attribute>()[place];
    }
    auto producer = tensor.getDefiningOp<linalg::GenericOp>();
    if (steps == 0 || !producer || producer->getNumResults() != 1 ||
        producer.getNumReductionLoops() > 0 || !producer.hasPureTensorSemantics() ||
        !producer.getIndexingMapsArray().back().isIdentity())
      return {};
    auto [known, isNew] = elements.try_emplace({producer, read});
    if (isNew)
      known->second = Iteration(producer, read, steps - 1, elements)
                          .of(producer.getBody()->getTerminator()->getOperand(0));
    return known->second;
  }

  linalg::GenericOp op;
  Indices indices;
  int steps;
  Elements &elements;
  llvm::DenseMap<Value, Attribute> values; // looked up only
};

} // namespace

std::optional<SmallVector<int64_t>> dist::valuesOver(linalg::GenericOp op, Value value,
                                                     unsigned loop, int64_t most) {
  int64_t extent = op.getStaticLoopRanges()[loop];
  if (extent <= 0 || extent > most)
    return std::nullopt;
  SmallVector<int64_t> values;
  Indices indices(op.getNumLoops());
  Elements elements;
  for (int64_t i = 0; i < extent; ++i) {
    indices[loop] = i;
    auto number =
        dyn_cast_or_null<IntegerAttr>(Iteration(op, indices, kMostSteps, elements).of(value));
    if (!number || number.getValue().getSignificantBits() > 63)
      return std::nullopt;
    values.push_back(number.getValue().getSExtValue());
  }
  return values;
}

SmallVector<sharding::Segment> dist::runsOf(ArrayRef<int64_t> indices) {
  int64_t count = std::ssize(indices);
  auto run = [&](int64_t first, int64_t every, int64_t length, int64_t step) {
    if (length == 1)
      return sharding::Segment{indices[first], 1, first, 1, 1};
    int64_t last = first + every * (length - 1);
    return step > 0 ? sharding::Segment{indices[first], step, first, every, length}
                    : sharding::Segment{indices[last], -step, last, -every, length};
  };
  SmallVector<sharding::Segment> runs;
  for (int64_t period = 1; period <= static_cast<int64_t>(kMostRuns) && 2 * period <= count;
       ++period) {
    int64_t step = indices[period] - indices[0];
    auto follows = [&](int64_t i) { return indices[i + period] - indices[i] == step; };
    if (step == 0 || !llvm::all_of(llvm::seq<int64_t>(0, count - period), follows))
      continue;
    for (int64_t i = 0; i < period; ++i)
      runs.push_back(run(i, period, (count - i + period - 1) / period, step));
    return runs;
  }
  for (int64_t first = 0; first < count;) {
    int64_t next = first + 1, step = next < count ? indices[next] - indices[first] : 1;
    while (step != 0 && next < count && indices[next] - indices[next - 1] == step)
      ++next;
    runs.push_back(run(first, 1, next - first, step));
    if (runs.size() > kMostRuns)
      return {};
    first = next;
  }
  return runs;
}
