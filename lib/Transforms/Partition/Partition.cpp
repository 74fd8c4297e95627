//===- Partition.cpp - Lower global shapes to local shapes ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTPARTITION
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

TensorSharding Partitioner::shardingOf(Value value) {
  return resolveVerified(getSharding(value), meshes, value.getType());
}

RankedTensorType Partitioner::localTypeOf(Value value) {
  return localType(cast<RankedTensorType>(value.getType()), shardingOf(value));
}

void Partitioner::annotate(Value local, ShardingAttr sharding, RankedTensorType global) {
  setSharding(local, sharding);
  setGlobalType(local, global);
}

void Partitioner::define(Part &part, Value global, Value local) {
  part.mapping.map(global, local);
  auto type = dyn_cast<RankedTensorType>(global.getType());
  if (!type || !isa<OpResult>(local))
    return;
  ShardingAttr sharding = getSharding(global);
  if (sharding && !sharding.getWindows().empty()) { // a selection is a tensor of its own
    sharding::Layout layout = sharding::makeLayout(shardingOf(global), shapeOf(type));
    sharding = ShardingAttr::get(sharding.getMesh(), meshes.get(sharding.getMesh()),
                                 denseShardingOf(layout), global.getContext());
    type = type.clone(layout.globalShape);
  }
  annotate(local, sharding, type);
}

Value Partitioner::axisIndex(Part &part, FlatSymbolRefAttr mesh, const sharding::AxisList &axes) {
  Value &index = axisIndices[{&part, {mesh.getValue().str(), axes}}];
  if (!index) {
    OpBuilder builder = OpBuilder::atBlockBegin(&part.function.getBody().front());
    index = AxisIndexOp::create(builder, global.getLoc(), builder.getIndexType(), mesh,
                                toIR(builder.getContext(), meshes.get(mesh), axes));
  }
  return index;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> devicesOf(const sharding::Mesh &mesh) {
  return llvm::to_vector(mesh.processIds.sorted());
}

Part &Partitioner::partOf(FlatSymbolRefAttr mesh) {
  Part *&known = partsOfMeshes[mesh];
  if (known)
    return *known;
  SmallVector<int64_t> devices = devicesOf(meshes.get(mesh));
  for (auto &part : parts)
    if (part->devices == devices)
      return *(known = part.get());
  parts.push_back(std::make_unique<Part>(global.getContext(), mesh, std::move(devices)));
  return *(known = parts.back().get());
}

SmallVector<Part *> Partitioner::partsOf(Operation *op) {
  SmallVector<Part *> result;
  auto add = [&](FlatSymbolRefAttr mesh) {
    if (mesh && !llvm::is_contained(result, &partOf(mesh)))
      result.push_back(&partOf(mesh));
  };
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    add(meshOf(inner));
    if (isa<RegionBranchOpInterface>(inner)) // a value may pass through without an op on its mesh
      for (Value result : inner->getResults())
        if (ShardingAttr sharding = isa<RankedTensorType>(result.getType()) ? getSharding(result)
                                                                             : ShardingAttr())
          add(sharding.getMesh());
  });
  // In the order of creation, independent of the order of the walk.
  llvm::sort(result, [&](Part *a, Part *b) {
    auto at = [&](Part *part) {
      return llvm::find_if(parts, [&](auto &own) { return own.get() == part; }) - parts.begin();
    };
    return at(a) < at(b);
  });
  return result;
}

void Partitioner::createParts() {
  for (BlockArgument argument : global.getArguments())
    if (ShardingAttr sharding =
            isa<RankedTensorType>(argument.getType()) ? getSharding(argument) : ShardingAttr())
      partOf(sharding.getMesh());
  global.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (FlatSymbolRefAttr mesh = op == global ? FlatSymbolRefAttr() : meshOf(op))
      partOf(mesh);
  });
  if (parts.empty()) // only scalars: the first mesh runs it
    partOf(FlatSymbolRefAttr::get(meshes.begin()->first));
  for (auto &part : parts)
    findMissing(*part);
  for (auto [index, part] : llvm::enumerate(parts))
    createFunction(*part, index);
}

void Partitioner::createFunction(Part &part, unsigned index) {
  MLIRContext *context = global.getContext();
  OpBuilder builder(global);
  SmallVector<Type> inputs, outputs;
  SmallVector<unsigned> arguments, results;
  Block &body = global.getBody().front();
  auto ours = [&](Value value) {
    if (!isa<RankedTensorType>(value.getType()))
      return true; // scalars are everywhere
    return &partOf(getSharding(value).getMesh()) == &part;
  };
  for (BlockArgument argument : body.getArguments())
    if (ours(argument)) {
      bool tensor = isa<RankedTensorType>(argument.getType());
      inputs.push_back(tensor ? Type(localTypeOf(argument)) : argument.getType());
      arguments.push_back(argument.getArgNumber());
    }
  auto ret = cast<func::ReturnOp>(body.getTerminator());
  for (OpOperand &use : ret->getOpOperands()) {
    bool scalar = !isa<RankedTensorType>(use.get().getType());
    if (returnedBy(ret, use.getOperandNumber()) == &part) {
      outputs.push_back(scalar ? use.get().getType() : Type(localTypeOf(use.get())));
      results.push_back(use.getOperandNumber());
    }
  }
  std::string name = global.getSymName().str();
  part.function = func::FuncOp::create(builder, global.getLoc(),
                                       index ? name + "_" + part.mesh.getValue().str() : name,
                                       FunctionType::get(context, inputs, outputs));
  part.function->setAttr(DistDialect::kView, builder.getStringAttr("local"));
  part.function->setAttr(DistDialect::kMesh, part.mesh);
  part.function->setAttr(DistDialect::kMeshDevices, builder.getDenseI64ArrayAttr(part.devices));
  part.function->setAttr(DistDialect::kPartOf, builder.getStringAttr(name));
  if (Attribute schedule = global->getAttr(kSchedule))
    part.function->setAttr(kSchedule, schedule);
  Block *entry = part.function.addEntryBlock();
  part.builder.setInsertionPointToEnd(entry);
  auto carry = [&](NamedAttrList attributes, Type type, StringRef what, unsigned original) {
    if (!attributes.get(what))
      attributes.set(what, builder.getI64IntegerAttr(original));
    if (isa<RankedTensorType>(type))
      attributes.set(DistDialect::kGlobalType, TypeAttr::get(type));
    return attributes;
  };
  SignatureAttrs signature(part.function);
  for (auto [local, original] : llvm::enumerate(arguments)) {
    NamedAttrList &attributes = signature.ofArgument(local);
    attributes = carry(NamedAttrList(global.getArgAttrDict(original)),
                       global.getArgumentTypes()[original], DistDialect::kArgument, original);
    if (!attributes.get(DistDialect::kName) && !global.getArgAttr(original, DistDialect::kArgument))
      attributes.set(DistDialect::kName, builder.getStringAttr(argumentName(global, original)));
    part.mapping.map(body.getArgument(original), entry->getArgument(local));
  }
  for (auto [local, original] : llvm::enumerate(results)) {
    NamedAttrList &attributes = signature.ofResult(local);
    attributes = carry(NamedAttrList(global.getResultAttrDict(original)),
                       global.getResultTypes()[original], DistDialect::kResult, original);
    if (!attributes.get(DistDialect::kName))
      attributes.set(DistDialect::kName, builder.getStringAttr(resultName(global, original)));
  }
  signature.write();
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

LogicalResult Partitioner::run() {
  createParts();
  if (failed(lowerBlock(global.getBody().front()))) {
    for (auto &part : parts)
      part->function.erase();
    return failure();
  }
  std::string name = global.getSymName().str();
  global.erase();
  IRRewriter rewriter(parts.front()->function.getContext());
  for (auto &part : parts) {
    if (part == parts.front())
      part->function.setSymName(name);
    // What only the bodies of unused ops read becomes unused with them.
    while (succeeded(runRegionDCE(rewriter, part->function->getRegions()))) {
    }
  }
  return success();
}

namespace {
/// Ops created from an op belong to its micro-batch.
struct MarkListener : OpBuilder::Listener {
  explicit MarkListener(Operation *from) : from(from) {}
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    copyPipelineMarks(from, op);
  }
  Operation *from;
};
} // namespace

LogicalResult Partitioner::lowerBlock(Block &block) {
  for (Operation &op : block) {
    MarkListener listener(&op);
    if (op.hasAttr(kMicroBatch) || op.hasAttr(kBackward))
      for (auto &part : parts)
        part->builder.setListener(&listener);
    LogicalResult lowered = lower(&op);
    for (auto &part : parts)
      part->builder.setListener(nullptr);
    if (failed(lowered))
      return failure();
  }
  return success();
}

LogicalResult Partitioner::checkAvailable(Operation *op, Part &part) {
  WalkResult result =
      op->walk(
          [&](Operation *inner) {
            for (Value operand : inner->getOperands()) {
              bool inside = op->isProperAncestor(operand.getParentBlock()->getParentOp()) ||
                            operand.getParentBlock()->getParentOp() == op;
              if (!inside && !part.mapping.contains(operand)) {
                inner->emitError()
                    << "'" << inner->getName() << "' on mesh '" << part.mesh.getValue()
                    << "' uses a scalar that another mesh computes; reshard the tensor that it "
                    << "comes from";
                return WalkResult::interrupt();
              }
            }
            return WalkResult::advance();
          });
  return failure(result.wasInterrupted());
}

LogicalResult Partitioner::lower(Operation *op) {
  if (auto controlFlow = dyn_cast<RegionBranchOpInterface>(op))
    return lowerControlFlow(controlFlow);
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return lowerReturn(ret);
  if (isControlFlowEnd(op))
    return success(); // its loop or branch emits it
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return lowerReshard(reshard);

  FlatSymbolRefAttr mesh = meshOf(op);
  if (!mesh) {
    // Each part with the operands computes a scalar.
    for (auto &part : parts)
      if (llvm::all_of(op->getOperands(),
                       [&](Value operand) { return part->mapping.contains(operand); }))
        part->builder.clone(*op, part->mapping);
    return success();
  }
  Part &part = partOf(mesh);
  if (failed(checkAvailable(op, part)))
    return failure();
  return lowerOnTensors(op, part);
}

LogicalResult Partitioner::lowerReturn(func::ReturnOp op) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    if (!returnedBy(op, index))
      return op.emitError() << "returns a scalar, result '" << resultName(global, index)
                            << "', that is made on several meshes; return it as a tensor";
  for (auto &part : parts) {
    SmallVector<Value> values;
    for (auto [index, operand] : llvm::enumerate(op.getOperands()))
      if (returnedBy(op, index) == part.get())
        values.push_back(part->mapping.lookup(operand));
    func::ReturnOp::create(part->builder, op.getLoc(), values);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Without a mesh the global view is the local view of one device.
static void markSingleDevice(func::FuncOp function) {
  Builder builder(function.getContext());
  function->setAttr(DistDialect::kView, builder.getStringAttr("local"));
  function->setAttr(DistDialect::kMeshDevices, builder.getDenseI64ArrayAttr({0}));
  function->setAttr(DistDialect::kPartOf, function.getSymNameAttr());
  SignatureAttrs signature(function);
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    NamedAttrList &attributes = signature.ofArgument(index);
    attributes.set(DistDialect::kArgument, builder.getI64IntegerAttr(index));
    attributes.set(DistDialect::kName, builder.getStringAttr(argumentName(function, index)));
  }
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    NamedAttrList &attributes = signature.ofResult(index);
    attributes.set(DistDialect::kResult, builder.getI64IntegerAttr(index));
    attributes.set(DistDialect::kName, builder.getStringAttr(resultName(function, index)));
  }
  signature.write();
}

namespace {
struct DistPartition : dist::impl::DistPartitionBase<DistPartition> {
  using DistPartitionBase::DistPartitionBase;

  void runOnOperation() override {
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), objective, topology);
    if (failed(cost))
      return signalPassFailure();
    MeshTable meshes(getOperation());
    for (func::FuncOp function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (isLocalView(function))
        continue;
      if (meshes.empty())
        markSingleDevice(function);
      else if (failed(checkShardingsDecided(function, meshes)) ||
               failed(Partitioner(function, meshes, *cost, remarks).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
