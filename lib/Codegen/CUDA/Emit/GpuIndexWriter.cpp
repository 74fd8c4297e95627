//===- GpuIndexWriter.cpp - Index arithmetic of a launch ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuIndexWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::codegen {

Value IndexWriter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value IndexWriter::add(Value left, Value right) {
  if (!left || !right)
    return left ? left : right;
  return arith::AddIOp::create(b, loc, left, right, arith::IntegerOverflowFlags::nsw);
}

Value IndexWriter::add(Value left, int64_t right) {
  return right == 0 ? left : add(left, constant(right));
}

Value IndexWriter::multiply(Value left, int64_t right) {
  if (right == 1)
    return left;
  return arith::MulIOp::create(b, loc, left, constant(right), arith::IntegerOverflowFlags::nsw);
}

template <typename Op> Value IndexWriter::combine(Value left, int64_t right) {
  if (wide)
    return Op::create(b, loc, left, constant(right));
  Value narrow = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), left);
  Value result = Op::create(b, loc, narrow, arith::ConstantIntOp::create(b, loc, right, 32));
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), result);
}

Value IndexWriter::divide(Value left, int64_t right) {
  return right == 1 ? left : combine<arith::DivUIOp>(left, right);
}

Value IndexWriter::remainder(Value left, int64_t right) {
  return right == 1 ? constant(0) : combine<arith::RemUIOp>(left, right);
}

} // namespace tessera::codegen
