//===- ReductionKinds.cpp - Reductions and softmax ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::fuzz;

enum class Reduction { sum, max, min, prod };

static Value combine(OpBuilder &b, Location loc, Reduction kind, bool isFloat, Value x, Value acc) {
  switch (kind) {
  case Reduction::sum:
    return isFloat ? arith::AddFOp::create(b, loc, x, acc).getResult()
                   : arith::AddIOp::create(b, loc, x, acc).getResult();
  case Reduction::max:
    return isFloat ? arith::MaximumFOp::create(b, loc, x, acc).getResult()
                   : arith::MaxSIOp::create(b, loc, x, acc).getResult();
  case Reduction::min:
    return isFloat ? arith::MinimumFOp::create(b, loc, x, acc).getResult()
                   : arith::MinSIOp::create(b, loc, x, acc).getResult();
  case Reduction::prod:
    return isFloat ? arith::MulFOp::create(b, loc, x, acc).getResult()
                   : arith::MulIOp::create(b, loc, x, acc).getResult();
  }
  llvm_unreachable("all kinds are listed");
}

/// A constant that does not change a reduction of values with these bounds.
static double neutral(Reduction kind, bool isFloat) {
  switch (kind) {
  case Reduction::sum:
    return 0;
  case Reduction::prod:
    return 1;
  case Reduction::max:
    return isFloat ? -std::numeric_limits<double>::infinity() : -2147483648.0;
  case Reduction::min:
    return isFloat ? std::numeric_limits<double>::infinity() : 2147483647.0;
  }
  llvm_unreachable("all kinds are listed");
}

static void pushReduction(ProgramBuilder &p, Value value, Reduction kind, const Entry &x,
                          const Entry &init, int64_t terms) {
  bool inputsExact = x.exact && init.exact;
  int64_t steps = std::max(x.steps, init.steps);
  if (kind == Reduction::max || kind == Reduction::min)
    return p.push(value, std::min(x.low, init.low), std::max(x.high, init.high), inputsExact,
                  steps);
  double most =
      kind == Reduction::sum
          ? static_cast<double>(terms) * x.magnitude() + init.magnitude()
          : std::pow(x.magnitude(), static_cast<double>(terms)) * std::max(1.0, init.magnitude());
  p.push(value, -most, most, inputsExact && !x.isFloat(), steps + 1);
}

static bool reduce(ProgramBuilder &p) {
  Entry x = p.any(1, 4);
  if (!x.value)
    return false;
  auto kind = static_cast<Reduction>(p.random.between(0, 3));
  std::vector<int64_t> reduced;
  Shape kept;
  int64_t terms = 1;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!p.random.percent(50)) {
      kept.push_back(x.shape()[d]);
      continue;
    }
    reduced.push_back(d);
    terms *= x.shape()[d];
  }
  if (reduced.empty())
    return false;
  // Products of many floats overflow or underflow.
  if (kind == Reduction::prod && x.isFloat() &&
      (x.magnitude() > 1.5 || terms > 12 || std::pow(x.magnitude(), terms) > 100))
    return false;
  // A running sum of 16-bit floats stops growing at 256 times its terms: the reference itself would
  // be wrong.
  if (kind == Reduction::sum && x.element().isBF16() && terms > 16)
    return false;
  Entry init = p.init(kept, x.element(), neutral(kind, x.isFloat()));
  if (!init.value)
    return false;
  Value result;
  if (p.random.percent(60)) {
    result =
        linalg::ReduceOp::create(
            p.b, p.loc, ValueRange{x.value}, ValueRange{init.value}, reduced,
            [&](OpBuilder &b, Location loc, ValueRange args) {
              linalg::YieldOp::create(b, loc, combine(b, loc, kind, x.isFloat(), args[0], args[1]));
            })
            ->getResult(0);
  } else {
    SmallVector<AffineExpr> dims;
    SmallVector<bool> isReduction;
    for (int64_t d = 0; d < x.rank(); ++d) {
      isReduction.push_back(llvm::is_contained(reduced, d));
      if (!isReduction.back())
        dims.push_back(p.b.getAffineDimExpr(d));
    }
    // The accumulator may be either operand.
    bool swapped = p.random.percent(50);
    result = p.generic(
        {x}, init.value,
        {p.b.getMultiDimIdentityMap(x.rank()), AffineMap::get(x.rank(), 0, dims, p.b.getContext())},
        isReduction, [&](OpBuilder &b, ValueRange args) {
          return combine(b, p.loc, kind, x.isFloat(), args[swapped ? 1 : 0], args[swapped ? 0 : 1]);
        });
  }
  pushReduction(p, result, kind, x, init, terms);
  return true;
}

/// A sum of f(x), or of differences: linear in some operands only.
static bool reduceOfExpression(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  if (x.element().isBF16() && cast<RankedTensorType>(x.value.getType()).getNumElements() > 16)
    return false; // as in `reduce`
  Entry y = p.ofType(x.shape(), x.element());
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.rank(); ++d)
    dims.push_back(d);
  int64_t reducedDim = p.random.pick(dims);
  Shape kept;
  SmallVector<AffineExpr> exprs;
  SmallVector<bool> isReduction(x.rank(), false);
  isReduction[reducedDim] = true;
  for (int64_t d : dims)
    if (d != reducedDim) {
      kept.push_back(x.shape()[d]);
      exprs.push_back(p.b.getAffineDimExpr(d));
    }
  Entry init = p.init(kept, x.element(), 0);
  bool square = p.random.percent(50);
  AffineMap identity = p.b.getMultiDimIdentityMap(x.rank());
  Value result =
      p.generic({x, y}, init.value,
                {identity, identity, AffineMap::get(x.rank(), 0, exprs, p.b.getContext())},
                isReduction, [&](OpBuilder &b, ValueRange args) -> Value {
                  if (x.isFloat()) {
                    Value difference = arith::SubFOp::create(b, p.loc, args[0], args[1]);
                    if (square)
                      difference = arith::MulFOp::create(b, p.loc, difference, difference);
                    return arith::AddFOp::create(b, p.loc, difference, args[2]);
                  }
                  Value difference = arith::SubIOp::create(b, p.loc, args[0], args[1]);
                  if (square)
                    difference = arith::MulIOp::create(b, p.loc, difference, difference);
                  return arith::AddIOp::create(b, p.loc, args[2], difference);
                });
  double most = x.magnitude() + y.magnitude();
  Entry term = x;
  term.exact &= y.exact;
  term.steps = std::max(x.steps, y.steps);
  term.high = square ? most * most : most;
  term.low = -term.high;
  pushReduction(p, result, Reduction::sum, term, init, x.shape()[reducedDim]);
  return true;
}

static bool softmax(ProgramBuilder &p) {
  Entry x = p.anyFloat(1, 3);
  if (!x.value)
    return false;
  auto op =
      linalg::SoftmaxOp::create(p.b, p.loc, TypeRange{x.type()}, x.value,
                                p.empty(x.shape(), x.element()), p.random.between(0, x.rank() - 1));
  p.push(op->getResult(0), 0, 1, false, x.steps + 2);
  return true;
}

/// The greatest element of each row and its first index: two results, one of them an index, and a
/// body that is not a plain reduction.
static bool argmax(ProgramBuilder &p) {
  Entry x = p.any(2, 2, [&](const Entry &entry) {
    return entry.exact && (!entry.isFloat() || p.comparesFloats);
  });
  if (!x.value)
    return false;
  int64_t rows = x.shape()[0];
  Value least = p.filled({rows}, x.element(), x.isFloat() ? -1e30 : -2147483648.0);
  Value first = p.filled({rows}, p.b.getI32Type(), 0);
  AffineMap row = AffineMap::get(2, 0, p.b.getAffineDimExpr(0), p.b.getContext());
  auto op = linalg::GenericOp::create(
      p.b, p.loc, TypeRange{least.getType(), first.getType()}, ValueRange{x.value},
      ValueRange{least, first}, ArrayRef<AffineMap>{p.b.getMultiDimIdentityMap(2), row, row},
      ArrayRef<utils::IteratorType>{utils::IteratorType::parallel, utils::IteratorType::reduction},
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value column = linalg::IndexOp::create(b, loc, 1);
        Value index = arith::IndexCastOp::create(b, loc, b.getI32Type(), column);
        Value greater =
            x.isFloat() ? arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, args[0], args[1])
                              .getResult()
                        : arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, args[0], args[1])
                              .getResult();
        Value most = arith::SelectOp::create(b, loc, greater, args[0], args[1]);
        Value where = arith::SelectOp::create(b, loc, greater, index, args[2]);
        linalg::YieldOp::create(b, loc, ValueRange{most, where});
      });
  p.pushLike(op.getResult(0), x);
  p.pushLike(op.getResult(1), x);
  return true;
}

void tessera::fuzz::addReductionKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"reduce", 14, reduce});
  kinds.push_back({"reduce-expression", 5, reduceOfExpression});
  kinds.push_back({"softmax", 5, softmax});
  kinds.push_back({"argmax", 3, argmax});
}
