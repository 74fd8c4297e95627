//===- Pipeline.cpp - Micro-batches, stages and their segments ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/Pipeline.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

#define GET_OP_CLASSES
#include "tessera/Dialect/Dist/IR/DistPipeline.cpp.inc"

LogicalResult SegmentOp::verify() {
  if (!llvm::is_contained({kForwardPass, kBackwardPass, kWeightPass, kUpdatePass}, getPass()))
    return emitOpError() << "has pass '" << getPass()
                         << "'; passes are forward, backward, weight, update";
  if (static_cast<int64_t>(getMicroBatch()) < 0 || static_cast<int64_t>(getStage()) < 0)
    return emitOpError() << "has a negative micro-batch or stage; both count from 0";
  return success();
}

void dist::copyPipelineMarks(Operation *from, Operation *to) {
  for (StringRef name : {kMicroBatch, kBackward})
    if (Attribute mark = from->getAttr(name); mark && !to->hasAttr(name))
      to->setAttr(name, mark);
}

std::optional<LogicalResult> dist::verifyPipelineMark(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kMicroBatch) {
    auto number = dyn_cast<IntegerAttr>(value);
    if (!number || !number.getType().isSignlessInteger(64) || number.getInt() < 0)
      return op->emitError() << "'" << name << "' is " << value
                             << "; expected the number of a micro-batch, an i64 from 0";
    return success();
  }
  if (name == kBackward) {
    if (!isa<UnitAttr>(value))
      return op->emitError() << "'" << name << "' is " << value << "; expected a unit attribute";
    return success();
  }
  if (name == kSchedule) {
    if (!isa<FunctionOpInterface>(op) || !isa<StringAttr>(value))
      return op->emitError() << "'" << name << "' must be the name of a schedule, on a "
                             << "function, got " << value;
    return success();
  }
  if (name == "dist.rolled_pipelines") { // the driver writes it, for reports
    auto list = dyn_cast<ArrayAttr>(value);
    if (!isa<ModuleOp>(op) || !list || !llvm::all_of(list, llvm::IsaPred<DictionaryAttr>))
      return op->emitError() << "'" << name << "' must be a list of dictionaries, on a module, got "
                             << value;
    return success();
  }
  return std::nullopt;
}
