//===- InPlace.cpp - Whether a kernel may write over an input --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InPlace.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera;

bool codegen::canReuseInput(func::FuncOp kernel, unsigned input, unsigned output) {
  Block &body = kernel.front();
  BlockArgument read = body.getArgument(input), written = body.getArgument(output);
  if (read.getType() != written.getType() || !read.hasOneUse() || !written.hasOneUse())
    return false;
  OpOperand &use = *read.use_begin(), &destination = *written.use_begin();
  auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
  if (!op || op != destination.getOwner() || op.getNumParallelLoops() != op.getNumLoops())
    return false;
  return op.getMatchingIndexingMap(&use) == op.getMatchingIndexingMap(&destination) &&
         !op.payloadUsesValueFromOperand(&destination);
}
