//===- MeshAssignment.cpp - The mesh of each value ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/MeshAssignment.h"
#include "tessera/Planning/MeshClasses.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

FailureOr<MeshAssignment> MeshAssignment::compute(func::FuncOp function, const MeshTable &meshes) {
  MeshAssignment result;
  if (FlatSymbolRefAttr single = meshes.single()) { // a single mesh
    result.single = single;
    result.results.assign(function.getNumResults(), single);
    return result;
  }
  MeshClasses classes;
  if (failed(classify(function, classes, [](Value) { return false; })))
    return failure();
  FlatSymbolRefAttr fallback =
      meshes.empty() ? FlatSymbolRefAttr() : FlatSymbolRefAttr::get(meshes.begin()->first);
  auto assign = [&](Value value) {
    if (!isa<RankedTensorType>(value.getType()))
      return;
    FlatSymbolRefAttr mesh = classes.meshOf(value);
    result.assigned[value] = mesh ? mesh : fallback;
  };
  for (BlockArgument argument : function.getArguments())
    assign(argument);
  function.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), assign);
    if (!isa<linalg::LinalgOp>(op))
      for (Region &region : op->getRegions())
        for (Block &block : region)
          llvm::for_each(block.getArguments(), assign);
  });
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    result.results.push_back(isa<RankedTensorType>(value.getType()) ? result.assigned[value]
                                                                    : FlatSymbolRefAttr());
  return result;
}

FlatSymbolRefAttr MeshAssignment::lookup(Value value) const {
  return single ? single : assigned.lookup(value);
}
