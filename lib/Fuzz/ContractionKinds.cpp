//===- ContractionKinds.cpp - Contractions --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tessera::fuzz;

/// Adds a sum of `terms` products onto an init, with its bounds.
static void pushContraction(ProgramBuilder &p, Value value, const Entry &x, const Entry &y,
                            const Entry &init, int64_t terms) {
  double most = static_cast<double>(terms) * x.magnitude() * y.magnitude() + init.magnitude();
  bool exact = !x.isFloat() && x.exact && y.exact && init.exact;
  p.push(value, -most, most, exact, std::max({x.steps, y.steps, init.steps}) + 1);
}

static Value multiplyAdd(OpBuilder &b, Location loc, bool isFloat, ValueRange args) {
  if (isFloat) {
    Value product = arith::MulFOp::create(b, loc, args[0], args[1]);
    return arith::AddFOp::create(b, loc, args[2], product);
  }
  Value product = arith::MulIOp::create(b, loc, args[0], args[1]);
  return arith::AddIOp::create(b, loc, args[2], product);
}

static bool matmul(ProgramBuilder &p) {
  Entry x = p.any(2, 2);
  if (!x.value)
    return false;
  int64_t n = p.anySize();
  bool transposeA = p.random.percent(25), transposeB = p.random.percent(25);
  int64_t m = x.shape()[transposeA ? 1 : 0], k = x.shape()[transposeA ? 0 : 1];
  Entry y = p.ofType(transposeB ? Shape{n, k} : Shape{k, n}, x.element());
  Entry init = p.init({m, n}, x.element(), 0);
  auto op = linalg::MatmulOp::create(p.b, p.loc, TypeRange{init.type()},
                                     ValueRange{x.value, y.value}, ValueRange{init.value});
  if (transposeA || transposeB) {
    AffineExpr dm = p.b.getAffineDimExpr(0), dn = p.b.getAffineDimExpr(1),
               dk = p.b.getAffineDimExpr(2);
    auto map = [&](AffineExpr first, AffineExpr second) {
      return AffineMap::get(3, 0, {first, second}, p.b.getContext());
    };
    op.setIndexingMapsAttr(
        p.b.getAffineMapArrayAttr({transposeA ? map(dk, dm) : map(dm, dk),
                                   transposeB ? map(dn, dk) : map(dk, dn), map(dm, dn)}));
  }
  pushContraction(p, op.getResult(0), x, y, init, k);
  return true;
}

static bool batchMatmul(ProgramBuilder &p) {
  Entry x = p.any(3, 3);
  if (!x.value)
    return false;
  int64_t batch = x.shape()[0], m = x.shape()[1], k = x.shape()[2], n = p.random.between(1, 7);
  Entry y = p.ofType({batch, k, n}, x.element());
  Entry init = p.init({batch, m, n}, x.element(), 0);
  auto op = linalg::BatchMatmulOp::create(p.b, p.loc, TypeRange{init.type()},
                                          ValueRange{x.value, y.value}, ValueRange{init.value});
  pushContraction(p, op.getResult(0), x, y, init, k);
  return true;
}

static bool vectorProducts(ProgramBuilder &p) {
  Entry x = p.any(1, 2);
  if (!x.value)
    return false;
  if (x.rank() == 1) {
    Entry y = p.ofType(x.shape(), x.element());
    Entry init = p.init({}, x.element(), 0);
    auto op = linalg::DotOp::create(p.b, p.loc, TypeRange{init.type()},
                                    ValueRange{x.value, y.value}, ValueRange{init.value});
    pushContraction(p, op.getResult(0), x, y, init, x.shape()[0]);
    return true;
  }
  bool left = p.random.percent(50);
  int64_t k = x.shape()[left ? 0 : 1], m = x.shape()[left ? 1 : 0];
  Entry y = p.ofType({k}, x.element());
  Entry init = p.init({m}, x.element(), 0);
  Value result =
      left ? linalg::VecmatOp::create(p.b, p.loc, TypeRange{init.type()},
                                      ValueRange{y.value, x.value}, ValueRange{init.value})
                 .getResult(0)
           : linalg::MatvecOp::create(p.b, p.loc, TypeRange{init.type()},
                                      ValueRange{x.value, y.value}, ValueRange{init.value})
                 .getResult(0);
  pushContraction(p, result, x, y, init, k);
  return true;
}

/// A sum of products over random letters: each dimension of x is shared with y or not, and kept in
/// the result or not; y and the result have them in any order.
static bool einsum(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  std::vector<int64_t> sizes(x.shape().begin(), x.shape().end());
  std::vector<int64_t> inY, inResult;
  int64_t terms = 1;
  for (int64_t d = 0; d < x.rank(); ++d) {
    int64_t choice = p.random.between(1, 100);
    if (choice <= 70)
      inY.push_back(d);
    if (choice > 40)
      inResult.push_back(d);
    else
      terms *= sizes[d];
  }
  for (int64_t extra = p.random.between(0, 1); extra > 0; --extra) {
    inY.push_back(static_cast<int64_t>(sizes.size()));
    inResult.push_back(static_cast<int64_t>(sizes.size()));
    sizes.push_back(p.random.between(1, 7));
  }
  p.random.shuffle(inY);
  p.random.shuffle(inResult);
  int64_t loops = static_cast<int64_t>(sizes.size());
  auto mapOf = [&](const std::vector<int64_t> &letters, Shape &shape) {
    SmallVector<AffineExpr> dims;
    for (int64_t d : letters) {
      dims.push_back(p.b.getAffineDimExpr(d));
      shape.push_back(sizes[d]);
    }
    return AffineMap::get(loops, 0, dims, p.b.getContext());
  };
  Shape shapeX, shapeY, shapeResult;
  std::vector<int64_t> inX;
  for (int64_t d = 0; d < x.rank(); ++d)
    inX.push_back(d);
  AffineMap mapX = mapOf(inX, shapeX), mapY = mapOf(inY, shapeY),
            mapResult = mapOf(inResult, shapeResult);
  Entry y = p.ofType(shapeY, x.element());
  Entry init = p.init(shapeResult, x.element(), 0);
  SmallVector<bool> isReduction;
  for (int64_t d = 0; d < loops; ++d)
    isReduction.push_back(!llvm::is_contained(inResult, d));
  Value result = p.generic(
      {x, y}, init.value, {mapX, mapY, mapResult}, isReduction,
      [&](OpBuilder &b, ValueRange args) { return multiplyAdd(b, p.loc, x.isFloat(), args); });
  pushContraction(p, result, x, y, init, terms);
  return true;
}

/// A step of gradient descent: a small multiple of a product is subtracted from an argument.
static bool update(ProgramBuilder &p) {
  if (p.depth > 0)
    return false;
  // Few terms: a scaled copy of an operand is small against the product.
  int64_t terms = p.random.between(1, 2), m = 16 * terms + p.random.between(0, 8);
  int64_t n = p.anySize();
  Entry x = p.ofType({terms, m}, p.floatElement());
  Entry y = p.ofType({terms, n}, x.element());
  Entry weight = p.fresh({m, n}, x.element());
  Value gradient =
      linalg::MatmulOp::create(p.b, p.loc, TypeRange{weight.type()}, ValueRange{x.value, y.value},
                               ValueRange{p.filled({m, n}, x.element(), 0)})
          .getResult(0);
  AffineExpr dm = p.b.getAffineDimExpr(0), dn = p.b.getAffineDimExpr(1),
             dk = p.b.getAffineDimExpr(2);
  auto map = [&](AffineExpr first, AffineExpr second) {
    return AffineMap::get(3, 0, {first, second}, p.b.getContext());
  };
  cast<linalg::MatmulOp>(gradient.getDefiningOp())
      .setIndexingMapsAttr(p.b.getAffineMapArrayAttr({map(dk, dm), map(dk, dn), map(dm, dn)}));
  double most = static_cast<double>(terms) * x.magnitude() * y.magnitude(), rate = 0.0625;
  while (rate * most > 0.0625)
    rate /= 2;
  Value step = arith::MulFOp::create(p.b, p.loc, gradient, p.splat({m, n}, x.element(), rate));
  Value next = arith::SubFOp::create(p.b, p.loc, weight.value, step);
  double bound = weight.magnitude() + rate * most;
  p.push(next, -bound, bound, false, std::max({x.steps, y.steps, weight.steps}) + 1);
  if (auto argument = dyn_cast<BlockArgument>(weight.value))
    p.updates.push_back({next, argument});
  return true;
}

/// A product of many rows with what follows one in a network: kernels run on blocks of its rows.
static bool productOfRows(ProgramBuilder &p) {
  if (p.depth > 0)
    return false;
  int64_t m = 512 * p.random.between(1, 2), n = 16 * p.random.between(2, 4),
          k = p.random.between(1, 3);
  Entry x = p.ofType({m, k}, p.floatElement());
  Entry y = p.ofType({k, n}, x.element());
  Value value = linalg::MatmulOp::create(
                    p.b, p.loc, TypeRange{p.empty({m, n}, x.element()).getType()},
                    ValueRange{x.value, y.value}, ValueRange{p.filled({m, n}, x.element(), 0)})
                    .getResult(0);
  double bound = static_cast<double>(k) * x.magnitude() * y.magnitude();
  int64_t steps = std::max(x.steps, y.steps) + 1;
  AffineMap whole = p.b.getMultiDimIdentityMap(2);
  AffineMap column = AffineMap::get(2, 0, p.b.getAffineDimExpr(1));
  AffineMap row = AffineMap::get(2, 0, p.b.getAffineDimExpr(0));
  auto add = [&](const Entry &other, AffineMap map) {
    value = p.generic({Entry{value}, other}, p.empty({m, n}, x.element()), {whole, map, whole},
                      {false, false}, [&](OpBuilder &b, ValueRange args) -> Value {
                        return arith::AddFOp::create(b, p.loc, args[0], args[1]);
                      });
    bound += other.magnitude();
    steps = std::max(steps, other.steps) + 1;
  };
  if (p.random.percent(70))
    add(p.ofType({n}, x.element()), column);
  if (p.random.percent(60)) {
    bool isRelu = p.random.percent(50);
    Value zero = p.constant(x.element(), 0);
    value = p.generic({Entry{value}}, p.empty({m, n}, x.element()), {whole, whole}, {false, false},
                      [&](OpBuilder &b, ValueRange args) -> Value {
                        if (isRelu)
                          return arith::MaximumFOp::create(b, p.loc, args[0], zero);
                        return math::TanhOp::create(b, p.loc, args[0]);
                      });
  }
  if (p.random.percent(40))
    add(p.fresh({m, n}, x.element()), whole);
  if (p.random.percent(20))
    add(p.ofType({m}, x.element()), row);
  // The maximum of each row, or all of the rows, which later ops read.
  if (p.random.percent(70))
    value = p.generic({Entry{value}}, p.filled({m}, x.element(), -bound), {whole, row},
                      {false, true}, [&](OpBuilder &b, ValueRange args) -> Value {
                        return arith::MaximumFOp::create(b, p.loc, args[0], args[1]);
                      });
  p.push(value, -bound, bound, false, steps + 1);
  return true;
}

void tessera::fuzz::addContractionKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"matmul", 14, matmul});
  kinds.push_back({"batch-matmul", 5, batchMatmul});
  kinds.push_back({"vector-product", 4, vectorProducts});
  kinds.push_back({"einsum", 8, einsum});
  kinds.push_back({"update", 4, update});
  kinds.push_back({"product-of-rows", 1, productOfRows});
}
