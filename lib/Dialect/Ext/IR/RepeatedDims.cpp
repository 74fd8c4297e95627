//===- RepeatedDims.cpp - Dimensions along which a tensor is one element --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values are followed backwards through ops that compute equal elements of equal elements:
//
//   a: 8x4   b = broadcast a: 8x4x16   c = exp b   d = pad c along 0     d is repeated along 2
//
//===----------------------------------------------------------------------===//

#include "RepeatedDims.h"
#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using llvm::SmallBitVector;

namespace {

/// Follows the values behind one scan, each once.
class Repeats {
public:
  SmallBitVector of(Value value);
  SmallVector<SmallBitVector> ofScan(ScanOp op);

private:
  SmallBitVector ofResult(OpResult value);
  SmallBitVector ofLoops(linalg::LinalgOp op, OpResult value);

  /// Ops that are looked at; what lies behind more is taken to be different.
  static constexpr unsigned kMostOps = 64;
  llvm::DenseMap<Value, SmallBitVector> known;
};

} // namespace

SmallBitVector Repeats::of(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return {};
  if (auto found = known.find(value); found != known.end())
    return found->second;
  SmallBitVector none(type.getRank());
  if (matchPattern(value, m_Constant())) {
    DenseElementsAttr elements;
    if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
      none.set();
    return known[value] = none;
  }
  auto result = dyn_cast<OpResult>(value);
  if (!result || known.size() >= kMostOps)
    return none;
  known[value] = none;
  SmallBitVector found = ofResult(result);
  return known[value] = found;
}

SmallBitVector Repeats::ofResult(OpResult value) {
  Operation *op = value.getOwner();
  auto type = cast<RankedTensorType>(value.getType());
  SmallBitVector none(type.getRank());
  if (auto loops = dyn_cast<linalg::LinalgOp>(op))
    return ofLoops(loops, value);
  if (auto scan = dyn_cast<ScanOp>(op))
    return ofScan(scan)[value.getResultNumber()];
  if (auto reshard = dyn_cast<dist::ReshardOp>(op))
    return of(reshard->getOperand(0));
  if (auto moved = dyn_cast<dist::RearrangeOp>(op)) {
    SmallBitVector dims(type.getRank(), true);
    for (Value input : moved.getInputs())
      dims &= of(input);
    return dims.reset(moved.getDim());
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    if (!pad.getConstantPaddingValue())
      return none;
    SmallBitVector dims = of(pad.getSource());
    for (auto [d, low, high] : llvm::enumerate(pad.getStaticLow(), pad.getStaticHigh()))
      if (low != 0 || high != 0)
        dims.reset(d);
    return dims;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    SmallBitVector dims = of(slice.getSource()), dropped = slice.getDroppedDims();
    SmallBitVector kept(type.getRank());
    unsigned to = 0;
    for (unsigned from = 0; from < dims.size(); ++from)
      if (!dropped.test(from))
        kept[to++] = dims[from];
    return kept;
  }
  return none;
}

SmallBitVector Repeats::ofLoops(linalg::LinalgOp op, OpResult value) {
  SmallBitVector none(cast<RankedTensorType>(value.getType()).getRank());
  if (op.hasIndexSemantics() || !op.hasPureTensorSemantics())
    return none;
  // Loops on which an element depends.
  SmallBitVector differs(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.payloadUsesValueFromOperand(&operand))
      continue;
    SmallBitVector same = of(operand.get());
    for (auto [d, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (d >= same.size() || !same.test(d))
        for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
          if (expr.isFunctionOfDim(loop))
            differs.set(loop);
  }
  // What the body reads by other means than its arguments may depend on anything.
  for (Operation &inner : *op.getBlock())
    if (isa<tensor::ExtractOp>(inner) || inner.getNumRegions())
      return none;
  for (auto [d, expr] : llvm::enumerate(op.getIndexingMapMatchingResult(value).getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      none[d] = !differs.test(loop.getPosition());
  return none;
}

SmallVector<SmallBitVector> Repeats::ofScan(ScanOp op) {
  size_t count = op.getInputs().size();
  SmallVector<SmallBitVector> dims;
  for (Value input : op.getInputs()) {
    dims.push_back(of(input));
    for (auto [d, extent] : llvm::enumerate(op.getShape()))
      if (d == op.getDim() || extent == 1)
        dims.back().reset(d);
  }
  // A value of the body differs along the dimensions of the inputs that it is computed of.
  llvm::DenseMap<Value, SmallBitVector> inside;
  auto meet = [&](SmallBitVector &own, Value read) {
    if (auto found = inside.find(read); found != inside.end())
      own &= found->second;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (BlockArgument argument : op.getBody().getArguments())
      inside[argument] = dims[argument.getArgNumber() % count];
    for (Operation &each : op.getBody().without_terminator()) {
      SmallBitVector own(op.getShape().size(), true);
      for (Value read : each.getOperands())
        meet(own, read);
      for (Value made : each.getResults())
        inside[made] = own;
    }
    for (auto [yielded, own] : llvm::zip(op.getBody().getTerminator()->getOperands(), dims)) {
      SmallBitVector before = own;
      meet(own, yielded);
      changed |= own != before;
    }
  }
  return dims;
}

SmallVector<SmallBitVector> ext::repeatedDims(ScanOp op) {
  return Repeats().ofScan(op);
}
