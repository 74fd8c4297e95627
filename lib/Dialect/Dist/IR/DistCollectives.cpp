//===- DistCollectives.cpp - Meaning and rules of the collectives ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CollectiveRules.h"
#include "UniformControl.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

//===----------------------------------------------------------------------===//
// CollectiveOpInterface
//===----------------------------------------------------------------------===//

FailureOr<std::pair<sharding::Layout, sharding::Layout>>
CollectiveOpInterface::getLayouts(const sharding::Mesh &mesh, unsigned index) {
  Operation *op = getOperation();
  TensorSharding source, target;
  std::vector<int64_t> shape;
  if (ArrayAttr sources = getSourcesAttr()) {
    Type global = cast<TypeAttr>(getGlobalTypesAttr()[index]).getValue();
    auto emitError = [&]() { return op->emitOpError(); };
    // An exchange may lead to another mesh over the same devices.
    auto targetAttr = cast<ShardingAttr>(getTargetsAttr()[index]);
    std::optional<sharding::Mesh> other;
    if (targetAttr.getMesh() != getMeshAttr()) {
      ProcessMeshOp declared = lookupMesh(op, targetAttr.getMesh());
      if (!declared) // (C1)
        return op->emitOpError() << "mesh '" << targetAttr.getMesh().getValue()
                                 << "' is not declared";
      other = declared.getMesh();
    }
    auto before = cast<ShardingAttr>(sources[index]).resolve(mesh, global, emitError);
    auto after = targetAttr.resolve(other ? *other : mesh, global, emitError);
    if (failed(before) || failed(after))
      return failure();
    source = *before;
    target = *after;
    shape = shapeOf(global);
  } else if (failed(getImpliedMove(mesh, index, source, target, shape))) {
    return failure();
  }
  return std::pair(sharding::makeLayout(source, shape), sharding::makeLayout(target, shape));
}

int64_t CollectiveOpInterface::getGroupSize(const sharding::Mesh &mesh) {
  AxisListAttr axes = getGroupAxes();
  if (!axes)
    return mesh.numDevices();
  FailureOr<sharding::AxisList> list =
      resolveAxes(axes, mesh, [&]() { return getOperation()->emitOpError(); });
  return succeeded(list) ? sharding::sizeOf(*list) : 1;
}

FailureOr<sharding::Traffic> CollectiveOpInterface::getTraffic(const sharding::Mesh &mesh) {
  std::vector<sharding::MovedTensor> tensors;
  std::optional<sharding::Mesh> other;
  for (auto [index, operand] : llvm::enumerate(getOperation()->getOperands())) {
    auto layouts = getLayouts(mesh, index);
    if (failed(layouts))
      return failure();
    Type element = cast<RankedTensorType>(operand.getType()).getElementType();
    if (ArrayAttr targets = getTargetsAttr())
      if (auto name = cast<ShardingAttr>(targets[index]).getMesh(); name != getMeshAttr())
        other = lookupMesh(getOperation(), name).getMesh();
    tensors.push_back({bytesPerElement(element), layouts->first, layouts->second});
  }
  return sharding::trafficOf(getKind(), getGroupSize(mesh), mesh, other ? *other : mesh, tensors);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult verifyDimension(Operation *op, StringRef what, int64_t dim) {
  for (Value operand : op->getOperands()) {
    int64_t rank = cast<RankedTensorType>(operand.getType()).getRank();
    if (dim < 0 || dim >= rank) // (C2)
      return op->emitOpError() << what << " = " << dim << " of a rank-" << rank << " tensor "
                               << operand.getType() << "; it must be in [0, " << rank << ")";
  }
  return success();
}

/// Checks that positions in attributes are within the group.
static LogicalResult verifyPositions(CollectiveOpInterface op, int64_t groupSize) {
  auto root = op->getAttrOfType<IntegerAttr>("root");
  if (root && (root.getInt() < 0 || root.getInt() >= groupSize)) // (C8)
    return op->emitOpError() << "root = " << root.getInt() << " of a group of " << groupSize
                             << " devices; a root must be in [0, " << groupSize << ")";
  auto permutation = op->getAttrOfType<DenseI64ArrayAttr>("permutation");
  if (!permutation)
    return success();
  if (permutation.size() != groupSize) // (C8)
    return op->emitOpError() << "permutes " << permutation.size() << " devices of a group of "
                             << groupSize << "; give one entry per device";
  for (int64_t position : permutation.asArrayRef())
    if (position < 0 || position >= groupSize) // (C8)
      return op->emitOpError() << "permutation names device " << position << " of a group of "
                               << groupSize << "; positions must be in [0, " << groupSize << ")";
  return success();
}

LogicalResult dist::verifyCollective(CollectiveOpInterface op) {
  FlatSymbolRefAttr name = op.getMeshAttr();
  ProcessMeshOp declared = lookupMesh(op, name);
  if (!declared) // (C1)
    return op->emitOpError() << "mesh '" << name.getValue()
                             << "' is not declared; add dist.process_mesh @" << name.getValue();
  if (failed(declared.verify()))
    return failure();
  sharding::Mesh mesh = declared.getMesh();
  if (AxisListAttr axes = op.getGroupAxes()) // (C1)
    if (failed(resolveAxes(axes, mesh, [&]() { return op->emitOpError(); })))
      return failure();
  if (failed(verifyPositions(op, op.getGroupSize(mesh))))
    return failure();
  if (op->getNumOperands() == 0 || op->getNumOperands() != op->getNumResults()) // (C3)
    return op->emitOpError() << "has " << op->getNumOperands() << " operands and "
                             << op->getNumResults() << " results; expected one result per operand";
  // Operands of a fused collective may have different dimensions, which their layouts define.
  for (StringRef attribute : {"dim", "split_dim", "concat_dim"})
    if (auto dim = op->getAttrOfType<IntegerAttr>(attribute); dim && !op.getSourcesAttr())
      if (failed(verifyDimension(op, attribute, dim.getInt())))
        return failure();
  if (op.getReductionKind() == ReduceKind::avg) // (C4)
    for (Value operand : op->getOperands())
      if (!isa<FloatType>(cast<RankedTensorType>(operand.getType()).getElementType()))
        return op->emitOpError() << "averages " << operand.getType()
                                 << "; integers have no average";
  ArrayAttr sources = op.getSourcesAttr(), targets = op.getTargetsAttr();
  ArrayAttr globals = op.getGlobalTypesAttr();
  if (sources || targets || globals) { // (C3)
    auto good = [&](ArrayAttr list, auto isOne) {
      return list && list.size() == op->getNumOperands() && llvm::all_of(list, isOne);
    };
    auto isSharding = [](Attribute attr) { return isa<ShardingAttr>(attr); };
    auto isTensor = [](Attribute attr) {
      auto type = dyn_cast<TypeAttr>(attr);
      return type && isa<RankedTensorType>(type.getValue());
    };
    if (!good(sources, isSharding) || !good(targets, isSharding) || !good(globals, isTensor))
      return op->emitOpError()
             << "needs sources, targets and global_types together, with one entry per operand";
  }
  for (auto [index, operand, result] : llvm::enumerate(op->getOperands(), op->getResults())) {
    auto layouts = op.getLayouts(mesh, index);
    if (failed(layouts))
      return failure();
    auto check = [&](Type type, const sharding::Layout &layout, StringRef what) -> LogicalResult {
      auto tensor = cast<RankedTensorType>(type);
      if (tensor.getShape() != ArrayRef<int64_t>(layout.localShape())) // (C3)
        return op->emitOpError() << what << " " << index << " is " << type
                                 << ", but its layout over mesh '" << mesh.name << "' has shape "
                                 << RankedTensorType::get(layout.localShape(),
                                                          tensor.getElementType());
      return success();
    };
    if (failed(check(operand.getType(), layouts->first, "operand")) ||
        failed(check(result.getType(), layouts->second, "result")))
      return failure();
    if (cast<RankedTensorType>(operand.getType()).getElementType() !=
        cast<RankedTensorType>(result.getType()).getElementType())
      return op->emitOpError() << "changes the element type from " << operand.getType() << " to "
                               << result.getType() << "";
  }
  return verifyUniformControl(op);
}

static LogicalResult verifyTransfer(Operation *op, FlatSymbolRefAttr peer, ShardingAttr source,
                                    ShardingAttr target, Type global, Type local, bool sends) {
  for (ShardingAttr sharding : {source, target}) {
    ProcessMeshOp mesh = lookupMesh(op, sharding.getMesh());
    if (!mesh) // (C1)
      return op->emitOpError() << "mesh '" << sharding.getMesh().getValue() << "' is not declared";
    auto resolved = sharding.resolve(mesh.getMesh(), global, [&]() { return op->emitOpError(); });
    if (failed(resolved))
      return failure();
    if ((sharding == source) == sends &&
        localType(cast<RankedTensorType>(global), *resolved) != local) // (C3)
      return op->emitOpError() << "moves " << local << ", but the layout has "
                               << localType(cast<RankedTensorType>(global), *resolved);
  }
  if ((sends ? target : source).getMesh() != peer)
    return op->emitOpError() << "names mesh '" << peer.getValue() << "', its sharding mesh '"
                             << (sends ? target : source).getMesh().getValue() << "'";
  return verifyUniformControl(op);
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTransfer(*this, getMeshAttr(), getSource(), getTarget(), getGlobalType(),
                        getOperand().getType(), true);
}

LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTransfer(*this, getMeshAttr(), getSource(), getTarget(), getGlobalType(),
                        getResult().getType(), false);
}

//===----------------------------------------------------------------------===//
// Canonicalization
//===----------------------------------------------------------------------===//

LogicalResult AllReduceOp::canonicalize(AllReduceOp op, PatternRewriter &rewriter) {
  // A reduction whose results are all cut by a slice over the same axes is a reduce-scatter.
  if (op->getNumOperands() != 1 || !op->getResult(0).hasOneUse())
    return rewriter.notifyMatchFailure(op, "its result is used whole, or it is fused");
  auto slice = dyn_cast<SliceOp>(*op->getResult(0).user_begin());
  if (!slice || slice->getNumOperands() != 1 || slice.getMeshAttr() != op.getMeshAttr() ||
      slice.getAxesAttr() != op.getAxesAttr())
    return rewriter.notifyMatchFailure(op, "no slice over the same axes follows");
  if (static_cast<bool>(op.getSourcesAttr()) != static_cast<bool>(slice.getTargetsAttr()))
    return rewriter.notifyMatchFailure(op, "only one of the two states its layouts");
  auto scatter = ReduceScatterOp::create(
      rewriter, rewriter.getFusedLoc({op.getLoc(), slice.getLoc()}), slice->getResultTypes(),
      op->getOperands(), op.getMeshAttr(), op.getAxesAttr(), slice.getDimAttr(),
      op.getReductionAttr(), op.getSourcesAttr(), slice.getTargetsAttr(), op.getGlobalTypesAttr());
  for (NamedAttribute attribute : slice->getDiscardableAttrs())
    scatter->setAttr(attribute.getName(), attribute.getValue());
  if (Attribute reason = op->getAttr(DistDialect::kReason))
    scatter->setAttr(DistDialect::kReason, reason);
  rewriter.replaceOp(slice, scatter);
  rewriter.eraseOp(op);
  return success();
}
