//===- AttentionBackward.cpp - The derivative of attention ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionWriter.h"
#include "Local.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;

namespace {

/// The derivative of one block of rows, whose scores are recomputed.
class BackwardWriter : public AttentionWriter {
public:
  /// `sums`: the type of the results of one turn of several; null: that of the op.
  BackwardWriter(OpBuilder &b, AttentionBackwardOp op, LoopLimits limits, GlobalIndex globalIndex,
                 FloatType sums)
      : AttentionWriter(b, op, globalIndex, limits), derivative(op.getDerivative()), sums(sums) {
    isTurn = static_cast<bool>(sums);
    before.push_back(operandMap(0));
  }

  SmallVector<Result> results() const {
    SmallVector<Result> results;
    for (unsigned i = 0; i < 3; ++i)
      results.push_back({operandMap(i), sumType(i)});
    return results;
  }

  SmallVector<Value> write(ArrayRef<Value> operands, ArrayRef<Value> offsets) override {
    enum { query, key, value, gradient, logsumexp, delta };
    FloatType type = parts.scoreType();
    AffineMap scoreMap = mapOf(scoreLoops);
    AffineMap all = over(scoreLoops, scoreMap), row = over(scoreLoops, operandMap(logsumexp));
    Value products = writeProducts(operands);
    Value shares =
        elementwise({writeScores(products, operands, offsets), operands[logsumexp]}, {all, row},
                    scoreLoops, type, [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
                      Value sum = convertFloat(b, loc, in[1], type);
                      return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, in[0], sum));
                    });
    Value weightGradient = contract(operands[gradient], operandMap(gradient), operands[value],
                                    operandMap(value), scoreMap, type);
    // The derivative by the products: the derivative of the softmax, then of the region.
    SmallVector<Value> inputs{products};
    SmallVector<AffineMap> inputMaps{all};
    addExtras(inputs, inputMaps, operands);
    auto add = [&](Value input, AffineMap map) {
      inputs.push_back(input);
      inputMaps.push_back(map);
    };
    unsigned own = inputs.size();
    add(shares, all);
    add(weightGradient, all);
    add(operands[delta], over(scoreLoops, operandMap(delta)));
    Type narrow = elementOf(key), weight = elementOf(value);
    auto byProduct = [&](OpBuilder &b, ValueRange in) -> Value {
      Value mean = convertFloat(b, loc, in[own + 2], type);
      Value byShare = weigh(b, loc, in[own + 1], in.slice(1, own - 1), offsets, type);
      Value scoreGradient =
          arith::MulFOp::create(b, loc, in[own], arith::SubFOp::create(b, loc, byShare, mean));
      SmallVector<Value> arguments(in.take_front(own));
      Type wanted = derivative.front().getArguments().back().getType();
      arguments.push_back(convertFloat(b, loc, scoreGradient, wanted));
      Value result = writeRegion(b, loc, derivative, arguments, offsets, scoreLoops);
      return convertFloat(b, loc, result, narrow);
    };
    Value byProducts, weights = shares;
    if (parts.weights()) {
      // In one op, so that random bits are drawn once.
      SmallVector<Value> both = Local{b, loc}.pointwise(
          inputs, inputMaps, shapeOver(scoreLoops), {narrow, weight},
          [&](OpBuilder &b, ValueRange in) {
            return SmallVector<Value>{
                byProduct(b, in), weigh(b, loc, in[own], in.slice(1, own - 1), offsets, weight)};
          });
      byProducts = both[0];
      weights = both[1];
    } else {
      byProducts =
          elementwise(inputs, inputMaps, scoreLoops, narrow,
                      [&](OpBuilder &b, Location, ValueRange in) { return byProduct(b, in); });
    }
    auto sum = [&](Value scores, unsigned operand, unsigned result) {
      return contract(scores, scoreMap, operands[operand], operandMap(operand), operandMap(result),
                      sumType(result));
    };
    Value byQuery = sum(byProducts, key, query);
    if (operands.size() > numOperands())
      byQuery = addTo(operands.back(), byQuery);
    return {byQuery, sum(byProducts, query, key),
            sum(convert(weights, scoreLoops, weight), gradient, value)};
  }

  /// The results, converted to the types of the op.
  SmallVector<Value> convertSums(SmallVector<Value> results) {
    for (auto [i, result] : llvm::enumerate(results))
      result = convert(result, loopsOf(operandMap(i)), typeOf(i));
    return results;
  }

private:
  Type typeOf(unsigned result) const {
    if (sums)
      return sums;
    return getElementTypeOrSelf(parts.op->getResult(result).getType());
  }
  /// A result that lacks a loop over rows may be summed block by block, in the type of the softmax.
  Type sumType(unsigned result) const {
    bool isSum =
        llvm::any_of(rows, [&](unsigned loop) { return !hasLoop(operandMap(result), loop); });
    Type own = typeOf(result);
    return isSum && own.getIntOrFloatBitWidth() < parts.scoreType().getWidth() ? parts.scoreType()
                                                                               : own;
  }
  Type elementOf(unsigned operand) const {
    return getElementTypeOrSelf(parts.op->getOperand(operand).getType());
  }

  Region &derivative;
  FloatType sums;
};

} // namespace

SmallVector<Value> ext::writeAttentionBackward(OpBuilder &b, AttentionBackwardOp op,
                                               ArrayRef<Value> operands, LoopLimits limits,
                                               GlobalIndex globalIndex) {
  BackwardWriter writer(b, op, limits, globalIndex, {});
  return writer.convertSums(writer.writeInBlocks(operands, writer.results()));
}

SmallVector<Value> ext::writeTurn(OpBuilder &b, AttentionBackwardOp op, ArrayRef<Value> operands,
                                  Value before, LoopLimits limits, GlobalIndex globalIndex) {
  BackwardWriter writer(b, op, limits, globalIndex, partsOf(op).scoreType());
  SmallVector<Value> all(operands);
  if (before)
    all.push_back(before);
  return writer.writeInBlocks(all, writer.results());
}

FailureOr<SmallVector<Value>> AttentionBackwardOp::decomposeOperation(OpBuilder &b) {
  return ext::writeAttentionBackward(
      b, *this, llvm::to_vector(getOperands()), {},
      [](OpBuilder &, Location, unsigned, Value local) { return local; });
}
