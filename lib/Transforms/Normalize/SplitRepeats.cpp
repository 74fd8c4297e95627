//===- SplitRepeats.cpp - Sums of consecutive rows ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of rows that are repeated c times, and the sum of the experts of a
// token:
//
//   y[t, j] = sum over s of select(s / c == t, u[s, j], 0)
//
// Loop s is split into t and k, so that nothing is compared:
//
//   y[t, j] = sum over k of u'[t, k, j],  u' the rows of u in groups of c
//
//===----------------------------------------------------------------------===//

#include "SplitRepeats.h"
#include "PlainOps.h"

#include "ElementRanges.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A comparison of s / c with t.
struct Repeat {
  arith::CmpIOp compare;
  unsigned argument;     ///< of the body, for s / c
  unsigned rows, summed; ///< loops t and s
  int64_t times;         ///< c
};

} // namespace

static std::optional<Repeat> findRepeat(linalg::GenericOp op) {
  if (op->getNumResults() != 1 || op.getNumReductionLoops() == 0 || !isPlain(op) ||
      !op.hasPureTensorSemantics())
    return std::nullopt;
  ElementRanges ranges;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  for (auto compare : op.getBody()->getOps<arith::CmpIOp>())
    for (bool swapped : {false, true}) {
      Value left = ranges.strip(op, compare.getLhs()), right = ranges.strip(op, compare.getRhs());
      auto index = (swapped ? left : right).getDefiningOp<linalg::IndexOp>();
      auto argument = dyn_cast<BlockArgument>(swapped ? right : left);
      if (compare.getPredicate() != arith::CmpIPredicate::eq || !index || !argument ||
          argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
        continue;
      AffineMap map = maps[argument.getArgNumber()];
      if (map.getNumResults() != 1 || !isa<AffineDimExpr>(map.getResult(0)))
        continue;
      auto rows = static_cast<unsigned>(index.getDim());
      unsigned summed = cast<AffineDimExpr>(map.getResult(0)).getPosition();
      int64_t times = ranges.repetitionsOf(op.getDpsInputs()[argument.getArgNumber()]);
      if (times > 1 && kinds[rows] == utils::IteratorType::parallel &&
          kinds[summed] == utils::IteratorType::reduction &&
          extents[summed] == times * extents[rows])
        return Repeat{compare, argument.getArgNumber(), rows, summed, times};
    }
  return std::nullopt;
}

/// The tensor with a dimension of rows in groups.
static Value inGroups(OpBuilder &b, Location loc, Value tensor, int64_t dim, int64_t times) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= times;
  shape.insert(shape.begin() + dim + 1, times);
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0, at = 0; d < type.getRank(); ++d) {
    groups.push_back({at++});
    if (d == dim)
      groups.back().push_back(at++);
  }
  return tensor::ExpandShapeOp::create(b, loc, type.clone(shape), tensor, groups);
}

static void split(linalg::GenericOp op, Repeat repeat) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineExpr rows = getAffineDimExpr(repeat.rows, op.getContext());
  // Loop s becomes k.
  SmallVector<Value> inputs;
  SmallVector<AffineMap> own;
  OpBuilder b(op);
  for (auto [i, input] : llvm::enumerate(op.getDpsInputs())) {
    std::optional<int64_t> dim;
    for (auto [d, expr] : llvm::enumerate(maps[i].getResults())) {
      if (!expr.isFunctionOfDim(repeat.summed))
        continue;
      if (dim || !isa<AffineDimExpr>(expr))
        return;
      dim = d;
    }
    SmallVector<AffineExpr> results(maps[i].getResults());
    if (dim)
      results.insert(results.begin() + *dim, rows);
    own.push_back(AffineMap::get(op.getNumLoops(), 0, results, op.getContext()));
    inputs.push_back(input);
    if (dim && i != repeat.argument)
      inputs.back() = inGroups(b, op.getLoc(), input, *dim, repeat.times);
  }
  own.push_back(maps.back());
  Value compared = op.getBody()->getArgument(repeat.argument);
  bool isRead = false; // beside the comparison
  SmallVector<Value> worklist{compared};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(user))
        worklist.push_back(user->getResult(0));
      else
        isRead |= user != repeat.compare;
    }
  if (isRead) {
    inputs[repeat.argument] = inGroups(b, op.getLoc(), inputs[repeat.argument], 0, repeat.times);
  } else {
    inputs.erase(inputs.begin() + repeat.argument);
    own.erase(own.begin() + repeat.argument);
  }
  // Another operand must still give the extent of k.
  if (llvm::none_of(own, [&](AffineMap map) { return map.isFunctionOfDim(repeat.summed); }))
    return;
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(), own,
      op.getIteratorTypesArray(), [&](OpBuilder &body, Location loc, ValueRange arguments) {
        IRMapping mapping;
        unsigned next = 0;
        for (BlockArgument argument : op.getBody()->getArguments())
          if (isRead || argument != compared)
            mapping.map(argument, arguments[next++]);
        for (Operation &inner : *op.getBody()) {
          auto index = dyn_cast<linalg::IndexOp>(inner);
          if (&inner == repeat.compare) {
            mapping.map(repeat.compare.getResult(),
                        arith::ConstantOp::create(body, loc, body.getBoolAttr(true)));
          } else if (index && index.getDim() == repeat.summed) {
            Value first =
                arith::MulIOp::create(body, loc, linalg::IndexOp::create(body, loc, repeat.rows),
                                      arith::ConstantIndexOp::create(body, loc, repeat.times));
            mapping.map(index.getResult(),
                        arith::AddIOp::create(body, loc, first,
                                              linalg::IndexOp::create(body, loc, repeat.summed)));
          } else if (llvm::all_of(inner.getOperands(), [&](Value operand) {
                       return operand.getParentBlock() != op.getBody() || mapping.contains(operand);
                     })) {
            body.clone(inner, mapping);
          } // else a conversion for the comparison
        }
      });
  op->replaceAllUsesWith(made->getResults());
  op.erase();
}

void dist::splitRepeats(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops)
    if (std::optional<Repeat> repeat = findRepeat(op))
      ::split(op, *repeat);
}
