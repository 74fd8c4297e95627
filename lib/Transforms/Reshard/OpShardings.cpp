//===- OpShardings.cpp - An op's cut, read back from the IR ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/OpShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

namespace {
/// A partial axis of the result that the operands bring.
struct Passing {
  sharding::PartialAxis partial;
  SmallVector<int64_t> operands;
};
} // namespace

/// Whether an operand cuts a reduction by the axis: then the result is partial because of that.
static bool cutsReduction(const sharding::ShardingRule &rule,
                          const std::vector<TensorSharding> &operands,
                          const sharding::AxisRef &axis) {
  for (size_t o = 0; o < operands.size(); ++o) {
    sharding::FactorAxes axes = sharding::project(rule, rule.operands[o], operands[o]);
    for (size_t f = 0; f < axes.size(); ++f)
      if (rule.factors[f].kind == sharding::FactorKind::reduction &&
          sharding::overlapsAny(axes[f], axis))
        return true;
  }
  return false;
}

/// Whether the op itself can make contributions of this kind, by a cut reduction.
static bool reduces(const sharding::ShardingRule &rule, sharding::ReduceKind kind) {
  return llvm::any_of(rule.factors, [&](const sharding::Factor &factor) {
    return factor.kind == sharding::FactorKind::reduction && factor.reduction == kind;
  });
}

/// Takes the partial axes that pass through the op out of its result's sharding.
static std::vector<Passing> takePassing(Operation *op, const sharding::ShardingRule &rule,
                                        std::vector<TensorSharding> &results,
                                        const std::vector<TensorSharding> &operands) {
  std::vector<Passing> passing;
  if (results.size() != 1 || !results[0].isPartial())
    return passing;
  std::vector<sharding::PartialAxis> own;
  for (const sharding::PartialAxis &partial : results[0].partial) {
    SmallVector<int64_t> bringing;
    for (auto [o, operand] : llvm::enumerate(operands))
      if (llvm::any_of(operand.partial, [&](const sharding::PartialAxis &other) {
            return other.kind == partial.kind && other.axis.contains(partial.axis);
          }))
        bringing.push_back(o);
    SmallVector<int64_t> through;
    // Where nothing else makes it partial, operands that lie otherwise by now are asked for it.
    if (bringing.empty() && !reduces(rule, partial.kind))
      for (auto [o, type] : llvm::enumerate(op->getOperandTypes()))
        if (isa<RankedTensorType>(type))
          bringing.push_back(o);
    if (!bringing.empty() && !cutsReduction(rule, operands, partial.axis))
      through = operandsToPass(op, partial.kind, bringing);
    if (through.empty())
      own.push_back(partial);
    else
      passing.push_back({partial, std::move(through)});
  }
  results[0].partial = std::move(own);
  return passing;
}

OpShardings dist::deriveOpShardings(Operation *op, const MeshTable &meshes) {
  OpShardings result;
  std::optional<sharding::ShardingRule> rule = getShardingRule(op);
  result.rule = rule ? std::move(*rule) : replicatedRule(op);
  auto lies = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    ShardingAttr attr = type ? getSharding(value) : ShardingAttr();
    if (!attr)
      return TensorSharding::replicated(type ? type.getRank() : 0);
    return resolveVerified(attr, meshes, type);
  };
  for (Value value : llvm::concat<Value>(llvm::to_vector<4>(op->getResults()),
                                         llvm::to_vector<4>(op->getOperands())))
    if (isa<RankedTensorType>(value.getType()))
      if (ShardingAttr attr = getSharding(value)) {
        result.mesh = attr.getMesh();
        break;
      }
  std::vector<TensorSharding> results, operands, whole;
  for (Value value : op->getResults())
    results.push_back(lies(value));
  for (Value value : op->getOperands()) {
    operands.push_back(lies(value));
    whole.push_back(operands.back().withoutPartial());
  }
  std::vector<Passing> passing = takePassing(op, result.rule, results, operands);
  result.axes = sharding::deriveFactorAxes(result.rule, results, whole);
  for (auto [index, value] : llvm::enumerate(op->getOperands())) {
    if (!result.mesh || !isa<RankedTensorType>(value.getType())) {
      result.operands.push_back({});
      continue;
    }
    TensorSharding wanted = sharding::operandSharding(result.rule, index, result.axes);
    for (const Passing &pass : passing)
      if (llvm::is_contained(pass.operands, static_cast<int64_t>(index)))
        wanted.partial.push_back(pass.partial);
    result.operands.push_back(ShardingAttr::get(result.mesh, meshes.get(result.mesh),
                                                sharding::canonical(wanted), op->getContext()));
  }
  return result;
}

LogicalResult dist::checkShardingsDecided(func::FuncOp function) {
  auto isUndecided = [](Value value) {
    return isa<RankedTensorType>(value.getType()) && !getSharding(value);
  };
  for (auto [index, argument] : llvm::enumerate(function.getArguments()))
    if (isUndecided(argument))
      return function.emitError() << "argument '" << argumentName(function, index)
                                  << "' has no sharding; run dist-propagate or dist-search first";
  WalkResult result = function.walk([&](Operation *op) {
    if (op->getParentOp() && isa<linalg::LinalgOp>(op->getParentOp()))
      return WalkResult::advance();
    StringRef missing;
    if (llvm::any_of(op->getResults(), isUndecided))
      missing = DistDialect::kShardings;
    else if (auto loop = dyn_cast<scf::WhileOp>(op);
             loop && llvm::any_of(loop.getBeforeArguments(), isUndecided))
      missing = DistDialect::kBeforeShardings;
    if (missing.empty())
      return WalkResult::advance();
    op->emitError() << "'" << op->getName() << "' has no '" << missing
                    << "'; run dist-propagate or dist-search first";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
