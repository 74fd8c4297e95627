//===- LinalgReverse.cpp - The reverse of linalg ops ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative follows from the indexing maps and the body. If every iteration
// writes a distinct element, or adds to one, the cotangent of an operand is a nest
// over the same loops that reads the cotangents of the results under the results'
// maps and sums over the loops that the operand lacks. Products, extrema and
// assignments over loops first compute the influence of each element on the result.
//
//===----------------------------------------------------------------------===//

#include "BodyReverse.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Whether each iteration writes a distinct element of every result.
static bool writesOnce(linalg::LinalgOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (OpOperand &init : op.getDpsInitsMutable())
    for (unsigned loop = 0; loop < extents.size(); ++loop)
      if (extents[loop] != 1 &&
          llvm::none_of(op.getMatchingIndexingMap(&init).getResults(), [&](AffineExpr expr) {
            return loopOf(expr) == static_cast<int64_t>(loop);
          }))
        return false;
  return true;
}

static Value yieldedBy(linalg::LinalgOp op, unsigned result) {
  return op.getBlock()->getTerminator()->getOperand(result);
}

//===----------------------------------------------------------------------===//
// Extrema and products over loops
//===----------------------------------------------------------------------===//

namespace {

/// The reduction of a result over the loops that it lacks: yielded = combine(accumulator, term).
struct Reduction {
  enum Kind { extremum, product, assignment } kind;
  Value term;      ///< in the forward body
  Value condition; ///< of an assignment: whether the accumulator becomes the term
};

} // namespace

static bool dependsOn(Value value, Value on) {
  if (value == on)
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == on.getParentBlock() &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOn(operand, on); });
}

static std::optional<Reduction> matchReduction(linalg::LinalgOp op, unsigned result) {
  BlockArgument accumulator = op.getRegionOutputArgs()[result];
  Value yielded = yieldedBy(op, result);
  if (Operation *combiner = matchCombiner(op, result)) {
    Value term = combiner->getOperand(combiner->getOperand(0) == accumulator ? 1 : 0);
    if (isa<arith::MulFOp>(combiner))
      return Reduction{Reduction::product, term, {}};
    if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(combiner))
      return Reduction{Reduction::extremum, term, {}};
  }
  auto select = yielded.getDefiningOp<arith::SelectOp>();
  if (select && select.getFalseValue() == accumulator && accumulator.hasOneUse())
    return Reduction{Reduction::assignment, select.getTrueValue(), select.getCondition()};
  // select(x > acc, x, acc), in any spelling.
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  if (!compare)
    return std::nullopt;
  Value x = select.getTrueValue(), y = select.getFalseValue();
  bool same = (compare.getLhs() == x && compare.getRhs() == y) ||
              (compare.getLhs() == y && compare.getRhs() == x);
  bool ordering = llvm::is_contained({arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE,
                                      arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                      arith::CmpFPredicate::UGT, arith::CmpFPredicate::UGE,
                                      arith::CmpFPredicate::ULT, arith::CmpFPredicate::ULE},
                                     compare.getPredicate());
  Value term = x == accumulator ? y : x;
  if (!same || !ordering || (x != accumulator && y != accumulator) || dependsOn(term, accumulator))
    return std::nullopt;
  return Reduction{Reduction::extremum, term, {}};
}

/// Position of an iteration in the order of the loops that the result lacks.
static Value orderOf(LoopNest &nest, AffineMap out, Type type) {
  OpBuilder b = nest.bodyEnd();
  Value order = arith::ConstantIndexOp::create(b, nest.loc, 0);
  for (unsigned loop = 0; loop < nest.extents.size(); ++loop) {
    if (out.isFunctionOfDim(loop) || nest.extents[loop] == 1)
      continue;
    Value extent = arith::ConstantIndexOp::create(b, nest.loc, nest.extents[loop]);
    order = arith::MulIOp::create(b, nest.loc, order, extent);
    order = arith::AddIOp::create(b, nest.loc, order, nest.index(loop));
  }
  return arith::IndexCastOp::create(b, nest.loc, type, order);
}

/// The iterations of a nest that write one element, whose map is `out`.
static int64_t iterationsOutside(const LoopNest &nest, AffineMap out) {
  int64_t count = 1;
  for (unsigned loop = 0; loop < nest.extents.size(); ++loop)
    if (!out.isFunctionOfDim(loop))
      count *= nest.extents[loop];
  return count;
}

/// The narrower of i32 and i64 that numbers so many iterations and has a greatest value beside
/// them.
static Type orderTypeFor(OpBuilder &b, int64_t iterations) {
  return iterations < (int64_t(1) << 31) ? b.getI32Type() : b.getI64Type();
}

/// An elementwise op over tensors of one shape, the last of `inputs` being the cotangent.
static Value pointwise(Reverse &reverse, Location loc, ValueRange inputs,
                       llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  auto type = cast<RankedTensorType>(inputs.back().getType());
  LoopNest nest(reverse.b, loc, type.getShape());
  for (Value input : inputs)
    nest.addInput(input, nest.identityMap());
  OpBuilder b = nest.bodyEnd();
  Value scalar = body(b, nest.block->getArguments());
  return nest.emit(scalar, nest.identityMap(), type);
}

/// The first element equal to the extremum gets the whole cotangent; the initial value precedes all
/// others.
static LogicalResult reverseExtremum(Reverse &reverse, linalg::LinalgOp op, unsigned result,
                                     Value term, Value cotangent) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  OpOperand &init = op.getDpsInitsMutable()[result];
  AffineMap out = op.getMatchingIndexingMap(&init);
  Value extreme = op->getResult(result);
  auto type = cast<RankedTensorType>(extreme.getType());
  if (reverse.isActive(init.get())) {
    auto split = [&](bool toInit) {
      return pointwise(reverse, loc, {init.get(), extreme, cotangent},
                       [&](OpBuilder &body, ValueRange args) -> Value {
                         Value same = arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ,
                                                            args[0], args[1]);
                         Value zero = zeros(body, loc, args[2].getType());
                         return arith::SelectOp::create(body, loc, same, toInit ? args[2] : zero,
                                                        toInit ? zero : args[2]);
                       });
    };
    reverse.add(init.get(), split(true));
    cotangent = split(false);
  }
  BodyReverse body(reverse, op, /*reuseResults=*/false);
  Type order = orderTypeFor(b, iterationsOutside(body.nest, out));
  auto orderType = RankedTensorType::get(type.getShape(), order);
  // The position of its first occurrence.
  Value known = body.nest.addInput(extreme, out);
  OpBuilder inner = body.nest.bodyEnd();
  Value here = orderOf(body.nest, out, order);
  Value same =
      arith::CmpFOp::create(inner, loc, arith::CmpFPredicate::OEQ, body.copyOf(term), known);
  Value never = arith::ConstantOp::create(
      inner, loc,
      inner.getIntegerAttr(order, APInt::getSignedMaxValue(order.getIntOrFloatBitWidth())));
  Value candidate = arith::SelectOp::create(inner, loc, same, here, never);
  Value first = body.nest.emit(candidate, out, orderType, LoopNest::Combine::least);
  // It gets the cotangent.
  Value chosen = body.nest.addInput(first, out);
  Value arriving = body.nest.addInputOrConstant(cotangent, out);
  Value isFirst = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, here, chosen);
  body.seed(term, arith::SelectOp::create(inner, loc, isFirst, arriving,
                                          zeros(inner, loc, type.getElementType())));
  return failure(failed(body.run()) || failed(body.emitTargets(/*withInits=*/false)));
}

/// The last term that is assigned gets the whole cotangent, or the initial value if there is none.
static LogicalResult reverseAssignment(Reverse &reverse, linalg::LinalgOp op, unsigned result,
                                       const Reduction &reduction, Value cotangent) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  OpOperand &init = op.getDpsInitsMutable()[result];
  AffineMap out = op.getMatchingIndexingMap(&init);
  auto type = cast<RankedTensorType>(op->getResult(result).getType());
  BodyReverse body(reverse, op, /*reuseResults=*/false);
  int64_t positions = iterationsOutside(body.nest, out);
  Type order = orderTypeFor(b, positions);
  auto orderType = RankedTensorType::get(type.getShape(), order);
  // The number of its last iteration, counted from the end.
  OpBuilder inner = body.nest.bodyEnd();
  auto integer = [&](OpBuilder &at, APInt value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getIntegerAttr(order, value));
  };
  unsigned width = order.getIntOrFloatBitWidth();
  APInt none = APInt::getSignedMaxValue(width);
  Value here = orderOf(body.nest, out, order);
  here = arith::SubIOp::create(
      inner, loc, integer(inner, APInt(width, static_cast<uint64_t>(positions - 1))), here);
  Value holds = body.copyOf(reduction.condition);
  Value candidate = arith::SelectOp::create(inner, loc, holds, here, integer(inner, none));
  Value last = body.nest.emit(candidate, out, orderType, LoopNest::Combine::least);
  if (reverse.isActive(init.get()))
    reverse.add(
        init.get(),
        pointwise(reverse, loc, {last, cotangent}, [&](OpBuilder &at, ValueRange args) -> Value {
          Value kept =
              arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, args[0], integer(at, none));
          return arith::SelectOp::create(at, loc, kept, args[1], zeros(at, loc, args[1].getType()));
        }));
  // It gets the cotangent.
  Value chosen = body.nest.addInput(last, out);
  Value arriving = body.nest.addInputOrConstant(cotangent, out);
  Value isLast = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, here, chosen);
  isLast = arith::AndIOp::create(inner, loc, holds, isLast);
  body.seed(reduction.term, arith::SelectOp::create(inner, loc, isLast, arriving,
                                                    zeros(inner, loc, type.getElementType())));
  return failure(failed(body.run()) || failed(body.emitTargets(/*withInits=*/false)));
}

/// The cotangent of each factor is the product of the others. Division would fail at zeros, so
/// these are counted separately, and the product is over the nonzero factors.
static LogicalResult reverseProduct(Reverse &reverse, linalg::LinalgOp op, unsigned result,
                                    Value term, Value cotangent) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  OpOperand &init = op.getDpsInitsMutable()[result];
  AffineMap out = op.getMatchingIndexingMap(&init);
  auto type = cast<RankedTensorType>(op->getResult(result).getType());
  Type element = type.getElementType();
  BodyReverse body(reverse, op, /*reuseResults=*/false);
  OpBuilder inner = body.nest.bodyEnd();
  auto integer = [&](OpBuilder &at, int64_t value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(value));
  };
  Value factor = body.copyOf(term), zero = zeros(inner, loc, element);
  Value one = arith::ConstantOp::create(inner, loc, inner.getFloatAttr(element, 1));
  Value isZero = arith::CmpFOp::create(inner, loc, arith::CmpFPredicate::OEQ, factor, zero);
  Value counted = arith::SelectOp::create(inner, loc, isZero, integer(inner, 1), integer(inner, 0));
  Value nonzero = arith::SelectOp::create(inner, loc, isZero, one, factor);
  Value zerosOf =
      body.nest.emit(counted, out, RankedTensorType::get(type.getShape(), b.getI32Type()));
  Value product = body.nest.emit(nonzero, out, type, LoopNest::Combine::product);
  if (reverse.isActive(init.get()))
    reverse.add(init.get(),
                pointwise(reverse, loc, {zerosOf, product, cotangent},
                          [&](OpBuilder &at, ValueRange args) -> Value {
                            Value none = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq,
                                                               args[0], integer(at, 0));
                            Value all = arith::MulFOp::create(at, loc, args[1], args[2]);
                            return arith::SelectOp::create(at, loc, none, all,
                                                           zeros(at, loc, element));
                          }));
  Value scaled = pointwise(reverse, loc, {init.get(), product, cotangent},
                           [&](OpBuilder &at, ValueRange args) -> Value {
                             Value start = arith::MulFOp::create(at, loc, args[0], args[1]);
                             return arith::MulFOp::create(at, loc, start, args[2]);
                           });
  Value all = body.nest.addInput(scaled, out), number = body.nest.addInput(zerosOf, out);
  Value without = arith::DivFOp::create(inner, loc, all, nonzero);
  Value none =
      arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, number, integer(inner, 0));
  Value single =
      arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, number, integer(inner, 1));
  Value alone = arith::AndIOp::create(inner, loc, single, isZero);
  Value others = arith::SelectOp::create(inner, loc, alone, all, zero);
  body.seed(term, arith::SelectOp::create(inner, loc, none, without, others));
  return failure(failed(body.run()) || failed(body.emitTargets(/*withInits=*/false)));
}

//===----------------------------------------------------------------------===//
// All linalg ops
//===----------------------------------------------------------------------===//

/// Results that every iteration overwrites, or adds to.
static FailureOr<bool> reverseSums(Reverse &reverse, linalg::LinalgOp op,
                                   ArrayRef<Value> cotangents, bool once) {
  BodyReverse body(reverse, op, /*reuseResults=*/once);
  SmallVector<Value> seeds(cotangents.size());
  for (auto [result, cotangent] : llvm::enumerate(cotangents))
    if (cotangent) {
      OpOperand &init = op.getDpsInitsMutable()[result];
      seeds[result] = body.nest.addInputOrConstant(cotangent, op.getMatchingIndexingMap(&init));
      body.seed(yieldedBy(op, result), seeds[result]);
    }
  if (failed(body.run()))
    return failure();
  if (once)
    return failed(body.emitTargets(/*withInits=*/true)) ? FailureOr<bool>(failure()) : true;
  // It is a sum if the accumulator's cotangent equals that of the result, without other reads of
  // the accumulator.
  for (auto [result, seed] : llvm::enumerate(seeds)) {
    BlockArgument accumulator = op.getRegionOutputArgs()[result];
    if (!seed)
      continue;
    Value flows = body.cotangentOf(accumulator);
    bool carried = accumulator == yieldedBy(op, result);
    if (!carried && flows != seed)
      return false;
  }
  if (body.readsAccumulators())
    return false;
  for (auto [result, cotangent] : llvm::enumerate(cotangents))
    if (cotangent)
      reverse.add(op.getDpsInits()[result], cotangent);
  return failed(body.emitTargets(/*withInits=*/false)) ? FailureOr<bool>(failure()) : true;
}

LogicalResult dist::reverseLinalg(Reverse &reverse, linalg::LinalgOp op,
                                  ArrayRef<Value> cotangents) {
  if (!op.hasPureTensorSemantics() || op.hasDynamicShape())
    return noDerivative(op, "its operands are not tensors of static shape");
  bool once = writesOnce(op);
  if (once)
    return failure(failed(reverseSums(reverse, op, cotangents, once)));
  for (auto [result, cotangent] : llvm::enumerate(cotangents)) {
    if (!cotangent)
      continue;
    SmallVector<Value> alone(cotangents.size());
    alone[result] = cotangent;
    std::optional<Reduction> reduction = matchReduction(op, result);
    if (reduction && reduction->kind == Reduction::assignment) {
      if (failed(reverseAssignment(reverse, op, result, *reduction, cotangent)))
        return failure();
      continue;
    }
    if (reduction) {
      auto apply = reduction->kind == Reduction::product ? reverseProduct : reverseExtremum;
      if (failed(apply(reverse, op, result, reduction->term, cotangent)))
        return failure();
      continue;
    }
    FailureOr<bool> summed = reverseSums(reverse, op, alone, once);
    if (failed(summed))
      return failure();
    if (!*summed)
      return noDerivative(
          op, "its body combines result " + Twine(result) +
                  " over loops other than by a sum, product, maximum, minimum or assignment");
  }
  return success();
}

LogicalResult dist::reverseSoftmax(Reverse &reverse, linalg::SoftmaxOp op, Value cotangent) {
  // dx = (dy - sum(dy · y)) · y, by the result alone.
  Value y = op->getResult(0);
  auto type = cast<RankedTensorType>(y.getType());
  LoopNest nest(reverse.b, op.getLoc(), type.getShape());
  Value g = nest.addInput(cotangent, nest.identityMap());
  Value r = nest.addInput(y, nest.identityMap());
  OpBuilder b = nest.bodyEnd();
  AffineMap rows = nest.identityMap().dropResult(op.getDimension());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + static_cast<int64_t>(op.getDimension()));
  Value product = arith::MulFOp::create(b, nest.loc, g, r);
  Value sum = nest.emit(product, rows, RankedTensorType::get(shape, type.getElementType()));
  Value total = nest.addInput(sum, rows);
  Value centred = arith::SubFOp::create(b, nest.loc, g, total);
  Value scaled = arith::MulFOp::create(b, nest.loc, centred, r);
  reverse.add(op.getInput(), nest.emit(scaled, nest.identityMap(), type));
  return success();
}
