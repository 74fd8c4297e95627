//===- DecideIndices.cpp - Values that loop indices determine -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Masks of attention are often computed from positions by code that is written for any
// positions: Where packed sequences begin, whether an index is valid, the position of each
// key. Where positions are those of an iota all of this is known,
//
//   step[i] = p[i] - p[i - 1]    begins[i] = step[i] != 1    sequence = cumsum begins
//
// step is 1, begins is false, sequence is 0. An element is an affine function of its index
// (AffineValues.h), or is computed as before.
//
//===----------------------------------------------------------------------===//

#include "DecideIndices.h"
#include "AffineValues.h"
#include "PlainOps.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Replaces conditions that are known, and what they choose. Returns whether any was.
static bool decideConditions(linalg::GenericOp op) {
  AffineValues values(op);
  bool changed = false;
  auto known = [&](Value condition) {
    return dyn_cast_or_null<AffineConstantExpr>(values.of(condition));
  };
  auto become = [&](Operation &inner, Value by) {
    inner.getResult(0).replaceAllUsesWith(by);
    changed = true;
  };
  for (Operation &inner : llvm::make_early_inc_range(op.getBody()->without_terminator())) {
    if (isa<arith::CmpIOp>(inner)) {
      AffineConstantExpr holds = known(inner.getResult(0));
      if (!holds)
        continue;
      OpBuilder b(&inner);
      become(inner,
             arith::ConstantOp::create(b, inner.getLoc(), b.getBoolAttr(holds.getValue() != 0)));
    } else if (auto choice = dyn_cast<arith::SelectOp>(inner)) {
      if (AffineConstantExpr holds = known(choice.getCondition()))
        become(inner, holds.getValue() ? choice.getTrueValue() : choice.getFalseValue());
    } else if (isa<arith::AndIOp, arith::OrIOp>(inner) &&
               inner.getResult(0).getType().isInteger(1)) {
      for (unsigned side : {0, 1}) {
        AffineConstantExpr holds = known(inner.getOperand(side));
        if (!holds)
          continue;
        bool isOther = isa<arith::AndIOp>(inner) == (holds.getValue() != 0);
        become(inner, inner.getOperand(isOther ? 1 - side : side));
        break;
      }
    }
  }
  if (changed)
    for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(*op.getBody())))
      if (isOpTriviallyDead(&inner))
        inner.erase();
  return changed;
}

/// The op without inputs that it does not read, unless these alone give its loops their extents.
static void dropInputs(linalg::GenericOp op) {
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  BitVector dropped(op.getBody()->getNumArguments());
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (op.payloadUsesValueFromOperand(input)) {
      inputs.push_back(input->get());
      maps.push_back(op.getMatchingIndexingMap(input));
    } else {
      dropped.set(input->getOperandNumber());
    }
  }
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(op.getMatchingIndexingMap(&init));
  if (dropped.none() || !inversePermutation(concatAffineMaps(maps, op.getContext())))
    return;
  OpBuilder b(op);
  auto made = linalg::GenericOp::create(b, op.getLoc(), op->getResultTypes(), inputs,
                                        op.getDpsInits(), maps, op.getIteratorTypesArray());
  made.getRegion().takeBody(op.getRegion());
  made.getBody()->eraseArguments(dropped);
  op->replaceAllUsesWith(made->getResults());
  op.erase();
}

/// Writes an integer that is an affine function of the loops as this function. Returns whether it
/// is one.
static bool writeFunction(linalg::GenericOp op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.getElementType().isInteger() || op.getNumReductionLoops() > 0 ||
      !op.getIndexingMapsArray().back().isIdentity())
    return false;
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  AffineExpr function = AffineValues(op).of(yielded);
  if (!function)
    return false;
  for (auto [d, extent] : llvm::enumerate(type.getShape()))
    if (extent == 1)
      function = function.replace(getAffineDimExpr(d, op.getContext()),
                                  getAffineConstantExpr(0, op.getContext()));
  function = simplifyAffineExpr(function, type.getRank(), 0);
  OpBuilder b(op);
  if (auto number = dyn_cast<AffineConstantExpr>(function)) {
    auto value = b.getIntegerAttr(type.getElementType(), number.getValue());
    op->getResult(0).replaceAllUsesWith(
        arith::ConstantOp::create(b, op.getLoc(), DenseElementsAttr::get(type, Attribute(value))));
    return true;
  }
  if (llvm::none_of(op->getOpOperands(),
                    [&](OpOperand &operand) { return op.payloadUsesValueFromOperand(&operand); }))
    return true; // it is written as one
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), TypeRange(type), ValueRange(), empty,
      b.getMultiDimIdentityMap(type.getRank()), parallel,
      [&](OpBuilder &body, Location loc, ValueRange) {
        Value at = writeAffine(body, loc, function);
        linalg::YieldOp::create(
            body, loc,
            ValueRange{arith::IndexCastOp::create(body, loc, type.getElementType(), at)});
      });
  op->getResult(0).replaceAllUsesWith(made->getResult(0));
  return true;
}

namespace {

/// Whether a boolean of a body is true at a place: its loops as functions of other loops.
class Witness {
public:
  /// A place at which loop `reduced` of an op is `by`, a function of the other loops.
  Witness(linalg::GenericOp op, unsigned reduced, AffineExpr by) : outer(op) {
    for (unsigned d = 0; d < op.getNumLoops(); ++d)
      place.push_back(d == reduced ? by : getAffineDimExpr(d, op.getContext()));
  }
  bool holds(Value scalar) { return holdsAt(outer, scalar, place, kMostSteps); }

private:
  static constexpr int kMostSteps = 16;

  /// `loops` has the loops of the op whose body it is, in terms of those of the outer op.
  bool holdsAt(linalg::GenericOp op, Value scalar, ArrayRef<AffineExpr> loops, int steps);

  linalg::GenericOp outer;
  SmallVector<AffineExpr> place;
};

} // namespace

bool Witness::holdsAt(linalg::GenericOp op, Value scalar, ArrayRef<AffineExpr> loops, int steps) {
  if (APInt number; matchPattern(scalar, m_ConstantInt(&number)))
    return !number.isZero();
  if (steps == 0)
    return false;
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
      return false;
    SmallVector<AffineExpr> read;
    for (AffineExpr expr : op.getIndexingMapsArray()[argument.getArgNumber()].getResults())
      read.push_back(expr.replaceDims(loops));
    Value tensor = op.getDpsInputs()[argument.getArgNumber()];
    if (SplatElementsAttr splat; matchPattern(tensor, m_Constant(&splat)))
      return splat.getElementType().isInteger(1) && splat.getSplatValue<bool>();
    auto producer = tensor.getDefiningOp<linalg::GenericOp>();
    return producer && producer->getNumResults() == 1 && producer.hasPureTensorSemantics() &&
           producer.getNumReductionLoops() == 0 &&
           producer.getIndexingMapsArray().back().isIdentity() &&
           holdsAt(producer, producer.getBody()->getTerminator()->getOperand(0), read, steps - 1);
  }
  Operation *inner = scalar.getDefiningOp();
  auto side = [&](unsigned n) { return holdsAt(op, inner->getOperand(n), loops, steps - 1); };
  if (isa<arith::AndIOp>(inner))
    return side(0) && side(1);
  if (isa<arith::OrIOp>(inner))
    return side(0) || side(1);
  auto compare = dyn_cast<arith::CmpIOp>(inner);
  if (!compare)
    return false;
  AffineValues values(op);
  AffineExpr left = values.of(compare.getLhs());
  AffineExpr right = left ? values.of(compare.getRhs()) : AffineExpr();
  if (!right)
    return false;
  AffineExpr by = simplifyAffineExpr((left - right).replaceDims(loops), outer.getNumLoops(), 0);
  std::optional<AffineValues::Interval> range = AffineValues(outer).rangeOf(by);
  if (!range)
    return false;
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return range->high < 0;
  case arith::CmpIPredicate::sle:
    return range->high <= 0;
  case arith::CmpIPredicate::sgt:
    return range->low > 0;
  case arith::CmpIPredicate::sge:
    return range->low >= 0;
  case arith::CmpIPredicate::eq:
    return range->low == 0 && range->high == 0;
  case arith::CmpIPredicate::ne:
    return range->low > 0 || range->high < 0;
  default:
    return false;
  }
}

/// Whether any key of each query counts: of a mask that is a known function of positions, the first
/// key, the last one, or that of the query itself does.
static bool decideAny(linalg::GenericOp op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  Operation *any = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  if (!type || !type.getElementType().isInteger(1) || op.getNumReductionLoops() != 1 ||
      !isa_and_nonnull<arith::OrIOp>(any))
    return false;
  BlockArgument accumulator = op.getBody()->getArguments().back();
  unsigned side = any->getOperand(0) == accumulator ? 1 : 0;
  if (any->getOperand(1 - side) != accumulator)
    return false;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto reduced = static_cast<unsigned>(
      std::distance(iterators.begin(), llvm::find(iterators, utils::IteratorType::reduction)));
  if (extents[reduced] == 0)
    return false;
  SmallVector<AffineExpr> places = {getAffineConstantExpr(0, op.getContext()),
                                    getAffineConstantExpr(extents[reduced] - 1, op.getContext())};
  for (unsigned d = 0; d < extents.size(); ++d)
    if (d != reduced && extents[d] == extents[reduced])
      places.push_back(getAffineDimExpr(d, op.getContext()));
  if (llvm::none_of(places, [&](AffineExpr by) {
        return Witness(op, reduced, by).holds(any->getOperand(side));
      }))
    return false;
  OpBuilder b(op);
  op->getResult(0).replaceAllUsesWith(arith::ConstantOp::create(
      b, op.getLoc(), DenseElementsAttr::get(type, Attribute(b.getBoolAttr(true)))));
  return true;
}

/// Sums of zeros are zeros.
static void decideScan(ext::ScanOp scan) {
  if (scan.getInputs().size() != 1 || !isPlain(scan))
    return;
  Value yielded = scan.getBody().getTerminator()->getOperand(0);
  if (matchPattern(scan.getInputs().front(), m_Zero()) && yielded.getDefiningOp<arith::AddIOp>() &&
      llvm::hasSingleElement(scan.getBody().without_terminator()))
    scan.getResult(0).replaceAllUsesWith(scan.getInputs().front());
}

/// Erases what the decided values were computed of.
static void eraseUnread(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (!isa<linalg::LinalgOp, ext::ScanOp>(op->getParentOp()))
      ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops))
    if (isa<linalg::LinalgOp, ext::ScanOp, RearrangeOp, arith::ConstantOp>(op) ||
        isa_and_nonnull<tensor::TensorDialect>(op->getDialect()))
      if (isOpTriviallyDead(op))
        op->erase();
}

void dist::decideIndices(func::FuncOp function) {
  SmallVector<Operation *> ops; // producers first
  function.walk([&](Operation *op) {
    if (isa<linalg::GenericOp, ext::ScanOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto scan = dyn_cast<ext::ScanOp>(op)) {
      decideScan(scan);
      continue;
    }
    auto generic = cast<linalg::GenericOp>(op);
    if (generic->getNumResults() != 1 || !generic.hasPureTensorSemantics() || !isPlain(generic))
      continue;
    bool isDecided = decideConditions(generic);
    if (!writeFunction(generic) && !decideAny(generic) && isDecided)
      dropInputs(generic);
  }
  eraseUnread(function);
}
