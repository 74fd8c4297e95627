//===- GpuFormula.h - Functions of f64, written out -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUFORMULA_H
#define TESSERA_CODEGEN_CUDA_GPUFORMULA_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tessera::codegen {

/// f64 arithmetic on scalars or vectors.
class Formula {
public:
  Formula(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type)
      : b(b), loc(loc), type(type), integers(like(b.getI64Type())) {}

  mlir::Value c(double value) { return constant(type, b.getF64FloatAttr(value)); }
  mlir::Value n(int64_t value) { return constant(integers, b.getI64IntegerAttr(value)); }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddFOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubFOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulFOp::create(b, loc, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivFOp::create(b, loc, x, y);
  }
  mlir::Value neg(mlir::Value x) { return mlir::arith::NegFOp::create(b, loc, x); }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) {
    return mlir::math::FmaOp::create(b, loc, x, y, z);
  }
  mlir::Value abs(mlir::Value x) { return mlir::math::AbsFOp::create(b, loc, x); }
  mlir::Value sqrt(mlir::Value x) { return mlir::math::SqrtOp::create(b, loc, x); }
  mlir::Value floor(mlir::Value x) { return mlir::math::FloorOp::create(b, loc, x); }
  mlir::Value nearest(mlir::Value x) { return mlir::math::RoundEvenOp::create(b, loc, x); }
  mlir::Value sign(mlir::Value x, mlir::Value of) {
    return mlir::math::CopySignOp::create(b, loc, x, of);
  }
  mlir::Value is(mlir::arith::CmpFPredicate p, mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, p, x, y);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return is(mlir::arith::CmpFPredicate::OLT, x, y);
  }
  mlir::Value equal(mlir::Value x, mlir::Value y) {
    return is(mlir::arith::CmpFPredicate::OEQ, x, y);
  }
  mlir::Value isNaN(mlir::Value x) { return is(mlir::arith::CmpFPredicate::UNO, x, x); }
  mlir::Value both(mlir::Value p, mlir::Value q) {
    return mlir::arith::AndIOp::create(b, loc, p, q);
  }
  mlir::Value pick(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  mlir::Value bits(mlir::Value x) { return mlir::arith::BitcastOp::create(b, loc, integers, x); }
  mlir::Value floats(mlir::Value n) { return mlir::arith::BitcastOp::create(b, loc, type, n); }
  mlir::Value toInteger(mlir::Value x) {
    return mlir::arith::FPToSIOp::create(b, loc, integers, x);
  }
  mlir::Value toFloat(mlir::Value n) { return mlir::arith::SIToFPOp::create(b, loc, type, n); }

  // GpuFormula.cpp: exponential and logarithm by argument reduction and a series, and what is made
  // of these two
  mlir::Value series(mlir::Value x, llvm::ArrayRef<double> a);
  mlir::Value exp(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value sinh(mlir::Value x);
  mlir::Value cosh(mlir::Value x);
  mlir::Value asinh(mlir::Value x);
  mlir::Value acosh(mlir::Value x);
  mlir::Value atanh(mlir::Value x);
  mlir::Value cbrt(mlir::Value x);
  mlir::Value pow(mlir::Value x, mlir::Value y);

  // GpuAngles.cpp: functions of angles, and the error function
  mlir::Value sine(mlir::Value x, int64_t shift);
  mlir::Value atan(mlir::Value x);
  mlir::Value atan2(mlir::Value y, mlir::Value x);
  mlir::Value cosineOf(mlir::Value x);
  mlir::Value erf(mlir::Value x, bool complement);

private:
  mlir::Type like(mlir::Type element) {
    auto vector = llvm::dyn_cast<mlir::VectorType>(type);
    return vector ? mlir::Type(vector.clone(element)) : element;
  }
  mlir::Value constant(mlir::Type t, mlir::TypedAttr value) {
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(t))
      value = mlir::DenseElementsAttr::get(vector, mlir::Attribute(value));
    return mlir::arith::ConstantOp::create(b, loc, value);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type, integers;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUFORMULA_H
