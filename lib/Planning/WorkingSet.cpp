//===- WorkingSet.cpp - Memory of an op while it runs ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expands the op, as partitioning does, into a function of its own, whose memory
// Liveness computes.
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/WorkingSet.h"

#include "tessera/Planning/Liveness.h"
#include "tessera/Planning/MemoryProfile.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

bool dist::hasWorkingSet(Operation *op) {
  return isa<linalg::AggregatedOpInterface>(op) && !isa<linalg::LinalgDialect>(op->getDialect());
}

double dist::workingBytes(Operation *op, TypeRange localTypes) {
  unsigned numOperands = op->getNumOperands();
  OpBuilder builder(op->getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, op->getLoc());
  builder.setInsertionPointToStart(module->getBody());
  auto function = func::FuncOp::create(builder, op->getLoc(), "alone",
                                       builder.getFunctionType(localTypes.take_front(numOperands),
                                                               localTypes.drop_front(numOperands)));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  IRMapping mapping;
  mapping.map(op->getOperands(), block->getArguments());
  Operation *copy = builder.clone(*op, mapping);
  for (auto [result, type] :
       llvm::zip_equal(copy->getResults(), localTypes.drop_front(numOperands)))
    result.setType(type);
  builder.setInsertionPoint(copy);
  FailureOr<SmallVector<Value>> results =
      cast<linalg::AggregatedOpInterface>(copy).decomposeOperation(builder);
  if (failed(results))
    return 0;
  func::ReturnOp::create(builder, op->getLoc(), *results);
  copy->erase();
  Liveness lives(function);
  MemoryProfile profile(lives.end());
  double made = 0;
  forEachOwn(function, lives, [&](Value value, Liveness::LiveRange life, double bytes) {
    if (isa<BlockArgument>(value) && life.kind != Liveness::Kind::copy)
      return;
    profile.add(life.from, life.to, bytes);
    if (llvm::is_contained(*results, value))
      made += bytes;
  });
  return std::max(0.0, profile.peak() - made);
}
