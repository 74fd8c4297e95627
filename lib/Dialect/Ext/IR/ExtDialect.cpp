//===- ExtDialect.cpp - Tensor operations beyond affine loops -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace tessera::ext;

#include "tessera/Dialect/Ext/IR/ExtDialect.cpp.inc"

namespace {
/// Functions that hold these ops, and the ops' own regions, can be inlined.
struct ExtInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const override { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const override { return true; }
};
} // namespace

void ExtDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tessera/Dialect/Ext/IR/ExtOps.cpp.inc"
      >();
  addInterfaces<ExtInlinerInterface>();
}
