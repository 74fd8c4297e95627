//===- ElementBuilder.h - Builder of scalar and vector formulas -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_ELEMENTBUILDER_H
#define TESSERA_LIB_CODEGEN_KERNELS_ELEMENTBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tessera::codegen {

/// Builds formulas on values of one floating-point type, or vectors of it. Integers are as wide as
/// the floats.
class ElementBuilder {
public:
  using Value = mlir::Value;

  ElementBuilder(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type)
      : b(b), loc(loc), type(type),
        integers(like(b.getIntegerType(mlir::getElementTypeOrSelf(type).getIntOrFloatBitWidth()))) {
  }

  /// The type of `element`, as a vector if this builds vectors.
  mlir::Type like(mlir::Type element) const {
    auto vector = mlir::dyn_cast<mlir::VectorType>(type);
    return vector ? mlir::Type(vector.clone(element)) : element;
  }

  Value c(double value) {
    return constant(type, b.getFloatAttr(mlir::getElementTypeOrSelf(type), value));
  }
  Value n(int64_t value) {
    return constant(integers, b.getIntegerAttr(mlir::getElementTypeOrSelf(integers), value));
  }
  Value add(Value x, Value y) { return mlir::arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return mlir::arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return mlir::arith::DivFOp::create(b, loc, x, y); }
  Value neg(Value x) { return mlir::arith::NegFOp::create(b, loc, x); }
  Value fma(Value x, Value y, Value z) { return mlir::math::FmaOp::create(b, loc, x, y, z); }
  Value abs(Value x) { return mlir::math::AbsFOp::create(b, loc, x); }
  Value sqrt(Value x) { return mlir::math::SqrtOp::create(b, loc, x); }
  Value floor(Value x) { return mlir::math::FloorOp::create(b, loc, x); }
  Value nearest(Value x) { return mlir::math::RoundEvenOp::create(b, loc, x); }
  /// The magnitude of `x` with the sign of `of`.
  Value sign(Value x, Value of) { return mlir::math::CopySignOp::create(b, loc, x, of); }

  Value is(mlir::arith::CmpFPredicate p, Value x, Value y) {
    return mlir::arith::CmpFOp::create(b, loc, p, x, y);
  }
  Value less(Value x, Value y) { return is(mlir::arith::CmpFPredicate::OLT, x, y); }
  Value equal(Value x, Value y) { return is(mlir::arith::CmpFPredicate::OEQ, x, y); }
  Value isNaN(Value x) { return is(mlir::arith::CmpFPredicate::UNO, x, x); }
  Value both(Value p, Value q) { return mlir::arith::AndIOp::create(b, loc, p, q); }
  Value either(Value p, Value q) { return mlir::arith::OrIOp::create(b, loc, p, q); }
  Value pick(Value condition, Value x, Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }

  Value bits(Value x) { return mlir::arith::BitcastOp::create(b, loc, integers, x); }
  Value floats(Value n) { return mlir::arith::BitcastOp::create(b, loc, type, n); }
  Value toInteger(Value x) { return mlir::arith::FPToSIOp::create(b, loc, integers, x); }
  Value toFloat(Value n) { return mlir::arith::SIToFPOp::create(b, loc, type, n); }
  Value plus(Value m, Value n) { return mlir::arith::AddIOp::create(b, loc, m, n); }
  Value minus(Value m, Value n) { return mlir::arith::SubIOp::create(b, loc, m, n); }
  Value mask(Value m, Value n) { return mlir::arith::AndIOp::create(b, loc, m, n); }
  Value join(Value m, Value n) { return mlir::arith::OrIOp::create(b, loc, m, n); }
  Value left(Value m, int64_t by) { return mlir::arith::ShLIOp::create(b, loc, m, n(by)); }
  Value right(Value m, int64_t by) { return mlir::arith::ShRUIOp::create(b, loc, m, n(by)); }
  Value rightSigned(Value m, int64_t by) { return mlir::arith::ShRSIOp::create(b, loc, m, n(by)); }
  Value compare(mlir::arith::CmpIPredicate p, Value m, Value n) {
    return mlir::arith::CmpIOp::create(b, loc, p, m, n);
  }

  /// a0 + a1 x + a2 x^2 + ... by Horner's rule.
  Value series(Value x, llvm::ArrayRef<double> a) {
    Value sum = c(a.back());
    for (double coefficient : llvm::reverse(a.drop_back()))
      sum = fma(sum, x, c(coefficient));
    return sum;
  }

protected:
  Value constant(mlir::Type t, mlir::TypedAttr value) {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(t))
      value = mlir::DenseElementsAttr::get(vector, mlir::Attribute(value));
    return mlir::arith::ConstantOp::create(b, loc, value);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type, integers;
};

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_ELEMENTBUILDER_H
