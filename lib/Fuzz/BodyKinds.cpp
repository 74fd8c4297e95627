//===- BodyKinds.cpp - Bodies with branches, pads with bodies -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera::fuzz;

/// `condition ? then() : otherwise` with `then` evaluated inside an arm.
static Value branch(OpBuilder &b, Location loc, Value condition, Value otherwise,
                    llvm::function_ref<Value(OpBuilder &)> then) {
  auto op = scf::IfOp::create(
      b, loc, condition,
      [&](OpBuilder &inner, Location at) { scf::YieldOp::create(inner, at, then(inner)); },
      [&](OpBuilder &inner, Location at) { scf::YieldOp::create(inner, at, otherwise); });
  return op.getResult(0);
}

/// 12 / x where x is not 0: outside of the arm the division would fail.
static bool divide(ProgramBuilder &p) {
  Entry x = p.any(1, 3, [](const Entry &entry) {
    return entry.element().isInteger(32) || entry.element().isInteger(64);
  });
  if (!x.value)
    return false;
  AffineMap identity = p.b.getMultiDimIdentityMap(x.rank());
  Value value = p.generic(
      {x}, p.empty(x.shape(), x.element()), {identity, identity},
      SmallVector<bool>(x.rank(), false), [&](OpBuilder &b, ValueRange args) {
        auto constant = [&](int64_t number) -> Value {
          return arith::ConstantOp::create(b, p.loc, b.getIntegerAttr(x.element(), number));
        };
        Value zero = constant(0), twelve = constant(12);
        Value condition = arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::ne, args[0], zero);
        return branch(b, p.loc, condition, zero, [&](OpBuilder &inner) {
          return arith::DivSIOp::create(inner, p.loc, twelve, args[0]).getResult();
        });
      });
  p.pushLike(value, x);
  return true;
}

/// An element of a table if the index of one dimension is in bounds: outside of the arm the access
/// would be out of bounds.
static bool lookUp(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  int64_t size = p.anySize(), dim = p.random.between(0, x.rank() - 1);
  int64_t shift = p.random.between(0, 3);
  Entry table = p.pin(p.ofType({size}, x.element()));
  AffineMap identity = p.b.getMultiDimIdentityMap(x.rank());
  Value value = p.generic(
      {x}, p.empty(x.shape(), x.element()), {identity, identity},
      SmallVector<bool>(x.rank(), false), [&](OpBuilder &b, ValueRange args) {
        Value i = linalg::IndexOp::create(b, p.loc, dim);
        Value place =
            arith::SubIOp::create(b, p.loc, i, arith::ConstantIndexOp::create(b, p.loc, shift));
        // Unsigned: a negative index is far beyond the table.
        Value inside = arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::ult, place,
                                             arith::ConstantIndexOp::create(b, p.loc, size));
        return branch(b, p.loc, inside, args[0], [&](OpBuilder &inner) {
          return tensor::ExtractOp::create(inner, p.loc, table.value, place).getResult();
        });
      });
  p.pushLike(value, {x, table});
  return true;
}

static bool branchBody(ProgramBuilder &p) {
  return p.random.percent(50) ? divide(p) : lookUp(p);
}

/// A border whose elements are computed from their indices: i + 2 j + ….
static bool padBody(ProgramBuilder &p) {
  Entry x = p.any(1, 3, [](const Entry &entry) { return !entry.element().isInteger(1); });
  if (!x.value)
    return false;
  SmallVector<OpFoldResult> low, high;
  Shape shape;
  double most = 0;
  for (int64_t extent : x.shape()) {
    bool here = p.random.percent(60);
    int64_t before = here ? p.random.between(0, 2) : 0, after = here ? p.random.between(0, 3) : 0;
    low.push_back(p.b.getIndexAttr(before));
    high.push_back(p.b.getIndexAttr(after));
    shape.push_back(before + extent + after);
    most += static_cast<double>(shape.size() * shape.back());
  }
  auto type = RankedTensorType::get(shape, x.element());
  auto pad = tensor::PadOp::create(p.b, p.loc, type, x.value, low, high);
  {
    OpBuilder::InsertionGuard guard(p.b);
    SmallVector<Type> indices(shape.size(), p.b.getIndexType());
    Block *body = p.b.createBlock(&pad.getRegion(), pad.getRegion().end(), indices,
                                  SmallVector<Location>(shape.size(), p.loc));
    Value sum = p.index(0);
    for (auto [d, place] : llvm::enumerate(body->getArguments())) {
      Value part = arith::MulIOp::create(p.b, p.loc, place, p.index(static_cast<int64_t>(d) + 1));
      sum = arith::AddIOp::create(p.b, p.loc, sum, part);
    }
    // Small integers are exact in every type.
    Type number = x.isFloat() ? Type(p.b.getI32Type()) : x.element();
    Value element = arith::IndexCastOp::create(p.b, p.loc, number, sum);
    if (x.isFloat())
      element = arith::SIToFPOp::create(p.b, p.loc, x.element(), element);
    tensor::YieldOp::create(p.b, p.loc, element);
  }
  p.pushLike(pad, {x, Entry{pad, 0, most}});
  return true;
}

void tessera::fuzz::addBodyKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"branch-body", 4, branchBody});
  kinds.push_back({"pad-body", 3, padBody});
}
