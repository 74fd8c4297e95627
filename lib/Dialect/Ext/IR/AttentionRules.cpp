//===- AttentionRules.cpp - How attentions are distributed -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionWriter.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::FactorKind;
using sharding::ReduceKind;

/// Rows and keys are factors. In the forward op rows are parallel; in the backward op a gradient
/// that lacks one of its loops is a sum over it.
static sharding::ShardingRule ruleOf(Operation *op) {
  AttentionParts parts = partsOf(op);
  SmallVector<int64_t> factors = parts.factors();
  const AttentionDomain &domain = parts.domain;
  dist::RuleBuilder builder(op);
  bool isBackward = isa<AttentionBackwardOp>(op);
  for (unsigned loop : parts.rows)
    builder.factor(domain.extents[loop], isBackward && llvm::is_contained(domain.query, loop)
                                             ? FactorKind::reduction
                                             : FactorKind::parallel);
  builder.factor(domain.extents[domain.key], FactorKind::reduction);
  for (auto [index, map] : llvm::enumerate(parts.maps))
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      int64_t factor = factors[cast<AffineDimExpr>(expr).getPosition()];
      if (factor >= 0 && index < op->getNumOperands())
        builder.operand(index, dim, factor);
      else if (factor >= 0)
        builder.result(index - op->getNumOperands(), dim, factor);
    }
  return builder.take();
}

/// The work of one score.
static int64_t operationsOf(Operation *op, int64_t products, int64_t elementwise) {
  AttentionDomain domain = partsOf(op).domain;
  for (Region &region : op->getRegions())
    elementwise += static_cast<int64_t>(region.front().getOperations().size()) - 1;
  return products * (domain.sizeOf(domain.features) + domain.sizeOf(domain.outputFeatures)) +
         elementwise;
}

/// Sequences cut alike are moved to heads, and back behind the op, for moves of a part each.
static SmallVector<int64_t> batchFactors(Operation *op) {
  AttentionParts parts = partsOf(op);
  SmallVector<int64_t> factors = parts.factors();
  return llvm::map_to_vector(parts.domain.batch, [&](unsigned loop) { return factors[loop]; });
}

std::optional<sharding::ShardingRule> AttentionOp::getShardingRule() {
  sharding::ShardingRule rule = ruleOf(*this);
  if (getLogsumexp())
    rule.completes = {false, true};
  return rule;
}

bool AttentionOp::addToRuleKey(AddressKey &key) {
  key.push_back(getIndexingMaps().getAsOpaquePointer());
  return true;
}

int64_t AttentionOp::getOperationsPerIteration() {
  return operationsOf(*this, 2, 4); // the largest, the difference, its exponential, the sum
}

SmallVector<int64_t> AttentionOp::getAlternatives() {
  return batchFactors(*this);
}

std::optional<sharding::ShardingRule> AttentionBackwardOp::getShardingRule() {
  return ruleOf(*this);
}

bool AttentionBackwardOp::addToRuleKey(AddressKey &key) {
  key.push_back(getIndexingMaps().getAsOpaquePointer());
  return true;
}

int64_t AttentionBackwardOp::getOperationsPerIteration() {
  return operationsOf(*this, 5, 4);
}

SmallVector<int64_t> AttentionBackwardOp::getAlternatives() {
  return batchFactors(*this);
}

namespace {

/// Ends an attention whose keys are cut: weights what each device has by the largest score and the
/// sum of all.
class KeyCombiner {
public:
  KeyCombiner(AttentionOp op, dist::PartitionContext &context)
      : op(op), context(context), b(context.builder), loc(op.getLoc()), parts(partsOf(op)) {}

  SmallVector<Value> combine(Value output, Value largest, Value sum) {
    Value top = combined(largest, ReduceKind::max);
    Value own = onRows({largest, top}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
      return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, in[0], in[1]));
    });
    Value weighted = onRows({sum, own}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
      return arith::MulFOp::create(b, loc, in[0], in[1]);
    });
    Value total = combined(weighted, ReduceKind::sum);
    Value share = onRows({own, total}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
      return arith::DivFOp::create(b, loc, in[0], in[1]);
    });
    SmallVector<Value> results{scale(output, share)};
    if (op.getLogsumexp())
      results.push_back(
          onRows({top, total}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
            return arith::AddFOp::create(b, loc, in[0], math::LogOp::create(b, loc, in[1]));
          }));
    return results;
  }

private:
  Value combined(Value local, ReduceKind kind) {
    auto numRows = static_cast<int64_t>(parts.rows.size());
    return context.getCombined(local, llvm::to_vector(llvm::seq<int64_t>(0, numRows)), numRows,
                               kind);
  }

  Value onRows(ValueRange inputs,
               llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
    auto type = cast<RankedTensorType>(inputs.front().getType());
    SmallVector<AffineMap> maps(inputs.size() + 1, b.getMultiDimIdentityMap(type.getRank()));
    return generic(inputs, maps, type, body);
  }

  /// The output with each row multiplied by a share, as the op's element type.
  Value scale(Value output, Value share) {
    auto type = cast<RankedTensorType>(output.getType());
    RankedTensorType wanted = context.getLocalType(0);
    SmallVector<AffineExpr> row;
    for (unsigned loop : parts.rows)
      row.push_back(b.getAffineDimExpr(*parts.output.getResultPosition(b.getAffineDimExpr(loop))));
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    Type element = wanted.getElementType();
    return generic({output, share},
                   {identity, AffineMap::get(type.getRank(), 0, row, b.getContext()), identity},
                   wanted, [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
                     Value scaled = arith::MulFOp::create(b, loc, in[0], in[1]);
                     return convertFloat(b, loc, scaled, element);
                   });
  }

  Value generic(ValueRange inputs, ArrayRef<AffineMap> maps, RankedTensorType type,
                llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
    SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
    Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    return linalg::GenericOp::create(b, loc, type, inputs, init, maps, parallel,
                                     [&](OpBuilder &inner, Location loc, ValueRange in) {
                                       linalg::YieldOp::create(inner, loc, body(inner, loc, in));
                                     })
        .getResult(0);
  }

  AttentionOp op;
  dist::PartitionContext &context;
  OpBuilder &b;
  Location loc;
  AttentionParts parts;
};

} // namespace

/// The global indices of loops in a part.
static Value globalIndexOf(dist::PartitionContext &context, ArrayRef<int64_t> factors,
                           OpBuilder &at, Location loc, unsigned loop, Value local) {
  int64_t factor = factors[loop];
  bool isCut = factor >= 0 && !context.getFactorAxes()[factor].empty();
  return isCut ? context.getGlobalIteration(at, loc, factor, local) : local;
}

/// The loops that are reduced over parts of which some reach beyond the edge.
static SmallVector<std::pair<unsigned, int64_t>> limitsOf(dist::PartitionContext &context,
                                                          const AttentionParts &parts) {
  SmallVector<std::pair<unsigned, int64_t>> limits;
  for (auto [loop, factor] : llvm::enumerate(parts.factors()))
    if (factor >= 0 && context.getRule().factors[factor].kind == FactorKind::reduction &&
        context.isUneven(factor))
      limits.push_back({loop, parts.domain.extents[loop]});
  return limits;
}

FailureOr<SmallVector<Value>> AttentionOp::partition(dist::PartitionContext &context) {
  AttentionParts parts = partsOf(*this);
  SmallVector<int64_t> factors = parts.factors();
  bool isKeyCut = !context.getFactorAxes()[factors[parts.domain.key]].empty();
  SmallVector<Value> operands;
  for (unsigned index = 0; index < getNumOperands(); ++index)
    operands.push_back(context.getMaskedOperand(index));
  RowResults wanted = isKeyCut         ? RowResults::accumulators
                      : getLogsumexp() ? RowResults::logsumexp
                                       : RowResults::output;
  SmallVector<Value> results =
      writeAttention(context.builder, *this, operands, wanted, limitsOf(context, parts),
                     [&](OpBuilder &at, Location loc, unsigned loop, Value local) {
                       return globalIndexOf(context, factors, at, loc, loop, local);
                     });
  if (isKeyCut)
    results = KeyCombiner(*this, context).combine(results[0], results[1], results[2]);
  return results;
}

FailureOr<SmallVector<Value>> AttentionBackwardOp::partition(dist::PartitionContext &context) {
  AttentionParts parts = partsOf(*this);
  SmallVector<int64_t> factors = parts.factors();
  SmallVector<Value> operands;
  for (unsigned index = 0; index < getNumOperands(); ++index)
    operands.push_back(context.getMaskedOperand(index));
  return writeAttentionBackward(context.builder, *this, operands, limitsOf(context, parts),
                                [&](OpBuilder &at, Location loc, unsigned loop, Value local) {
                                  return globalIndexOf(context, factors, at, loc, loop, local);
                                });
}
