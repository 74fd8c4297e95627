//===- OpShardings.cpp - How ops are distributed --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/OpShardings.h"

#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/Windows.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

//===----------------------------------------------------------------------===//
// Reading and writing
//===----------------------------------------------------------------------===//

OpShardingAttr dist::getOpSharding(Operation *op) {
  return op->getAttrOfType<OpShardingAttr>(DistDialect::kOpSharding);
}

void dist::setOpSharding(Operation *op, FlatSymbolRefAttr name, const sharding::Mesh &mesh,
                         const sharding::OpSharding &sharding) {
  if (sharding.isWhole())
    op->removeAttr(DistDialect::kOpSharding);
  else
    op->setAttr(DistDialect::kOpSharding,
                OpShardingAttr::get(name, mesh, sharding, op->getContext()));
}

FlatSymbolRefAttr dist::meshOf(Operation *op) {
  for (ValueRange values : {ValueRange(op->getResults()), ValueRange(op->getOperands())})
    for (Value value : values)
      if (isa<RankedTensorType>(value.getType()))
        if (ShardingAttr attr = getSharding(value))
          return attr.getMesh();
  return {};
}

/// The value of an attribute that has passed the verifier.
static sharding::OpSharding resolveVerified(OpShardingAttr attr, const sharding::Mesh &mesh) {
  FailureOr<sharding::OpSharding> resolved =
      attr.resolve(mesh, [&]() { return emitError(UnknownLoc::get(attr.getContext())); });
  assert(succeeded(resolved) && "the verifier has resolved it");
  return std::move(*resolved);
}

const ShardedOp &OpShardings::of(Operation *op) {
  OpShardingAttr attr = getOpSharding(op);
  FlatSymbolRefAttr mesh = attr ? attr.getMesh() : meshOf(op);
  const sharding::ShardingRule &rule = rules.lookupOrWhole(op);
  const ShardedOp *&found =
      known[{&rule, attr.getAsOpaquePointer(), mesh ? mesh.getAsOpaquePointer() : nullptr}];
  if (found)
    return *found;
  ShardedOp result{rule, sharding::OpSharding::whole(rule), mesh, {}};
  if (attr)
    result.sharding = ::resolveVerified(attr, meshes.get(mesh));
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes())) {
    bool isTensor = mesh && isa<RankedTensorType>(type);
    result.operands.push_back(
        isTensor ? ShardingAttr::get(mesh, meshes.get(mesh),
                                     sharding::operandSharding(rule, index, result.sharding),
                                     op->getContext())
                 : ShardingAttr());
  }
  kept.push_back(std::move(result));
  return *(found = &kept.back());
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// (O6) A result has the sharding that follows from the op sharding.
static LogicalResult verifyResults(Operation *op, const sharding::ShardingRule &rule,
                                   const sharding::OpSharding &sharding, OpShardingAttr attr,
                                   const sharding::Mesh &mesh) {
  for (OpResult result : op->getResults()) {
    ShardingAttr own =
        isa<RankedTensorType>(result.getType()) ? getSharding(result) : ShardingAttr();
    if (!own)
      continue;
    TensorSharding implied = sharding::resultSharding(rule, result.getResultNumber(), sharding);
    if (own.getMesh() == attr.getMesh()) {
      FailureOr<TensorSharding> resolved =
          own.resolve(mesh, result.getType(), [&]() { return op->emitError(); });
      if (failed(resolved))
        return failure();
      if (resolved->closed() == implied)
        continue;
    }
    return op->emitError() << "result " << result.getResultNumber() << " has " << own << ", but "
                           << attr << " implies "
                           << ShardingAttr::get(attr.getMesh(), mesh, implied, op->getContext())
                           << "; change one of them, or run dist-propagate again";
  }
  return success();
}

/// (O5) The op is linear in the operands that it forwards.
static LogicalResult verifyForwards(Operation *op, const sharding::OpSharding &sharding,
                                    const sharding::Mesh &mesh) {
  for (const sharding::Forward &forward : sharding.forwards)
    if (!passesPartial(op, forward.partial.kind, forward.operands))
      return op->emitError() << "'" << DistDialect::kOpSharding << "' forwards "
                             << sharding::toString(forward.partial.kind) << "("
                             << sharding::toString(mesh, forward.partial.axis) << ") from "
                             << (forward.operands.size() == 1 ? "operand " : "operands ")
                             << ArrayRef<int64_t>(forward.operands) << ", in which '"
                             << op->getName() << "' is not linear"
                             << (forward.operands.size() == 1 ? "" : ", taken together")
                             << "; reduce " << (forward.operands.size() == 1 ? "it" : "them")
                             << " first";
  return success();
}

/// Adds everything that the verification of an op reads: its name, types, attributes and bodies.
/// Values of a body are identified by their number; all values from outside are equal.
static void addStructure(Operation *op, AddressKey &key) {
  llvm::SmallDenseMap<Value, uintptr_t, 16> numbers; // looked up only
  auto number = [&](Value value) { numbers.try_emplace(value, numbers.size() + 1); };
  auto add = [&](Operation *inner) {
    key.push_back(inner->getName().getAsOpaquePointer());
    key.push_back(inner->getAttrDictionary().getAsOpaquePointer());
    for (Value operand : inner->getOperands()) {
      key.push_back(reinterpret_cast<const void *>(numbers.lookup(operand)));
      key.push_back(operand ? operand.getType().getAsOpaquePointer() : nullptr);
    }
    for (Value result : inner->getResults()) {
      key.push_back(result.getType().getAsOpaquePointer());
      number(result);
    }
    for (Region &region : inner->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments()) {
          key.push_back(argument.getType().getAsOpaquePointer());
          number(argument);
        }
    key.push_back(nullptr);
  };
  op->walk<WalkOrder::PreOrder>(add);
}

/// (O7) The op can compute windows.
static LogicalResult verifyWindows(Operation *op, const sharding::OpSharding &sharding) {
  if (sharding.windows.empty() || computesWindows(op))
    return success();
  return op->emitError() << "'" << DistDialect::kOpSharding << "' has windows, but '"
                         << op->getName() << "' cannot compute windows of its result; leave them "
                         << "out, and reshard the result";
}

LogicalResult OpShardingVerifier::verify(Operation *op, OpShardingAttr attr) {
  ProcessMeshOp declared = lookupMesh(op, attr.getMesh());
  if (!declared) // (S1)
    return op->emitError() << "'" << DistDialect::kOpSharding << "': mesh '"
                           << attr.getMesh().getValue()
                           << "' is not declared; add dist.process_mesh @"
                           << attr.getMesh().getValue();
  if (failed(declared.verify()))
    return failure();
  AddressKey key{declared->getAttrDictionary().getAsOpaquePointer()};
  addStructure(op, key);
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (correct.count(key))
      return success();
  }
  // Rules rely on the op's own verifier, which runs after that of its attributes.
  if (failed(op->getName().verifyInvariants(op)))
    return failure();
  std::optional<sharding::ShardingRule> rule = getShardingRule(op);
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!rule || (function && isLocalView(function))) // (O1)
    return op->emitError() << "'" << DistDialect::kOpSharding << "' is not allowed on '"
                           << op->getName() << "'"
                           << (rule ? " in the local view" : ", which has no sharding rule")
                           << "; it requires an op of the global view with a sharding rule";
  sharding::Mesh mesh = declared.getMesh();
  FailureOr<sharding::OpSharding> sharding = attr.resolve(mesh, [&]() { return op->emitError(); });
  if (failed(sharding))
    return failure();
  if (std::string why = sharding::findContradiction(mesh, *rule, *sharding); !why.empty())
    return op->emitError() << attr << " on '" << op->getName() << "' " << why; // (O2, O3, O4, O7)
  if (failed(verifyForwards(op, *sharding, mesh)) || failed(verifyWindows(op, *sharding)) ||
      failed(verifyResults(op, *rule, *sharding, attr, mesh)))
    return failure();
  std::lock_guard<std::mutex> lock(mutex);
  correct.insert(std::move(key));
  return success();
}

//===----------------------------------------------------------------------===//
// Decided functions
//===----------------------------------------------------------------------===//

/// Whether a tensor has a sharding other than whole on every device.
static bool isDistributed(Value value, const MeshTable &meshes) {
  ShardingAttr attr = isa<RankedTensorType>(value.getType()) ? getSharding(value) : ShardingAttr();
  return attr && !dist::resolveVerified(attr, meshes, value.getType()).isReplicated();
}

/// Control flow forwards values, reshards and constraints have explicit shardings: all other ops
/// with tensor results are distributed by their rules.
static bool hasOpSharding(Operation *op) {
  return !isControlFlow(op) && !isa<ReshardOp, ShardTensorOp>(op);
}

LogicalResult dist::checkShardingsDecided(func::FuncOp function, const MeshTable &meshes) {
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
    else if (hasOpSharding(op) && !op->hasAttr(DistDialect::kOpSharding) &&
             llvm::any_of(op->getResults(),
                          [&](Value value) { return isDistributed(value, meshes); }))
      missing = DistDialect::kOpSharding;
    if (missing.empty())
      return WalkResult::advance();
    op->emitError() << "'" << op->getName() << "' has no '" << missing
                    << "'; run dist-propagate or dist-search first";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
