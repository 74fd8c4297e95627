//===- ControlReverse.cpp - The reverse of loops and branches -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reverse of a loop is a loop from the last iteration to the first. It carries
// the cotangents of the loop's carries, and for each captured value the sum of its
// cotangents. The forward loop stacks the values that the reverse loop reads, one
// slice per iteration. The reverse of a branch is a branch on the same condition;
// the forward branch also returns the values that it reads.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "Residuals.h"
#include "Reverse.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// The captured values of an op that need cotangents.
static SmallVector<Value> activeCaptures(Reverse &reverse, Operation *op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::filter_to_vector(captured, [&](Value value) { return reverse.isActive(value); });
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {

struct Trips {
  int64_t lower, step, count;
};

/// The forward loop, which stacks values for its reverse.
class Stacker {
public:
  Stacker(scf::ForOp loop, Trips trips) : loop(loop), trips(trips) {}

  /// The value of the forward body at iteration `index`, for use in the reverse.
  Value keep(OpBuilder &b, Value value, Value index) {
    Location loc = value.getLoc();
    OpBuilder outside(loop);
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape{trips.count};
    if (tensor)
      llvm::append_range(shape, tensor.getShape());
    Value stack =
        tensor::EmptyOp::create(outside, loc, shape, getElementTypeOrSelf(value.getType()));
    stacks.push_back({value, stack});
    Value read = tensor ? tensor::ExtractSliceOp::create(b, loc, tensor, stack,
                                                         offsets(b, index, tensor.getRank()),
                                                         sizes(b, tensor), strides(b, tensor))
                              .getResult()
                        : tensor::ExtractOp::create(b, loc, stack, index).getResult();
    reads.push_back(read.getDefiningOp());
    return read;
  }

  /// Replaces the forward loop by one with stacks, and returns it.
  scf::ForOp finish() {
    if (stacks.empty())
      return loop;
    OpBuilder b(loop);
    SmallVector<Value> inits(loop.getInitArgs());
    for (auto [value, stack] : stacks)
      inits.push_back(stack);
    auto longer = scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                     loop.getStep(), inits);
    longer->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    unsigned before = loop.getNumResults();
    Value induction = loop.getInductionVar();
    longer.getRegion().takeBody(loop.getRegion());
    Block *body = longer.getBody();
    Operation *yield = body->getTerminator();
    Value index = iteration(body, induction);
    SmallVector<Value> yielded(yield->getOperands());
    OpBuilder end(yield);
    for (auto [i, entry] : llvm::enumerate(stacks)) {
      auto [value, stack] = entry;
      Value carried = body->addArgument(stack.getType(), value.getLoc());
      auto tensor = dyn_cast<RankedTensorType>(value.getType());
      yielded.push_back(
          tensor
              ? tensor::InsertSliceOp::create(end, value.getLoc(), value, carried,
                                              offsets(end, index, tensor.getRank()),
                                              sizes(end, tensor), strides(end, tensor))
                    .getResult()
              : tensor::InsertOp::create(end, value.getLoc(), value, carried, index).getResult());
      reads[i]->setOperand(0, longer.getResult(before + i));
    }
    yield->setOperands(yielded);
    loop->replaceAllUsesWith(longer.getResults().take_front(before));
    return longer;
  }

private:
  static SmallVector<OpFoldResult> offsets(OpBuilder &b, Value index, int64_t rank) {
    SmallVector<OpFoldResult> result(rank + 1, b.getIndexAttr(0));
    result[0] = index;
    return result;
  }
  static SmallVector<OpFoldResult> sizes(OpBuilder &b, RankedTensorType type) {
    SmallVector<OpFoldResult> result{b.getIndexAttr(1)};
    for (int64_t extent : type.getShape())
      result.push_back(b.getIndexAttr(extent));
    return result;
  }
  static SmallVector<OpFoldResult> strides(OpBuilder &b, RankedTensorType type) {
    return SmallVector<OpFoldResult>(type.getRank() + 1, b.getIndexAttr(1));
  }

  /// The number of the iteration, from 0.
  Value iteration(Block *body, Value induction) {
    OpBuilder b = OpBuilder::atBlockBegin(body);
    Location loc = loop.getLoc();
    if (!induction.getType().isIndex())
      induction = arith::IndexCastOp::create(b, loc, b.getIndexType(), induction);
    if (trips.lower != 0)
      induction = arith::SubIOp::create(b, loc, induction,
                                        arith::ConstantIndexOp::create(b, loc, trips.lower));
    if (trips.step != 1)
      induction = arith::DivSIOp::create(b, loc, induction,
                                         arith::ConstantIndexOp::create(b, loc, trips.step));
    return induction;
  }

  scf::ForOp loop;
  Trips trips;
  SmallVector<std::pair<Value, Value>> stacks; ///< a value of the body, the empty stack
  SmallVector<Operation *> reads;
};

} // namespace

static FailureOr<Trips> countTrips(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!lower || !upper || !step || *step <= 0)
    return noDerivative(loop, "its trip count is unknown; its bounds and step must be constants");
  return Trips{*lower, *step, std::max<int64_t>(0, (*upper - *lower + *step - 1) / *step)};
}

/// Whether the reverse loop writes each part of the value's cotangent at most once and needs no
/// addition: its only reader is a slice that moves with the induction variable.
static bool isWrittenOnce(scf::ForOp loop, Trips trips, Value value) {
  Operation *reader = nullptr;
  for (Operation *user : value.getUsers())
    if (loop->isProperAncestor(user)) {
      if (reader)
        return false;
      reader = user;
    }
  auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(reader);
  if (!slice || slice->getBlock() != loop.getBody() || slice.getSource() != value)
    return false;
  for (auto [offset, size, stride] :
       llvm::zip_equal(slice.getMixedOffsets(), slice.getStaticSizes(), slice.getStaticStrides()))
    if (dyn_cast<Value>(offset) == loop.getInductionVar() && (size - 1) * stride < trips.step)
      return true;
  return false;
}

LogicalResult dist::reverseLoop(Reverse &reverse, scf::ForOp loop, ArrayRef<Value> cotangents) {
  FailureOr<Trips> trips = countTrips(loop);
  if (failed(trips))
    return failure();
  if (trips->count == 0) {
    for (auto [init, cotangent] : llvm::zip_equal(loop.getInitArgs(), cotangents))
      reverse.add(init, cotangent);
    return success();
  }
  OpBuilder &b = reverse.b;
  Location loc = loop.getLoc();
  SmallVector<unsigned> carries;
  SmallVector<Value> captures = activeCaptures(reverse, loop), inits;
  for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs()))
    if (reverse.isActive(argument) || reverse.isActive(loop.getResult(i))) {
      carries.push_back(i);
      inits.push_back(cotangents[i] ? cotangents[i] : zeros(b, loc, argument.getType()));
    }
  SmallVector<Value> once;
  for (Value captured : captures) {
    Value sofar = reverse.take(captured);
    if (!sofar && isWrittenOnce(loop, *trips, captured))
      once.push_back(captured);
    inits.push_back(sofar ? sofar : zeros(b, loc, captured.getType()));
  }
  if (inits.empty())
    return success();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto back = scf::ForOp::create(b, loc, index(0), index(trips->count), index(1), inits);
  Block *body = back.getBody();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(body);
    Value at = arith::SubIOp::create(b, loc, index(trips->count - 1), back.getInductionVar());
    Value induction = at;
    if (trips->step != 1)
      induction = arith::MulIOp::create(b, loc, induction, index(trips->step));
    if (trips->lower != 0)
      induction = arith::AddIOp::create(b, loc, induction, index(trips->lower));
    if (Type type = loop.getInductionVar().getType(); !type.isIndex())
      induction = arith::IndexCastOp::create(b, loc, type, induction);

    auto arguments = back.getRegionIterArgs();
    for (auto [i, carry] : llvm::enumerate(carries))
      reverse.add(loop.getYieldedValues()[carry], arguments[i]);
    for (auto [i, captured] : llvm::enumerate(captures)) {
      // A yielded value may be captured.
      Value yielded = reverse.take(captured);
      reverse.set(captured, arguments[carries.size() + i]);
      reverse.add(captured, yielded);
    }
    reverse.writtenOnce.insert(once.begin(), once.end());
    if (failed(reverse.sweep(*loop.getBody())))
      return failure();
    for (Value value : once)
      reverse.writtenOnce.erase(value);
    SmallVector<Value> yielded;
    for (unsigned carry : carries)
      yielded.push_back(reverse.takeOrZeros(loop.getRegionIterArgs()[carry]));
    for (Value captured : captures)
      yielded.push_back(reverse.takeOrZeros(captured));
    scf::YieldOp::create(b, loc, yielded);

    Stacker stacker(loop, *trips);
    IRMapping known;
    known.map(loop.getInductionVar(), induction);
    replaceResiduals(*loop.getBody(), *body, known,
                     [&](OpBuilder &at0, Value value) { return stacker.keep(at0, value, at); });
    if (stacker.finish() != loop)
      reverse.retire(loop);
  }
  for (auto [i, carry] : llvm::enumerate(carries))
    reverse.add(loop.getInitArgs()[carry], back.getResult(i));
  for (auto [i, captured] : llvm::enumerate(captures)) {
    // An initial value may be read inside as well.
    Value others = reverse.take(captured);
    reverse.set(captured, back.getResult(carries.size() + i));
    reverse.add(captured, others);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

LogicalResult dist::reverseBranch(Reverse &reverse, scf::IfOp branch, ArrayRef<Value> cotangents) {
  OpBuilder &b = reverse.b;
  Location loc = branch.getLoc();
  SmallVector<Value> captures = activeCaptures(reverse, branch), before;
  if (captures.empty())
    return success();
  SmallVector<Type> types;
  for (Value captured : captures) {
    before.push_back(reverse.take(captured));
    types.push_back(captured.getType());
  }
  auto back = scf::IfOp::create(b, loc, types, branch.getCondition(), /*addThenBlock=*/true,
                                /*addElseBlock=*/true);
  // Values of one forward region that its reverse reads; the other region returns undefined values.
  SmallVector<std::pair<Value, Operation *>> kept;
  for (unsigned side = 0; side < 2; ++side) {
    Block *forward = side == 0 ? branch.thenBlock() : branch.elseBlock();
    Block *body = side == 0 ? back.thenBlock() : back.elseBlock();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(body);
    for (auto [yielded, cotangent] :
         llvm::zip_equal(forward->getTerminator()->getOperands(), cotangents))
      reverse.add(yielded, cotangent);
    if (failed(reverse.sweep(*forward)))
      return failure();
    SmallVector<Value> yielded;
    for (Value captured : captures)
      yielded.push_back(reverse.takeOrZeros(captured));
    scf::YieldOp::create(b, loc, yielded);
    IRMapping known;
    replaceResiduals(*forward, *body, known, [&](OpBuilder &at, Value value) -> Value {
      // A placeholder until the forward branch returns the value.
      Value standIn = zeros(at, value.getLoc(), value.getType());
      kept.push_back({value, standIn.getDefiningOp()});
      return standIn;
    });
  }
  if (!kept.empty()) {
    OpBuilder at(branch);
    SmallVector<Type> longerTypes(branch.getResultTypes());
    for (auto [value, standIn] : kept)
      longerTypes.push_back(value.getType());
    auto longer = scf::IfOp::create(at, loc, longerTypes, branch.getCondition(),
                                    /*addThenBlock=*/false, /*addElseBlock=*/false);
    longer->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
    longer.getThenRegion().takeBody(branch.getThenRegion());
    longer.getElseRegion().takeBody(branch.getElseRegion());
    unsigned numBefore = branch.getNumResults();
    for (Block *block : {longer.thenBlock(), longer.elseBlock()}) {
      Operation *yield = block->getTerminator();
      OpBuilder end(yield);
      SmallVector<Value> yielded(yield->getOperands());
      for (auto [value, standIn] : kept)
        yielded.push_back(
            value.getParentBlock() == block ? value : zeros(end, value.getLoc(), value.getType()));
      yield->setOperands(yielded);
    }
    for (auto [i, entry] : llvm::enumerate(kept)) {
      entry.second->getResult(0).replaceAllUsesWith(longer.getResult(numBefore + i));
      entry.second->erase();
    }
    branch->replaceAllUsesWith(longer.getResults().take_front(numBefore));
    reverse.retire(branch);
  }
  for (auto [i, captured] : llvm::enumerate(captures)) {
    reverse.set(captured, before[i]);
    reverse.add(captured, back.getResult(i));
  }
  return success();
}
