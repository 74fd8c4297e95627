//===- MatchScans.cpp - Loops that are affine in what they carry ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CutScan.h"
#include "SplitLoops.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

bool CutScan::readBounds() {
  APInt lower, upper, step;
  if (isAnnotated(loop) || !matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !lower.isZero() || !step.isOne())
    return false;
  trips = upper.getSExtValue();
  return trips >= 4;
}

bool CutScan::isCounter(OpFoldResult offset) {
  auto value = dyn_cast<Value>(offset);
  if (value == loop.getInductionVar())
    return true;
  APInt last;
  auto difference = value ? value.getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  return difference && difference.getRhs() == loop.getInductionVar() &&
         matchPattern(difference.getLhs(), m_ConstantInt(&last)) &&
         last.getSExtValue() == trips - 1;
}

std::optional<int64_t> CutScan::dimOfIterations(OffsetSizeAndStrideOpInterface slice,
                                                RankedTensorType type) {
  std::optional<int64_t> dim;
  for (auto [d, offset] : llvm::enumerate(slice.getMixedOffsets())) {
    if (!isCounter(offset)) {
      auto value = dyn_cast<Value>(offset);
      if (value && !loop.isDefinedOutsideOfLoop(value) && !matchPattern(value, m_Constant()))
        return std::nullopt;
      continue;
    }
    if (dim || slice.getStaticSizes()[d] != 1 || slice.getStaticStrides()[d] != 1 ||
        type.getDimSize(d) != trips)
      return std::nullopt;
    dim = d;
    (cast<Value>(offset) == loop.getInductionVar() ? isForward : isReverse) = true;
  }
  return dim;
}

bool CutScan::readCarry(BlockArgument argument) {
  Carry carry;
  carry.argument = argument;
  carry.yielded = loop.getTiedLoopYieldedValue(argument)->get();
  // What a carry is replaced by tells it from the others, and is computed.
  if (isa<BlockArgument>(carry.yielded) ||
      llvm::any_of(carries, [&](const Carry &other) { return other.yielded == carry.yielded; }))
    return false;
  carry.result = loop.getTiedLoopResult(argument);
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  auto insert = carry.yielded.getDefiningOp<tensor::InsertSliceOp>();
  if (type && insert && insert.getDest() == argument && argument.hasOneUse() &&
      insert->hasOneUse() && insert->getBlock() == loop.getBody() && !isAnnotated(insert)) {
    std::optional<int64_t> dim =
        dimOfIterations(cast<OffsetSizeAndStrideOpInterface>(*insert), type);
    bool isWhole = dim.has_value();
    for (int64_t d = 0; d < type.getRank(); ++d)
      isWhole &= d == dim || insert.getStaticSizes()[d] == type.getDimSize(d);
    if (!isWhole)
      return false;
    carry.stack = insert;
    carry.dim = *dim;
  } else {
    std::optional<AffineCarry> affine = AffineCarry::match(loop, argument);
    if (!affine)
      return false;
    carry.affine = std::move(*affine);
  }
  carries.push_back(std::move(carry));
  return true;
}

/// Whether the ops of a region use values of the loop's body, other than constants.
static bool capturesBody(Operation *op, Block *body) {
  bool captures = false;
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        captures |= operand.getParentBlock() == body && !matchPattern(operand, m_Constant());
    });
  return captures;
}

bool CutScan::readBody() {
  llvm::DenseSet<Value> varying;
  for (const Carry &carry : carries)
    if (!carry.stack)
      varying.insert(carry.argument);
  llvm::DenseSet<Operation *> stacks;
  for (Carry &carry : carries)
    if (carry.stack)
      stacks.insert(carry.stack);
  llvm::DenseSet<Value> ofCounter = {loop.getInductionVar()};
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (stacks.contains(&op))
      continue;
    if (capturesBody(&op, loop.getBody()))
      return false;
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    if (slice && llvm::any_of(slice.getOffsets(), [&](Value v) { return ofCounter.contains(v); })) {
      std::optional<int64_t> dim =
          dimOfIterations(cast<OffsetSizeAndStrideOpInterface>(op), slice.getSourceType());
      if (!dim || !loop.isDefinedOutsideOfLoop(slice.getSource()) || isAnnotated(slice) ||
          !slice.getSizes().empty() || !slice.getStrides().empty())
        return false;
      slices[slice] = *dim;
      varying.insert(slice.getResult());
      continue;
    }
    if (isa<arith::SubIOp>(op) && isCounter(OpFoldResult(op.getResult(0)))) {
      ofCounter.insert(op.getResult(0));
      continue;
    }
    if (llvm::any_of(op.getOperands(), [&](Value v) { return ofCounter.contains(v); }))
      return false;
    if (llvm::none_of(op.getOperands(), [&](Value v) { return varying.contains(v); })) {
      if (!isPure(&op) || isAnnotated(&op))
        return false;
      continue;
    }
    if (!BlockedOps::supports(&op))
      return false;
    varying.insert_range(op.getResults());
  }
  return !slices.empty() && isForward != isReverse;
}

SetVector<Operation *> dist::opsBehind(scf::ForOp loop, ValueRange values) {
  SetVector<Operation *> ops;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) { return op->getBlock() == loop.getBody(); };
  for (Value value : values)
    if (Operation *op = value.getDefiningOp(); op && op->getBlock() == loop.getBody())
      (void)getBackwardSlice(op, &ops, options);
  return ops;
}

bool CutScan::orderRecurrences() {
  SmallVector<Carry *> left;
  for (Carry &carry : carries)
    if (carry.isRecurrence())
      left.push_back(&carry);
  for (int level = 1; !left.empty(); ++level) {
    SmallVector<Carry *> later;
    for (Carry *carry : left) {
      SetVector<Operation *> ops = opsBehind(loop, carry->yielded);
      bool isLater = llvm::any_of(left, [&](Carry *other) {
        return other != carry && (carry->yielded == other->argument ||
                                  llvm::any_of(other->argument.getUsers(), [&](Operation *user) {
                                    return ops.contains(user);
                                  }));
      });
      if (isLater)
        later.push_back(carry);
      else
        carry->level = level;
    }
    if (later.size() == left.size())
      return false;
    left = std::move(later);
  }
  return true;
}

bool CutScan::chooseBlocks(const ConnectedDims &dims) {
  auto consider = [&](Value value, int64_t dim) {
    if (sharding::AxisList found = dims.axesOf({value, dim}); sharding::sizeOf(found) > blocks) {
      axes = std::move(found);
      blocks = sharding::sizeOf(axes);
    }
  };
  for (auto [op, dim] : slices)
    consider(cast<tensor::ExtractSliceOp>(op).getSource(), dim);
  for (Carry &carry : carries)
    if (carry.stack)
      consider(carry.result, carry.dim);
  return blocks > 1 && trips % blocks == 0 && perBlock() > 1;
}

std::optional<CutScan> CutScan::match(scf::ForOp loop) {
  CutScan scan(loop);
  if (!scan.readBounds() || !llvm::all_of(loop.getRegionIterArgs(), [&](BlockArgument argument) {
        return scan.readCarry(argument);
      }))
    return std::nullopt;
  if (!scan.readBody() || !scan.orderRecurrences())
    return std::nullopt;
  return scan;
}
