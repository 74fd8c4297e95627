//===- ExtReverse.cpp - The reverse of scans and sorts ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reverse of a scan r[i] = f(r[i - 1], x[i]) is another scan. With L[i] and
// R[i] the derivatives of f by its first and second argument at step i,
//
//   s[i] = dr[i] + L[i + 1] s[i + 1],     dx[i] = R[i] s[i],     R[0] = 1
//
// and s is a scan from the other end of the maps s -> L s + dr, which compose to maps
// of the same form. Of sums L and R are 1: the reversed scan of dr.
//
// The reverse of a sort applies the inverse permutation: it sorts the cotangents by
// the original positions of their elements.
//
//===----------------------------------------------------------------------===//

#include "DimensionOps.h"
#include "Reverse.h"
#include "ScalarRules.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

using Values = SmallVector<Value>;

static Value constantOf(OpBuilder &b, Location loc, Type type, double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

/// A scan with a combiner written by `body`, of values before and behind.
static Values writeScan(OpBuilder &b, ext::ScanOp like, bool reverse, bool exclusive,
                        ValueRange inputs, ArrayRef<Attribute> identity,
                        function_ref<Values(OpBuilder &, ValueRange, ValueRange)> body) {
  Location loc = like.getLoc();
  auto scan = ext::ScanOp::create(
      b, loc, inputs.getTypes(), like.getDimensionAttr(), exclusive ? b.getUnitAttr() : UnitAttr(),
      reverse ? b.getUnitAttr() : UnitAttr(), inputs, b.getArrayAttr(identity));
  Block &block = scan.getCombiner().emplaceBlock();
  for (int side = 0; side < 2; ++side)
    for (Value input : inputs)
      block.addArgument(getElementTypeOrSelf(input.getType()), loc);
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  ext::YieldOp::create(inner, loc,
                       body(inner, block.getArguments().take_front(inputs.size()),
                            block.getArguments().drop_front(inputs.size())));
  return Values(scan.getResults());
}

/// Whether the combiner adds each input separately.
static bool addsOnly(ext::ScanOp op) {
  Block &body = op.getBody();
  size_t count = op.getInputs().size();
  for (auto [index, yielded] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto add = yielded.getDefiningOp<arith::AddFOp>();
    Value before = body.getArgument(index), behind = body.getArgument(count + index);
    if (!add || !((add.getLhs() == before && add.getRhs() == behind) ||
                  (add.getLhs() == behind && add.getRhs() == before)))
      return false;
  }
  return true;
}

static Values addAll(OpBuilder &b, Location loc, ValueRange before, ValueRange behind) {
  Values sums;
  for (auto [x, y] : llvm::zip(before, behind))
    sums.push_back(arith::AddFOp::create(b, loc, x, y));
  return sums;
}

/// The derivatives of a combiner of one value by both of its arguments, at tensors of them.
static FailureOr<std::array<Value, 2>> derivativesOf(OpBuilder &b, ext::ScanOp op, Value before,
                                                     Value behind) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(before.getType());
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  bool isKnown = true;
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange{type, type}, ValueRange{before, behind}, ValueRange{empty, empty},
      SmallVector<AffineMap>(4, map), parallel, [&](OpBuilder &inner, Location, ValueRange args) {
        IRMapping copies;
        copies.map(op.getBody().getArguments(), args.take_front(2));
        for (Operation &each : op.getBody().without_terminator())
          inner.clone(each, copies);
        llvm::DenseMap<Value, Value> cotangents; // looked up, never iterated
        Value one = constantOf(inner, loc, type.getElementType(), 1);
        cotangents[op.getBody().getTerminator()->getOperand(0)] = one;
        for (Operation &each : llvm::reverse(op.getBody().without_terminator())) {
          Values incoming;
          for (Value result : each.getResults())
            incoming.push_back(cotangents.lookup(result));
          if (llvm::none_of(incoming, [](Value value) { return value != nullptr; }))
            continue;
          ScalarReverse rule{
              &each, incoming, [&](Value value) { return copies.lookupOrDefault(value); },
              [&](unsigned i) { return isDifferentiable(each.getOperand(i).getType()); },
              [&](unsigned i, Value value) {
                Value &sum = cotangents[each.getOperand(i)];
                sum = addScalars(inner, loc, sum, value);
              }};
          if (!each.getOperands().empty() && failed(reverseScalar(inner, rule)))
            isKnown = false;
        }
        Values results;
        for (BlockArgument argument : op.getBody().getArguments()) {
          Value found = cotangents.lookup(argument);
          results.push_back(found ? found : constantOf(inner, loc, type.getElementType(), 0));
        }
        linalg::YieldOp::create(inner, loc, results);
      });
  if (!isKnown)
    return failure();
  return std::array<Value, 2>{generic.getResult(0), generic.getResult(1)};
}

LogicalResult dist::reverseScan(Reverse &reverse, ext::ScanOp op, ArrayRef<Value> cotangents) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  Values arriving(cotangents);
  for (auto [value, result] : llvm::zip(arriving, op.getResults()))
    if (!value && isDifferentiable(result.getType()))
      value = arith::ConstantOp::create(b, loc, b.getZeroAttr(result.getType()));
  auto zeroOf = [&](Value value) -> Attribute {
    return b.getZeroAttr(getElementTypeOrSelf(value.getType()));
  };
  if (addsOnly(op)) {
    SmallVector<Attribute> zeros = llvm::map_to_vector(arriving, zeroOf);
    Values back = writeScan(b, op, !op.getReverse(), op.getExclusive(), arriving, zeros,
                            [&](OpBuilder &inner, ValueRange before, ValueRange behind) {
                              return addAll(inner, loc, before, behind);
                            });
    for (auto [input, value] : llvm::zip(op.getInputs(), back))
      reverse.add(input, value);
    return success();
  }
  if (op.getInputs().size() != 1 || op.getExclusive())
    return noDerivative(op, "only sums and inclusive scans of one tensor have a derivative; stop "
                            "the gradient with dist.stop_gradient");
  // The value before each step; the first one has none.
  Value x = op.getInputs()[0], result = op.getResult(0);
  auto type = cast<RankedTensorType>(x.getType());
  int64_t dim = op.getDim(), extent = type.getDimSize(dim);
  if (extent == 0)
    return success();
  if (extent == 1) { // the element itself
    reverse.add(x, arriving[0]);
    return success();
  }
  bool isReverse = op.getReverse();
  auto shift = [&](Value value, bool later) { // by one step of the scan
    bool up = later != isReverse;
    Value kept = sliceDim(b, loc, value, dim, up ? 0 : 1, extent - 1);
    return padDim(b, loc, kept, dim, up ? 1 : 0, up ? 0 : 1);
  };
  FailureOr<std::array<Value, 2>> slopes = derivativesOf(b, op, shift(result, true), x);
  if (failed(slopes))
    return noDerivative(op, "an op of its region has no derivative; stop the gradient with "
                            "dist.stop_gradient");
  Attribute one = b.getFloatAttr(type.getElementType(), 1);
  Values maps{shift((*slopes)[0], false), arriving[0]};
  Values sums =
      writeScan(b, op, !isReverse, false, maps, {one, zeroOf(x)},
                [&](OpBuilder &inner, ValueRange before, ValueRange behind) {
                  Value slope = arith::MulFOp::create(inner, loc, before[0], behind[0]);
                  Value scaled = arith::MulFOp::create(inner, loc, behind[0], before[1]);
                  return Values{slope, arith::AddFOp::create(inner, loc, scaled, behind[1])};
                });
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  auto scaled = linalg::GenericOp::create(
      b, loc, type, ValueRange{sums[1], (*slopes)[1]}, empty, SmallVector<AffineMap>(3, map),
      parallel, [&](OpBuilder &inner, Location, ValueRange args) {
        Value first = arith::ConstantIndexOp::create(inner, loc, isReverse ? extent - 1 : 0);
        Value isFirst = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq,
                                              linalg::IndexOp::create(inner, loc, dim), first);
        Value product = arith::MulFOp::create(inner, loc, args[0], args[1]);
        Value value = arith::SelectOp::create(inner, loc, isFirst, args[0], product);
        linalg::YieldOp::create(inner, loc, value);
      });
  reverse.add(x, scaled.getResult(0));
  return success();
}

LogicalResult dist::reverseSort(Reverse &reverse, ext::SortOp op, ArrayRef<Value> cotangents) {
  OpBuilder &b = reverse.b;
  Location loc = op.getLoc();
  int64_t dim = op.getDim(), extent = op.getShape()[dim];
  // The original position of each element.
  auto type = RankedTensorType::get(op.getShape(), b.getI32Type());
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  Value iota = linalg::GenericOp::create(
                   b, loc, TypeRange(type), ValueRange(), empty, map, parallel,
                   [&](OpBuilder &inner, Location, ValueRange) {
                     Value index = linalg::IndexOp::create(inner, loc, dim);
                     linalg::YieldOp::create(
                         inner, loc,
                         arith::IndexCastOp::create(inner, loc, b.getI32Type(), index).getResult());
                   })
                   .getResult(0);
  Values keys(op.getInputs().take_front(op.getKeys()));
  keys.push_back(iota);
  Value places = ext::SortOp::create(b, loc, op.getDimensionAttr(), op.getKeysAttr(),
                                     op.getDescendingAttr(), IntegerAttr(), keys)
                     .getResults()
                     .back();
  Values moved{places};
  SmallVector<unsigned> targets;
  for (auto [index, value] : llvm::enumerate(cotangents)) {
    if (!value || !reverse.isActive(op.getInputs()[index]))
      continue;
    targets.push_back(index);
    moved.push_back(padDim(b, loc, value, dim, 0, extent - op.getCount()));
  }
  if (targets.empty())
    return success();
  auto back = ext::SortOp::create(b, loc, op.getDimensionAttr(), b.getI64IntegerAttr(1), UnitAttr(),
                                  IntegerAttr(), moved);
  for (auto [number, index] : llvm::enumerate(targets))
    reverse.add(op.getInputs()[index], back.getResult(number + 1));
  return success();
}
