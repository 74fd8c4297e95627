//===- AffineCarries.cpp - Recurrences h' = a h + b -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AffineCarries.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

//===----------------------------------------------------------------------===//
// Linear parts
//===----------------------------------------------------------------------===//

static bool isSum(Operation *op) {
  return isa<arith::AddFOp, arith::AddIOp>(op);
}
static bool isDifference(Operation *op) {
  return isa<arith::SubFOp, arith::SubIOp>(op);
}

/// Whether a scalar op is linear in its linear operands.
bool LinearPart::accept(Operation &inner) {
  if (llvm::none_of(inner.getOperands(), [&](Value value) { return isLinear(value); }))
    return true;
  if (inner.getNumResults() != 1)
    return false;
  bool first = isLinear(inner.getOperand(0));
  bool second = inner.getNumOperands() > 1 && isLinear(inner.getOperand(1));
  bool isAccepted = isSum(&inner) || isDifference(&inner) || isa<arith::NegFOp>(inner) ||
                    (isa<arith::MulFOp, arith::MulIOp>(inner) && first != second) ||
                    (isa<arith::DivFOp>(inner) && first && !second) ||
                    (isa<arith::SelectOp>(inner) && !first);
  if (isAccepted)
    linear.insert(inner.getResult(0));
  return isAccepted;
}

/// Marks the arguments and indices from which a value is computed.
void LinearPart::read(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == op.getBlock())
      isRead.set(argument.getArgNumber());
    return;
  }
  Operation *inner = value.getDefiningOp();
  if (inner->getBlock() != op.getBlock())
    return;
  if (auto index = dyn_cast<linalg::IndexOp>(inner))
    indexed.set(index.getDim());
  for (Value operand : inner->getOperands())
    read(operand);
}

/// Marks those of the factors of a linear value.
void LinearPart::readFactors(Value value) {
  Operation *inner = value.getDefiningOp();
  if (!inner || !isLinear(value))
    return;
  bool areTerms = isSum(inner) || isDifference(inner);
  for (auto [index, operand] : llvm::enumerate(inner->getOperands())) {
    if (isLinear(operand))
      readFactors(operand);
    else if (!areTerms && (!isa<arith::SelectOp>(inner) || index == 0))
      read(operand);
  }
}

std::optional<LinearPart> LinearPart::of(linalg::LinalgOp op, const llvm::SmallBitVector &carried) {
  if (op->getNumResults() != 1 || !op.hasPureTensorSemantics() ||
      op.getNumParallelLoops() != op.getNumLoops() || op->getNumRegions() != 1)
    return std::nullopt;
  LinearPart part(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!maps.back().isIdentity())
    return std::nullopt;
  for (unsigned index : carried.set_bits()) {
    if (!maps[index].isIdentity() || op.isDpsInit(&op->getOpOperand(index)))
      return std::nullopt;
    part.linear.insert(op.getBlock()->getArgument(index));
  }
  for (Operation &inner : op.getBlock()->without_terminator())
    if (inner.getNumRegions() > 0 || !isPure(&inner) || !part.accept(inner))
      return std::nullopt;
  Value result = op.getBlock()->getTerminator()->getOperand(0);
  if (!part.isLinear(result))
    return std::nullopt;
  part.readFactors(result);
  for (unsigned index : part.isRead.set_bits()) {
    if (op.isDpsInit(&op->getOpOperand(index)))
      return std::nullopt;
    for (AffineExpr expr : maps[index].getResults())
      if (!isa<AffineDimExpr, AffineConstantExpr>(expr))
        return std::nullopt;
  }
  return part;
}

bool LinearPart::isOperand() const {
  Value value = const_cast<linalg::LinalgOp &>(op).getBlock()->getTerminator()->getOperand(0);
  while (Operation *inner = value.getDefiningOp()) {
    bool first = isLinear(inner->getOperand(0));
    bool isOne = (isSum(inner) && first != isLinear(inner->getOperand(1))) ||
                 (isDifference(inner) && first && !isLinear(inner->getOperand(1)));
    if (!isOne)
      return false;
    value = inner->getOperand(first ? 0 : 1);
  }
  return true;
}

llvm::SmallBitVector LinearPart::loopsOfFactors() const {
  llvm::SmallBitVector loops = indexed;
  SmallVector<AffineMap> maps = const_cast<linalg::LinalgOp &>(op).getIndexingMapsArray();
  for (unsigned index : isRead.set_bits())
    for (AffineExpr expr : maps[index].getResults())
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        loops.set(loop.getPosition());
  return loops;
}

Value LinearPart::copy(OpBuilder &b, Value value, IRMapping &map, ArrayRef<unsigned> loops) const {
  if (map.contains(value))
    return map.lookup(value);
  Operation *inner = value.getDefiningOp();
  if (!inner || inner->getBlock() != const_cast<linalg::LinalgOp &>(op).getBlock())
    return value;
  if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
    map.map(value, linalg::IndexOp::create(b, index.getLoc(), loops[index.getDim()]).getResult());
    return map.lookup(value);
  }
  for (Value operand : inner->getOperands())
    map.map(operand, copy(b, operand, map, loops));
  b.clone(*inner, map);
  return map.lookup(value);
}

Value LinearPart::write(OpBuilder &b, Value value, IRMapping &map, ArrayRef<unsigned> loops) const {
  if (map.contains(value))
    return map.lookup(value);
  Operation *inner = value.getDefiningOp();
  Location loc = inner->getLoc();
  auto zero = [&] {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType())).getResult();
  };
  IRMapping own;
  for (auto [index, operand] : llvm::enumerate(inner->getOperands())) {
    if (isLinear(operand))
      own.map(operand, write(b, operand, map, loops));
    else if (isSum(inner))
      return write(b, inner->getOperand(1 - index), map, loops);
    else if (isDifference(inner) && index == 1)
      return write(b, inner->getOperand(0), map, loops);
    else if (isDifference(inner) || (isa<arith::SelectOp>(inner) && index > 0))
      own.map(operand, zero());
    else
      own.map(operand, copy(b, operand, map, loops));
  }
  Value result = b.clone(*inner, own)->getResult(0);
  map.map(value, result);
  return result;
}

Value LinearPart::write(OpBuilder &b, IRMapping &map, ArrayRef<unsigned> loops) const {
  Block *body = const_cast<linalg::LinalgOp &>(op).getBlock();
  return write(b, body->getTerminator()->getOperand(0), map, loops);
}

//===----------------------------------------------------------------------===//
// Carries
//===----------------------------------------------------------------------===//

/// Whether an op adds contributions to a tensor, its init.
static bool addsTo(Operation *op, const llvm::SmallBitVector &carried) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && op->getNumResults() == 1 && carried.count() == 1 &&
         linalgOp.isDpsInit(&op->getOpOperand(carried.find_first())) &&
         matchReductionKind(linalgOp, 0) == sharding::ReduceKind::sum;
}

std::optional<AffineCarry> AffineCarry::match(scf::ForOp loop, BlockArgument carry) {
  auto type = dyn_cast<RankedTensorType>(carry.getType());
  if (!type || !type.getElementType().isIntOrFloat() || type.getElementType().isInteger(1))
    return std::nullopt;
  Value yielded = loop.getTiedLoopYieldedValue(carry)->get();
  // The ops between the two, in order.
  SetVector<Operation *> behind;
  getForwardSlice(carry, &behind);
  SetVector<Operation *> before;
  if (yielded.getParentBlock() == loop.getBody() && yielded.getDefiningOp()) {
    BackwardSliceOptions options;
    options.inclusive = true;
    options.filter = [&](Operation *op) { return op->getBlock() == loop.getBody(); };
    (void)getBackwardSlice(yielded, &before, options);
  }
  AffineCarry result;
  llvm::DenseSet<Value> linear = {carry};
  llvm::SmallBitVector differs(type.getRank());
  bool isAdded = true, isReduced = false, isAlone = true;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (!before.contains(&op) || !behind.contains(&op))
      continue;
    llvm::SmallBitVector carried(op.getNumOperands());
    for (auto [index, operand] : llvm::enumerate(op.getOperands()))
      if (linear.contains(operand))
        carried.set(index);
    if (carried.none() || op.getNumResults() != 1 || op.getResult(0).getType() != type)
      return std::nullopt;
    if (addsTo(&op, carried)) {
      isReduced = true;
    } else {
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      std::optional<LinearPart> part = linalgOp ? LinearPart::of(linalgOp, carried) : std::nullopt;
      if (!part)
        return std::nullopt;
      isAdded &= part->isOperand() && carried.count() == 1;
      differs |= part->loopsOfFactors();
      result.parts.push_back(std::move(*part));
    }
    linear.insert(op.getResult(0));
  }
  if (yielded != carry && !linear.contains(yielded)) {
    if (behind.contains(yielded.getDefiningOp()))
      return std::nullopt;
    result.factor = CarryFactor::zero;
    return result;
  }
  for (Value value : linear)
    isAlone &= value == yielded || value.hasOneUse();
  isAlone &= yielded.hasOneUse();
  if (isAdded) {
    result.factor = CarryFactor::one;
    result.isSum = isAlone;
    return result;
  }
  if (isReduced)
    return std::nullopt;
  for (unsigned dim : differs.set_bits())
    result.dims.push_back(dim);
  return result;
}
