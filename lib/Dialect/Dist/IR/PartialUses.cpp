//===- PartialUses.cpp - Uses of contributions (rule C6) ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f(a + b) is not f(a) + f(b) unless f is linear, so a contribution that reaches any
// other op silently gives a wrong result. Linearity is derived from the rule of the op.
//
//===----------------------------------------------------------------------===//

#include "PartialUses.h"

#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using Partials = std::vector<sharding::PartialAxis>;

/// The partial axes of a sharding; empty if it is null or invalid (reported elsewhere).
static std::optional<Partials> partialsOf(Operation *from, ShardingAttr attr, Type type) {
  ProcessMeshOp mesh = attr ? lookupMesh(from, attr.getMesh()) : ProcessMeshOp();
  if (!mesh || failed(mesh.verify()))
    return std::nullopt;
  ScopedDiagnosticHandler silent(from->getContext(), [](Diagnostic &) { return success(); });
  auto resolved =
      attr.resolve(mesh.getMesh(), type, [&]() { return mlir::emitError(from->getLoc()); });
  if (failed(resolved))
    return std::nullopt;
  Partials partials = sharding::canonical(*resolved).partial;
  // The only contribution over an axis of one device is the value.
  llvm::erase_if(partials, [](const sharding::PartialAxis &part) { return part.axis.size == 1; });
  return partials;
}

/// Whether contributions may be used instead of `wanted`. A value that is whole over an axis is a
/// contribution to a mean over it.
static bool canReplace(const Partials &partials, const Partials &wanted) {
  auto isMean = [](const sharding::PartialAxis &axis) {
    return axis.kind == sharding::ReduceKind::avg;
  };
  auto isWanted = [&](const sharding::PartialAxis &own) {
    return llvm::any_of(wanted, [&](const sharding::PartialAxis &other) {
      return other == own || (isMean(own) && isMean(other) && other.axis.contains(own.axis));
    });
  };
  auto isThere = [&](const sharding::PartialAxis &other) {
    return isMean(other) || llvm::is_contained(partials, other);
  };
  return llvm::all_of(partials, isWanted) && llvm::all_of(wanted, isThere);
}

/// Whether a value is known to be whole or to have other contributions. Values without a sharding
/// are unknown: code generation drops shardings.
static bool isKnownToDiffer(Operation *from, Value value, const Partials &partials) {
  auto other = partialsOf(from, getSharding(value), value.getType());
  return other && !canReplace(partials, *other);
}

/// Whether a value is known to be, or known not to be, contributions over an axis. Empty if it is
/// both, such as a fill of zero for sums, or if it has no sharding: code generation drops them.
static std::optional<bool> isPartialOver(Operation *from, Value value,
                                         const sharding::PartialAxis &axis) {
  if (isIdentityFill(value, axis.kind))
    return std::nullopt;
  auto partials = partialsOf(from, getSharding(value), value.getType());
  if (!partials)
    return std::nullopt;
  // Two parts of an axis may be merged into the whole axis.
  return llvm::any_of(*partials, [&](const sharding::PartialAxis &own) {
    return own.kind == axis.kind && own.axis.contains(axis.axis);
  });
}

/// Whether the op maps contributions over an axis to contributions: operands known to be
/// contributions are, those known to be whole are not, the others may be either.
static bool passesOver(Operation *op, const sharding::PartialAxis &axis) {
  SmallVector<int64_t> known, unknown;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    std::optional<bool> partial = isPartialOver(op, operand.get(), axis);
    if (!partial)
      unknown.push_back(operand.getOperandNumber());
    else if (*partial)
      known.push_back(operand.getOperandNumber());
  }
  sharding::ReduceKind kind = axis.kind;
  if (kind == sharding::ReduceKind::avg) // a scaled sum
    kind = sharding::ReduceKind::sum;
  return passesPartial(op, kind, known, unknown);
}

/// Whether contributions may reach this operand of a computing op.
static bool mayReach(OpOperand &use, const Partials &partials) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  std::optional<sharding::ShardingRule> rule = getShardingRule(op);
  bool accumulates = rule && index < rule->accumulatorOf.size() && rule->accumulatorOf[index] >= 0;
  bool moves = rule && rule->movesOnly && index == 0;
  return llvm::all_of(partials, [&](const sharding::PartialAxis &axis) {
    if (!accumulates && !moves && !passesOver(op, axis))
      return false;
    // Its results are contributions, too, perhaps over more axes.
    return llvm::none_of(op->getResults(), [&](Value result) {
      return isa<RankedTensorType>(result.getType()) &&
             !isPartialOver(op, result, axis).value_or(true);
    });
  });
}

/// Whether an op computes tensors: an op with a sharding rule, and every other op of the dialects
/// of programs.
static bool computesTensors(Operation *op) {
  return (isa<ShardingRuleOpInterface>(op) && !isa<ShardTensorOp>(op)) ||
         isa_and_nonnull<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                         tensor::TensorDialect>(op->getDialect());
}

/// Whether the operand is added to a constant zero: a sum that begins with its identity.
static bool isAddedToZero(OpOperand &use) {
  if (!isa<arith::AddFOp, arith::AddIOp>(use.getOwner()))
    return false;
  Value other = use.getOwner()->getOperand(1 - use.getOperandNumber());
  return matchPattern(other, m_AnyZeroFloat()) || matchPattern(other, m_Zero());
}

/// Whether an op extracts elements for an enclosing linalg op, which yields them or one of several
/// of them unchanged, and thus as the same contributions.
static bool isForwardedExtract(Operation *op, const Partials &partials) {
  if (!isa<tensor::ExtractOp>(op))
    return false;
  Operation *picked = op;
  while (picked->hasOneUse()) { // a select yields one of its operands
    OpOperand &use = *picked->use_begin();
    bool isSelected = isa<arith::SelectOp>(use.getOwner()) && use.getOperandNumber() != 0;
    if (!isSelected && !isAddedToZero(use))
      break;
    picked = use.getOwner();
  }
  auto around = dyn_cast<linalg::LinalgOp>(picked->getParentOp());
  return around && llvm::all_of(picked->getUsers(), llvm::IsaPred<linalg::YieldOp>) &&
         llvm::none_of(around->getResults(),
                       [&](Value result) { return isKnownToDiffer(around, result, partials); });
}

static LogicalResult verifyUse(OpOperand &use, const Partials &partials,
                               FunctionOpInterface function) {
  Operation *op = use.getOwner();
  auto refuse = [&]() { // (C6)
    std::string kinds;
    for (const sharding::PartialAxis &axis : partials)
      kinds += (kinds.empty() ? "" : ", ") + std::string(sharding::toString(axis.kind));
    return op->emitOpError()
           << "operand " << use.getOperandNumber() << " is partial(" << kinds
           << "); in the local view only linear operations take partial values, reduce it first";
  };
  // Check the op's own rules first: the rest relies on them.
  if (failed(op->getName().verifyInvariants(op)))
    return failure();
  // The rules of its regions are not checked yet: a loop without a map is rejected when it is
  // verified.
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op); linalgOp && !linalgOp.getShapesToLoopsMap())
    return success();
  if (isForwardedExtract(op, partials))
    return success();
  if (op->hasTrait<OpTrait::ReturnLike>() && op->getParentOp() == function) {
    auto attr =
        function.getResultAttrOfType<ShardingAttr>(use.getOperandNumber(), DistDialect::kSharding);
    auto global =
        function.getResultAttrOfType<TypeAttr>(use.getOperandNumber(), DistDialect::kGlobalType);
    auto wanted = partialsOf(op, attr, global ? global.getValue() : use.get().getType());
    return !attr || (wanted && !canReplace(partials, *wanted)) ? LogicalResult(refuse())
                                                               : success();
  }
  if (SmallVector<Value, 2> receivers = receiversOf(use); !receivers.empty())
    return isKnownToDiffer(op, receivers.front(), partials) ? LogicalResult(refuse()) : success();
  if (isa<tensor::DimOp>(op) || !computesTensors(op))
    return success();
  return mayReach(use, partials) ? success() : LogicalResult(refuse());
}

LogicalResult dist::verifyPartialUses(Value value, ShardingAttr sharding) {
  Operation *from =
      value.getDefiningOp() ? value.getDefiningOp() : value.getParentBlock()->getParentOp();
  auto function = dyn_cast<FunctionOpInterface>(from);
  if (!function)
    function = from->getParentOfType<FunctionOpInterface>();
  if (!function || !isLocalView(function))
    return success();
  auto partials = partialsOf(from, sharding, value.getType());
  if (!partials || partials->empty())
    return success();
  for (OpOperand &use : value.getUses())
    if (failed(verifyUse(use, *partials, function)))
      return failure();
  return success();
}
