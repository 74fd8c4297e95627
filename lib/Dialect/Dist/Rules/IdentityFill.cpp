//===- IdentityFill.cpp - Tensors of a reduction's identity ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

bool dist::isIdentityFill(Value value, sharding::ReduceKind kind) {
  while (auto slice = value.getDefiningOp<SliceOp>())
    value = slice->getOperand(0);
  Attribute constant;
  if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
    if (!matchPattern(fill.getInputs()[0], m_Constant(&constant)))
      return false;
  } else if (auto op = value.getDefiningOp<arith::ConstantOp>()) {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat)
      return false;
    constant = splat.getSplatValue<Attribute>();
  } else {
    return false;
  }
  if (auto number = dyn_cast<FloatAttr>(constant)) {
    llvm::APFloat v = number.getValue();
    switch (kind) {
    case sharding::ReduceKind::sum:
      return v.isZero();
    case sharding::ReduceKind::avg:
      return false;
    case sharding::ReduceKind::prod:
      return v.isExactlyValue(1.0);
    case sharding::ReduceKind::max:
      return v.isInfinity() && v.isNegative();
    case sharding::ReduceKind::min:
      return v.isInfinity() && !v.isNegative();
    }
  }
  auto number = dyn_cast<IntegerAttr>(constant);
  if (!number)
    return false;
  llvm::APInt v = number.getValue();
  bool isBool = v.getBitWidth() == 1; // or, and: max and min of unsigned bits
  switch (kind) {
  case sharding::ReduceKind::sum:
    return v.isZero();
  case sharding::ReduceKind::avg:
    return false;
  case sharding::ReduceKind::prod:
    return v.isOne();
  case sharding::ReduceKind::max:
    return isBool ? v.isZero() : v.isMinSignedValue();
  case sharding::ReduceKind::min:
    return isBool ? v.isOne() : v.isMaxSignedValue();
  }
  return false;
}
