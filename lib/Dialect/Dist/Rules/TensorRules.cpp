//===- TensorRules.cpp - Rules of the tensor dialect, by hand --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

namespace {

/// Builds a rule dimension by dimension.
class RuleBuilder {
public:
  explicit RuleBuilder(Operation *op) {
    auto empty = [](TypeRange types, std::vector<TensorRule> &tensors) {
      for (Type type : types) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        tensors.emplace_back(tensor ? tensor.getRank() : 0);
      }
    };
    empty(op->getOperandTypes(), rule.operands);
    empty(op->getResultTypes(), rule.results);
    rule.accumulatorOf.assign(op->getNumOperands(), -1);
  }

  int64_t factor(int64_t size, FactorKind kind = FactorKind::parallel) {
    rule.factors.push_back({size, kind, sharding::ReduceKind::sum});
    return static_cast<int64_t>(rule.factors.size()) - 1;
  }
  RuleBuilder &operand(int64_t index, int64_t dim, int64_t factor) {
    rule.operands[index][dim].factors.push_back(factor);
    return *this;
  }
  RuleBuilder &result(int64_t dim, int64_t factor) {
    rule.results[0][dim].factors.push_back(factor);
    return *this;
  }
  /// Dimension `dim` of operand `index` is read as a window of a factor.
  RuleBuilder &window(int64_t index, int64_t dim, int64_t factor, int64_t stride, int64_t shift) {
    DimRule &rule = this->rule.operands[index][dim];
    rule.factors = {factor};
    rule.isWindow = true;
    rule.stride = stride;
    rule.shift = shift;
    return *this;
  }
  RuleBuilder &moves() {
    rule.movesOnly = true;
    return *this;
  }
  ShardingRule take() { return std::move(rule); }

private:
  ShardingRule rule;
};

} // namespace

/// `large` has the dimensions of `small` merged by the groups of `reassociation`; both get a factor
/// a dimension of `large`. Dimensions of extent 1 beside a longer one are none of `small`'s, so
/// that the longer one may be cut into uneven parts.
static ShardingRule reshapeRule(Operation *op, RankedTensorType large, bool expands,
                                ArrayRef<ReassociationIndices> groups) {
  RuleBuilder builder(op);
  for (auto [small, group] : llvm::enumerate(groups))
    for (int64_t dim : group) {
      bool isUnit = large.getDimSize(dim) == 1 &&
                    llvm::any_of(group, [&](int64_t d) { return large.getDimSize(d) > 1; });
      int64_t factor = builder.factor(large.getDimSize(dim),
                                      isUnit ? FactorKind::replicate : FactorKind::parallel);
      if (isUnit) {
        if (expands)
          builder.result(dim, factor);
        else
          builder.operand(0, dim, factor);
        continue;
      }
      if (expands)
        builder.result(dim, factor).operand(0, small, factor);
      else
        builder.operand(0, dim, factor).result(small, factor);
    }
  return builder.moves().take();
}

static ShardingRule expandRule(tensor::ExpandShapeOp op) {
  return reshapeRule(op, op.getResultType(), true, op.getReassociationIndices());
}

static ShardingRule collapseRule(tensor::CollapseShapeOp op) {
  return reshapeRule(op, op.getSrcType(), false, op.getReassociationIndices());
}

static ShardingRule concatRule(tensor::ConcatOp op) {
  RuleBuilder builder(op);
  int64_t joined = static_cast<int64_t>(op.getDim());
  RankedTensorType type = op.getResultType();
  for (int64_t d = 0; d < type.getRank(); ++d) {
    if (d == joined) {
      builder.result(d, builder.factor(type.getDimSize(d), FactorKind::replicate));
      for (auto [i, input] : llvm::enumerate(op.getInputs()))
        builder.operand(i, d,
                        builder.factor(cast<RankedTensorType>(input.getType()).getDimSize(d),
                                       FactorKind::replicate));
      continue;
    }
    int64_t factor = builder.factor(type.getDimSize(d));
    builder.result(d, factor);
    for (unsigned i = 0; i < op.getInputs().size(); ++i)
      builder.operand(i, d, factor);
  }
  return builder.take();
}

static std::optional<ShardingRule> padRule(tensor::PadOp op) {
  if (!op.getConstantPaddingValue())
    return std::nullopt;
  RuleBuilder builder(op);
  RankedTensorType type = op.getResultType();
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int64_t factor = builder.factor(type.getDimSize(d));
    builder.result(d, factor);
    int64_t low = op.getStaticLow()[d], high = op.getStaticHigh()[d];
    if (ShapedType::isDynamic(low) || ShapedType::isDynamic(high))
      return std::nullopt;
    if (low == 0 && high == 0)
      builder.operand(0, d, factor);
    else
      builder.window(0, d, factor, 1, -low);
  }
  return builder.take();
}

static std::optional<ShardingRule> extractSliceRule(tensor::ExtractSliceOp op) {
  RuleBuilder builder(op);
  llvm::SmallBitVector dropped = op.getDroppedDims();
  int64_t result = 0;
  for (int64_t d = 0; d < op.getSourceType().getRank(); ++d) {
    int64_t source = op.getSourceType().getDimSize(d);
    int64_t offset = op.getStaticOffsets()[d], size = op.getStaticSizes()[d];
    int64_t stride = op.getStaticStrides()[d];
    if (ShapedType::isDynamic(size) || ShapedType::isDynamic(stride))
      return std::nullopt;
    if (dropped.test(d)) {
      builder.operand(0, d, builder.factor(source, FactorKind::replicate));
      continue;
    }
    if (ShapedType::isDynamic(offset)) {
      // Where it begins is known when it runs: the dimension is held whole.
      builder.operand(0, d, builder.factor(source, FactorKind::replicate));
      builder.result(result, builder.factor(size, FactorKind::replicate));
    } else {
      int64_t factor = builder.factor(size);
      builder.result(result, factor);
      if (size == source)
        builder.operand(0, d, factor);
      else
        builder.window(0, d, factor, stride, offset);
    }
    ++result;
  }
  return builder.moves().take();
}

static std::optional<ShardingRule> insertSliceRule(tensor::InsertSliceOp op) {
  RuleBuilder builder(op);
  llvm::SmallBitVector dropped = op.getDroppedDims();
  int64_t source = 0;
  for (int64_t d = 0; d < op.getDestType().getRank(); ++d) {
    int64_t extent = op.getDestType().getDimSize(d);
    int64_t size = dropped.test(d) ? 1 : op.getSourceType().getDimSize(source);
    bool whole = !dropped.test(d) && size == extent;
    int64_t factor = builder.factor(extent, whole ? FactorKind::parallel : FactorKind::replicate);
    builder.result(d, factor).operand(1, d, factor);
    if (dropped.test(d))
      continue;
    builder.operand(0, source++, whole ? factor : builder.factor(size, FactorKind::replicate));
  }
  return builder.take();
}

/// Ops whose result has no tensor operands: any part can be made in place.
static ShardingRule sourceRule(Operation *op) {
  RuleBuilder builder(op);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  for (int64_t d = 0; d < type.getRank(); ++d)
    builder.result(d, builder.factor(type.getDimSize(d)));
  return builder.take();
}

/// Leading dimensions of the indices are the gather's own; the source is held whole but for
/// dimensions that every slice covers.
static ShardingRule gatherRule(tensor::GatherOp op) {
  RuleBuilder builder(op);
  RankedTensorType source = op.getSourceType(), indices = op.getIndicesType();
  RankedTensorType result = op.getResultType();
  int64_t batch = indices.getRank() - 1;
  for (int64_t d = 0; d < batch; ++d) {
    int64_t factor = builder.factor(indices.getDimSize(d));
    builder.operand(1, d, factor).result(d, factor);
  }
  builder.operand(1, batch, builder.factor(indices.getDimSize(batch), FactorKind::replicate));
  bool rankReduced = result.getRank() ==
                     batch + source.getRank() - static_cast<int64_t>(op.getGatherDims().size());
  int64_t at = batch;
  for (int64_t d = 0; d < source.getRank(); ++d) {
    bool gathered = llvm::is_contained(op.getGatherDims(), d);
    int64_t factor = builder.factor(source.getDimSize(d),
                                    gathered ? FactorKind::replicate : FactorKind::parallel);
    builder.operand(0, d, factor);
    if (!gathered)
      builder.result(at++, factor);
    else if (!rankReduced)
      builder.result(at++, builder.factor(1, FactorKind::replicate));
  }
  return builder.take();
}

std::optional<ShardingRule> dist::getTensorRule(Operation *op) {
  using Result = std::optional<ShardingRule>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](tensor::ExpandShapeOp op) -> Result { return expandRule(op); })
      .Case([](tensor::CollapseShapeOp op) -> Result { return collapseRule(op); })
      .Case([](tensor::ConcatOp op) -> Result { return concatRule(op); })
      .Case([](tensor::PadOp op) -> Result { return padRule(op); })
      .Case([](tensor::ExtractSliceOp op) -> Result { return extractSliceRule(op); })
      .Case([](tensor::InsertSliceOp op) -> Result { return insertSliceRule(op); })
      .Case([](tensor::GatherOp op) -> Result { return gatherRule(op); })
      .Case([](tensor::EmptyOp op) -> Result { return sourceRule(op); })
      .Case([](tensor::SplatOp op) -> Result { return sourceRule(op); })
      // Whole on every device: scalars out of tensors and tensors out of scalars, scatters.
      .Case<tensor::ExtractOp, tensor::FromElementsOp, tensor::InsertOp, tensor::ScatterOp,
            tensor::GenerateOp>([](Operation *op) -> Result { return replicatedRule(op); })
      .Default([](Operation *) -> Result { return std::nullopt; });
}
