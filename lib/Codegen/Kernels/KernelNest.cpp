//===- KernelNest.cpp - A linalg op as a loop nest over addresses ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelNest.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tessera::codegen {

/// Adds `factor` * expr to the linear function (steps, base); false when expr is not linear.
static bool addLinear(AffineExpr expr, int64_t factor, SmallVectorImpl<int64_t> &step,
                      int64_t &base) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    base += factor * constant.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    step[dim.getPosition()] += factor;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), factor, step, base) &&
           addLinear(binary.getRHS(), factor, step, base);
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return binary.getKind() == AffineExprKind::Mul && constant &&
         addLinear(binary.getLHS(), factor * constant.getValue(), step, base);
}

static std::optional<vector::CombiningKind> kindOf(Operation *op) {
  using Kind = vector::CombiningKind;
  return llvm::TypeSwitch<Operation *, std::optional<Kind>>(op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return Kind::ADD; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return Kind::MUL; })
      .Case<arith::MaximumFOp>([](auto) { return Kind::MAXIMUMF; })
      .Case<arith::MinimumFOp>([](auto) { return Kind::MINIMUMF; })
      .Case<arith::MaxNumFOp>([](auto) { return Kind::MAXNUMF; })
      .Case<arith::MinNumFOp>([](auto) { return Kind::MINNUMF; })
      .Case<arith::MaxSIOp>([](auto) { return Kind::MAXSI; })
      .Case<arith::MinSIOp>([](auto) { return Kind::MINSI; })
      .Case<arith::MaxUIOp>([](auto) { return Kind::MAXUI; })
      .Case<arith::MinUIOp>([](auto) { return Kind::MINUI; })
      .Case<arith::AndIOp>([](auto) { return Kind::AND; })
      .Case<arith::OrIOp>([](auto) { return Kind::OR; })
      .Case<arith::XOrIOp>([](auto) { return Kind::XOR; })
      .Default(std::nullopt);
}

/// yield(combine(old, rest)) with the old value used nowhere else.
static std::optional<vector::CombiningKind> combinerOf(linalg::GenericOp op, OpOperand *output) {
  BlockArgument old = op.getMatchingBlockArgument(output);
  unsigned index = output->getOperandNumber() - op.getNumDpsInputs();
  Operation *yield = op.getBody()->getTerminator();
  Operation *last = yield->getOperand(index).getDefiningOp();
  if (!old.hasOneUse() || !last || *old.user_begin() != last || last->getNumOperands() != 2)
    return std::nullopt;
  if (!last->hasOneUse())
    return std::nullopt;
  return kindOf(last);
}

TypedAttr neutralElement(vector::CombiningKind kind, Type element) {
  using Kind = vector::CombiningKind;
  Builder builder(element.getContext());
  if (auto type = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    switch (kind) {
    case Kind::MUL:
      return builder.getFloatAttr(type, 1.0);
    case Kind::MAXIMUMF:
    case Kind::MAXNUMF:
      return builder.getFloatAttr(type, APFloat::getInf(semantics, /*Negative=*/true));
    case Kind::MINIMUMF:
    case Kind::MINNUMF:
      return builder.getFloatAttr(type, APFloat::getInf(semantics));
    default: // -0 + x is x, even for x = -0.
      return builder.getFloatAttr(type, APFloat::getZero(semantics, /*Negative=*/true));
    }
  }
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  APInt value(width, 0);
  switch (kind) {
  case Kind::MUL:
    value = APInt(width, 1);
    break;
  case Kind::MAXSI:
    value = APInt::getSignedMinValue(width);
    break;
  case Kind::MINSI:
    value = APInt::getSignedMaxValue(width);
    break;
  case Kind::MINUI:
  case Kind::AND:
    value = APInt::getAllOnes(width);
    break;
  default:
    break;
  }
  return builder.getIntegerAttr(element, value);
}

/// Drops loops of one trip and merges adjacent loops that are contiguous in every operand.
static void simplify(Nest &nest, const llvm::SmallBitVector &indexed) {
  auto erase = [&](unsigned loop) {
    nest.loops.erase(nest.loops.begin() + loop);
    for (NestOperand &operand : nest.operands)
      operand.step.erase(operand.step.begin() + loop);
  };
  for (unsigned loop = nest.loops.size(); loop-- > 0;)
    if (nest.loops[loop].extent == 1)
      erase(loop);
  for (unsigned loop = nest.loops.size(); loop-- > 1;) {
    NestLoop &major = nest.loops[loop - 1], &minor = nest.loops[loop];
    auto isIndexed = [&](unsigned origin) { return indexed.test(origin); };
    if (major.reduction != minor.reduction || llvm::any_of(major.origins, isIndexed) ||
        llvm::any_of(minor.origins, isIndexed))
      continue;
    if (!llvm::all_of(nest.operands, [&](const NestOperand &operand) {
          return operand.step[loop - 1] == operand.step[loop] * minor.extent;
        }))
      continue;
    major.extent *= minor.extent;
    llvm::append_range(major.origins, minor.origins);
    for (NestOperand &operand : nest.operands)
      operand.step[loop - 1] = operand.step[loop];
    erase(loop);
  }
}

FailureOr<Nest> Nest::get(linalg::GenericOp op, std::string &reason, bool merge) {
  Nest nest;
  nest.op = op;
  llvm::SmallBitVector indexed(std::max(1u, op.getNumLoops()));
  op.getBody()->walk([&](linalg::IndexOp index) { indexed.set(index.getDim()); });
  for (auto [i, range] : llvm::enumerate(op.getStaticLoopRanges())) {
    NestLoop loop;
    loop.extent = range;
    loop.origins.push_back(i);
    nest.loops.push_back(loop);
    if (ShapedType::isDynamic(range)) {
      reason = "a dynamic shape";
      return failure();
    }
  }

  for (OpOperand &opOperand : op->getOpOperands()) {
    NestOperand operand;
    operand.operand = &opOperand;
    operand.element = getElementTypeOrSelf(opOperand.get().getType());
    operand.output = op.isDpsInit(&opOperand);
    operand.step.assign(nest.loops.size(), 0);
    auto type = dyn_cast<MemRefType>(opOperand.get().getType());
    operand.scalar = !type;
    if (type) {
      SmallVector<int64_t> strides;
      int64_t offset;
      if (failed(type.getStridesAndOffset(strides, offset)) ||
          llvm::any_of(strides, ShapedType::isDynamic)) {
        reason = "an operand of unknown strides";
        return failure();
      }
      AffineMap map = op.getMatchingIndexingMap(&opOperand);
      for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
        if (!addLinear(expr, stride, operand.step, operand.base)) {
          reason = "an index that is not linear";
          return failure();
        }
      operand.span = 1;
      for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
        operand.span += (size - 1) * stride;
    }
    nest.operands.push_back(std::move(operand));
  }

  for (OpOperand &output : op.getDpsInitsMutable()) {
    NestOutput info;
    info.operand = output.getOperandNumber();
    info.readsOld = op.payloadUsesValueFromOperand(&output);
    AffineMap map = op.getMatchingIndexingMap(&output);
    for (auto [i, loop] : llvm::enumerate(nest.loops))
      if (loop.extent > 1 && !map.isFunctionOfDim(i)) {
        loop.reduction = true;
        info.accumulates = true;
      }
    info.kind = combinerOf(op, &output);
    nest.outputs.push_back(info);
  }
  for (NestOutput &output : nest.outputs) {
    AffineMap map = op.getMatchingIndexingMap(nest.operands[output.operand].operand);
    for (auto [i, loop] : llvm::enumerate(nest.loops))
      if (output.accumulates && loop.reduction && map.isFunctionOfDim(i)) {
        reason = "results reduced over different loops";
        return failure();
      }
  }
  if (merge)
    simplify(nest, indexed);
  return nest;
}

} // namespace tessera::codegen
