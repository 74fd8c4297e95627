//===- AttentionLoops.cpp - Attention as products and softmax -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small scores are computed at once: two products, which have tuned kernels, and a
// softmax of rows. Large ones are computed in blocks of rows whose scores fit a
// cache: loops over slices of the query, and of other tensors with its loops. All
// keys of a row are in one block, so that a row is summed in the order of the small
// case for any block size.
//
//===----------------------------------------------------------------------===//

#include "AttentionLoops.h"
#include "AttentionWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;

namespace {

/// The forward computation of one block.
class RowWriter : public AttentionWriter {
public:
  RowWriter(OpBuilder &b, AttentionOp op, RowResults wanted, LoopLimits limits,
            GlobalIndex globalIndex)
      : AttentionWriter(b, op, globalIndex, limits), wanted(wanted) {
    before = {parts.output, mapOf(rows), mapOf(rows)};
  }

  /// The accumulators of one turn, merged with those of the previous turns.
  SmallVector<Value> writeTurn(ArrayRef<Value> operands, ArrayRef<Value> accumulators) {
    isTurn = true;
    SmallVector<Value> all(operands);
    all.append(accumulators.begin(), accumulators.end());
    return writeInBlocks(all, results());
  }

  SmallVector<Result> results() const {
    if (wanted == RowResults::accumulators) {
      Result row{mapOf(rows), parts.scoreType()};
      return {{parts.output, parts.scoreType()}, row, row};
    }
    SmallVector<Result> results{{parts.output, elementOf(0)}};
    if (wanted == RowResults::logsumexp)
      results.push_back({mapOf(rows), elementOf(1)});
    return results;
  }

  SmallVector<Value> write(ArrayRef<Value> operands, ArrayRef<Value> offsets) override {
    Value scores = writeScores(writeProducts(operands), operands, offsets);
    FloatType type = parts.scoreType();
    // The least float if a row may have no key: its sum is then 0, not NaN.
    bool mayLackKeys = wanted == RowResults::accumulators;
    APFloat least = mayLackKeys ? APFloat::getLargest(type.getFloatSemantics(), true)
                                : APFloat::getInf(type.getFloatSemantics(), true);
    Value largest = reduceKeys(scores, scoreLoops, rows, least,
                               [](OpBuilder &b, Location loc, Value element, Value all) -> Value {
                                 return arith::MaximumFOp::create(b, loc, all, element);
                               });
    AffineMap all = over(scoreLoops, mapOf(scoreLoops)), row = over(scoreLoops, mapOf(rows));
    Value weights = elementwise({scores, largest}, {all, row}, scoreLoops, type,
                                [](OpBuilder &b, Location loc, ValueRange in) -> Value {
                                  return math::ExpOp::create(
                                      b, loc, arith::SubFOp::create(b, loc, in[0], in[1]));
                                });
    Value sum = reduceKeys(weights, scoreLoops, rows, APFloat::getZero(type.getFloatSemantics()),
                           [](OpBuilder &b, Location loc, Value element, Value all) -> Value {
                             return arith::AddFOp::create(b, loc, all, element);
                           });
    Type narrow = getElementTypeOrSelf(operands[2].getType());
    if (wanted == RowResults::accumulators) {
      Value output = contract(writeWeights(weights, operands, offsets, narrow), mapOf(scoreLoops),
                              operands[2], operandMap(2), parts.output, type);
      if (operands.size() > numOperands())
        return merge(operands.drop_front(numOperands()), output, largest, sum);
      return {output, largest, sum};
    }
    Type share = parts.weights() ? type : narrow;
    Value shares = elementwise({weights, sum}, {all, row}, scoreLoops, share,
                               [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
                                 return convertFloat(
                                     b, loc, arith::DivFOp::create(b, loc, in[0], in[1]), share);
                               });
    shares = writeWeights(shares, operands, offsets, narrow);
    SmallVector<Value> results{contract(shares, mapOf(scoreLoops), operands[2], operandMap(2),
                                        parts.output, elementOf(0))};
    if (wanted == RowResults::logsumexp) {
      AffineMap identity = b.getMultiDimIdentityMap(rows.size());
      results.push_back(elementwise(
          {largest, sum}, {identity, identity}, rows, elementOf(1),
          [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
            Value log = math::LogOp::create(b, loc, in[1]);
            return convertFloat(b, loc, arith::AddFOp::create(b, loc, in[0], log), elementOf(1));
          }));
    }
    return results;
  }

private:
  /// Merges the accumulators `before` of some keys with those of other keys.
  SmallVector<Value> merge(ArrayRef<Value> before, Value output, Value largest, Value sum) {
    FloatType type = parts.scoreType();
    SmallVector<AffineMap> same(4, b.getMultiDimIdentityMap(rows.size()));
    auto onRows = [&](ValueRange inputs, ScalarBody body) {
      return elementwise(inputs, ArrayRef(same).take_front(inputs.size()), rows, type, body);
    };
    Value top =
        onRows({before[1], largest}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
          return arith::MaximumFOp::create(b, loc, in[0], in[1]);
        });
    auto weight = [&](Value of) {
      return onRows({of, top}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
        return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, in[0], in[1]));
      });
    };
    Value old = weight(before[1]), now = weight(largest);
    auto both = [](OpBuilder &b, Location loc, ValueRange in) -> Value {
      return arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, in[0], in[1]),
                                   arith::MulFOp::create(b, loc, in[2], in[3]));
    };
    SmallVector<unsigned> loops = loopsOf(parts.output);
    AffineMap all = over(loops, parts.output), row = over(loops, mapOf(rows));
    Value merged =
        elementwise({before[0], old, output, now}, {all, row, all, row}, loops, type, both);
    return {merged, top, onRows({before[2], old, sum, now}, both)};
  }

  Type elementOf(unsigned result) const {
    return getElementTypeOrSelf(parts.op->getResult(result).getType());
  }

  RowResults wanted;
};

} // namespace

SmallVector<Value> ext::writeAttention(OpBuilder &b, AttentionOp op, ArrayRef<Value> operands,
                                       RowResults results, LoopLimits limits,
                                       GlobalIndex globalIndex) {
  RowWriter writer(b, op, results, limits, globalIndex);
  return writer.writeInBlocks(operands, writer.results());
}

SmallVector<Value> ext::writeTurn(OpBuilder &b, AttentionOp op, ArrayRef<Value> operands,
                                  ArrayRef<Value> before, LoopLimits limits,
                                  GlobalIndex globalIndex) {
  RowWriter writer(b, op, RowResults::accumulators, limits, globalIndex);
  return writer.writeTurn(operands, before);
}

FailureOr<SmallVector<Value>> AttentionOp::decomposeOperation(OpBuilder &b) {
  return ext::writeAttention(b, *this, llvm::to_vector(getOperands()),
                             getLogsumexp() ? RowResults::logsumexp : RowResults::output, {},
                             [](OpBuilder &, Location, unsigned, Value local) { return local; });
}
