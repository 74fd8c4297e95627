//===- TensorRules.cpp - Rules of the tensor dialect, by hand -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op is a struct: its rule, the inputs of the rule, the contributions that pass,
// and the op on local shapes. Slices and pads are in SliceRules.cpp.
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

/// `large` has the dimensions of `small` split by the groups of `reassociation`; both get one
/// factor per dimension of `large`. Dimensions of extent 1 beside a longer one are not factors of
/// `small`, so that the longer one may be cut unevenly.
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
          builder.result(0, dim, factor);
        else
          builder.operand(0, dim, factor);
        continue;
      }
      if (expands)
        builder.result(0, dim, factor).operand(0, small, factor);
      else
        builder.operand(0, dim, factor).result(0, small, factor);
    }
  return builder.moves().take();
}

static std::optional<BlockReshape> markedBlocks(Operation *op) {
  return op->hasAttr(kBlocks) ? blockReshapeOf(op) : std::nullopt;
}

namespace {

template <typename Op> struct ReshapeModel : TensorModel<ReshapeModel<Op>, Op> {
  static constexpr bool kExpands = std::is_same_v<Op, tensor::ExpandShapeOp>;

  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    auto reshape = cast<Op>(op);
    if (std::optional<BlockReshape> blocks = markedBlocks(op))
      return blockReshapeRule(*blocks);
    RankedTensorType large = kExpands ? reshape.getResultType() : reshape.getSrcType();
    return reshapeRule(op, large, kExpands, reshape.getReassociationIndices());
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    key.push_back(cast<Op>(op).getReassociationAttr().getAsOpaquePointer());
    key.push_back(op->getAttr(kBlocks).getAsOpaquePointer());
    return true;
  }
  bool passesPartial(Operation *, sharding::ReduceKind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t>) const {
    return operands == ArrayRef<int64_t>{0};
  }
  double getCommunicationSeconds(Operation *op, const FactorAxes &axes, const sharding::Mesh &mesh,
                                 sharding::ReshardPlanner &planner) const {
    std::optional<BlockReshape> blocks = markedBlocks(op);
    return blocks ? blockReshapeSeconds(*blocks, axes, mesh, planner) : 0;
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    if (std::optional<BlockReshape> blocks = markedBlocks(op)) {
      TensorSharding cut = kExpands ? context.getOperandSharding(0) : context.getResultSharding(0);
      if (!cut.dims[blocks->dim].empty())
        return SmallVector<Value>{partitionBlockReshape(*blocks, context)};
    }
    return SmallVector<Value>{Op::create(context.builder, op->getLoc(), context.getLocalType(0),
                                         context.getOperand(0),
                                         cast<Op>(op).getReassociationIndices())};
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

static SmallVector<Segment> segmentsOf(tensor::ConcatOp op) {
  SmallVector<Segment> segments;
  int64_t end = 0;
  for (Value input : op.getInputs()) {
    int64_t size = cast<RankedTensorType>(input.getType()).getDimSize(op.getDim());
    segments.push_back({0, 1, end, 1, size});
    end += size;
  }
  return segments;
}

static ShardingRule concatRule(tensor::ConcatOp op) {
  RuleBuilder builder(op);
  int64_t joined = static_cast<int64_t>(op.getDim());
  RankedTensorType type = op.getResultType();
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int64_t factor = builder.factor(type.getDimSize(d));
    builder.result(0, d, factor);
    SmallVector<Segment> segments = segmentsOf(op);
    for (unsigned i = 0; i < op.getInputs().size(); ++i)
      if (d == joined)
        builder.segment(i, d, factor, segments[i], segments[i].count);
      else
        builder.operand(i, d, factor);
  }
  return builder.take();
}

namespace {

struct ConcatModel : TensorModel<ConcatModel, tensor::ConcatOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    return concatRule(cast<tensor::ConcatOp>(op));
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    key.push_back(cast<tensor::ConcatOp>(op).getDimAttr().getAsOpaquePointer());
    return true;
  }
  bool passesPartial(Operation *op, sharding::ReduceKind, ArrayRef<int64_t> operands,
                     ArrayRef<int64_t> unknown) const {
    return llvm::all_of(llvm::seq<int64_t>(0, op->getNumOperands()), [&](int64_t i) {
      return llvm::is_contained(operands, i) || llvm::is_contained(unknown, i);
    });
  }
  FailureOr<SmallVector<Value>> partition(Operation *op, PartitionContext &context) const {
    auto concat = cast<tensor::ConcatOp>(op);
    auto dim = static_cast<int64_t>(concat.getDim());
    int64_t factor = context.getRule().results[0][dim].factors[0];
    if (context.getFactorAxes()[factor].empty())
      return context.cloneOp();
    return SmallVector<Value>{assembleSegments(context, dim, factor, segmentsOf(concat), {})};
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// Leading dimensions of the indices are separate loops; the source is whole except for dimensions
/// that every slice covers.
static ShardingRule gatherRule(tensor::GatherOp op) {
  RuleBuilder builder(op);
  RankedTensorType source = op.getSourceType(), indices = op.getIndicesType();
  RankedTensorType result = op.getResultType();
  int64_t batch = indices.getRank() - 1;
  for (int64_t d = 0; d < batch; ++d) {
    int64_t factor = builder.factor(indices.getDimSize(d));
    builder.operand(1, d, factor).result(0, d, factor);
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
      builder.result(0, at++, factor);
    else if (!rankReduced)
      builder.result(0, at++, builder.factor(1, FactorKind::replicate));
  }
  return builder.take();
}

namespace {

/// Indices in the padding are undefined: they select some element for the padding of the result.
struct GatherModel : TensorModel<GatherModel, tensor::GatherOp> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const {
    return gatherRule(cast<tensor::GatherOp>(op));
  }
  bool addToRuleKey(Operation *op, AddressKey &key) const {
    key.push_back(cast<tensor::GatherOp>(op).getGatherDimsAttr().getAsOpaquePointer());
    return true;
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Tensors out of scalars, scalars out of tensors
//===----------------------------------------------------------------------===//

/// Ops whose result has no tensor operands: any part can be computed locally.
static ShardingRule sourceRule(Operation *op) {
  RuleBuilder builder(op);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  for (int64_t d = 0; d < type.getRank(); ++d)
    builder.result(0, d, builder.factor(type.getDimSize(d)));
  return builder.take();
}

namespace {

/// `tensor.empty` and `tensor.splat`.
template <typename Op> struct SourceModel : TensorModel<SourceModel<Op>, Op> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const { return sourceRule(op); }
  bool addToRuleKey(Operation *, AddressKey &) const { return true; }
  bool isMadeOfScalars(Operation *) const { return true; }
};

/// A tensor that is whole on every device.
template <typename Op> struct WholeModel : TensorModel<WholeModel<Op>, Op> {
  std::optional<ShardingRule> getShardingRule(Operation *op) const { return replicatedRule(op); }
  bool addToRuleKey(Operation *op, AddressKey &) const { return op->getNumRegions() == 0; }
};

} // namespace

void dist::attachTensorRules(MLIRContext *context) {
  tensor::ExpandShapeOp::attachInterface<ReshapeModel<tensor::ExpandShapeOp>>(*context);
  tensor::CollapseShapeOp::attachInterface<ReshapeModel<tensor::CollapseShapeOp>>(*context);
  tensor::ConcatOp::attachInterface<ConcatModel>(*context);
  tensor::GatherOp::attachInterface<GatherModel>(*context);
  tensor::EmptyOp::attachInterface<SourceModel<tensor::EmptyOp>>(*context);
  tensor::SplatOp::attachInterface<SourceModel<tensor::SplatOp>>(*context);
  tensor::ExtractOp::attachInterface<WholeModel<tensor::ExtractOp>>(*context);
  tensor::FromElementsOp::attachInterface<WholeModel<tensor::FromElementsOp>>(*context);
  tensor::InsertOp::attachInterface<WholeModel<tensor::InsertOp>>(*context);
  tensor::ScatterOp::attachInterface<WholeModel<tensor::ScatterOp>>(*context);
  tensor::GenerateOp::attachInterface<WholeModel<tensor::GenerateOp>>(*context);
}
