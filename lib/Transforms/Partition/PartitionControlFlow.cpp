//===- PartitionControlFlow.cpp - Loops and branches, part by part --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop over tensors of two meshes becomes a loop in each of their functions. All are opened, then
// the body is lowered once, each op into its parts, then all are closed. RegionBranchOpInterface
// maps operands to arguments and results; a part keeps only its own values.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "tessera/Dialect/Dist/IR/ValueFlow.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

SmallVector<unsigned> Partitioner::keptBy(Part &part, ValueRange values) {
  SmallVector<unsigned> result;
  for (auto [index, value] : llvm::enumerate(values))
    if (has(part, value))
      result.push_back(index);
  return result;
}

FailureOr<SmallVector<Part *>> Partitioner::activeParts(Operation *op, ValueRange controlValues) {
  SmallVector<Part *> withTensors = partsOf(op), result;
  auto outer = executed.find(op->getParentOp());
  auto comesTo = [&](Part &part) {
    return outer == executed.end() || llvm::is_contained(outer->second, &part);
  };
  for (auto &part : parts) {
    auto isOurScalar = [&](Value value) {
      return !isa<RankedTensorType>(value.getType()) && has(*part, value);
    };
    bool hasControls = llvm::all_of(controlValues, [&](Value value) { return has(*part, value); });
    if (llvm::is_contained(withTensors, part.get())) {
      if (!hasControls)
        return op->emitError()
               << "'" << op->getName() << "' on mesh '" << part->mesh.getValue()
               << "' is controlled by a scalar that another mesh computes; reshard the "
               << "tensor that it comes from";
      result.push_back(part.get());
    } else if (hasControls && comesTo(*part) && llvm::any_of(op->getResults(), isOurScalar)) {
      result.push_back(part.get());
    }
  }
  executed[op] = result;
  return result;
}

Type Partitioner::typeIn(Value value) {
  return isa<RankedTensorType>(value.getType()) ? Type(localTypeOf(value)) : value.getType();
}

SmallVector<Value> Partitioner::operandsIn(Part &part, Operation *op) {
  SmallVector<Value> result;
  for (OpOperand &use : op->getOpOperands()) {
    SmallVector<Value, 2> receivers = receiversOf(use);
    if (receivers.empty() || has(part, receivers.front()))
      result.push_back(part.mapping.lookup(use.get()));
  }
  return result;
}

Operation *Partitioner::openControlFlow(Part &part, Operation *op) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operandsIn(part, op));
  SmallVector<unsigned> kept = keptBy(part, op->getResults());
  for (unsigned index : kept)
    state.addTypes(typeIn(op->getResult(index)));
  for (NamedAttribute attribute : op->getAttrs())
    if (!isa_and_nonnull<DistDialect>(attribute.getNameDialect()))
      state.attributes.push_back(attribute);
  if (auto shardings = op->getAttrOfType<ArrayAttr>(DistDialect::kBeforeShardings)) {
    auto before = llvm::map_to_vector(keptBy(part, op->getRegion(0).getArguments()),
                                      [&](unsigned index) { return shardings[index]; });
    state.addAttribute(DistDialect::kBeforeShardings, part.builder.getArrayAttr(before));
  }
  for (unsigned region = 0; region < op->getNumRegions(); ++region)
    state.addRegion();
  Operation *local = part.builder.create(state);
  for (auto [result, index] : llvm::zip_equal(local->getResults(), kept))
    define(part, op->getResult(index), result);
  return local;
}

void Partitioner::openRegion(Part &part, Region &from, Region &to) {
  Block *block = part.builder.createBlock(&to);
  for (BlockArgument argument : from.getArguments())
    if (has(part, argument))
      part.mapping.map(argument, block->addArgument(typeIn(argument), argument.getLoc()));
}

LogicalResult Partitioner::lowerControlFlow(RegionBranchOpInterface op) {
  SmallVector<Value> controlValues; // conditions and bounds
  auto addControlValues = [&](Operation *reader) {
    for (OpOperand &use : reader->getOpOperands())
      if (receiversOf(use).empty())
        controlValues.push_back(use.get());
  };
  addControlValues(op);
  for (Region &region : op->getRegions())
    if (!region.empty())
      addControlValues(region.front().getTerminator());
  FailureOr<SmallVector<Part *>> active = activeParts(op, controlValues);
  if (failed(active))
    return failure();

  SmallVector<std::pair<Part *, Operation *>> opened;
  for (Part *part : *active)
    opened.push_back({part, openControlFlow(*part, op)});
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    for (auto [part, local] : opened)
      openRegion(*part, region, local->getRegion(region.getRegionNumber()));
    if (failed(lowerBlock(region.front())))
      return failure();
    Operation *end = region.front().getTerminator();
    for (auto [part, local] : opened)
      part->builder.create(OperationState(end->getLoc(), end->getName(), operandsIn(*part, end),
                                          TypeRange(), end->getAttrs()));
  }
  for (auto [part, local] : opened)
    part->builder.setInsertionPointAfter(local);
  return success();
}
