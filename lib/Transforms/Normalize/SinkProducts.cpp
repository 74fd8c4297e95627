//===- SinkProducts.cpp - Sums of products after a loop -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a recurrent layer adds up the gradient of its weights:
//
//   for t:  d  = ...                       d is stacked: it is the gradient of an input, too
//           ds = ds with [t] = d
//           w  = w + h[t]^T d
//
// One product of the stacks takes the place of the small ones, and of reading and writing the sum
// in each iteration:
//
//   for t:  ds = ds with [t] = d
//   w = w + (over t) h[t]^T ds[t]
//
// It takes no memory, since the stacks are there.
//
//===----------------------------------------------------------------------===//

#include "SinkProducts.h"
#include "../Recognize/MatchAttention.h"
#include "MergeSums.h"
#include "PlainOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// An index of a stack in iteration `iv`: sign * iv + offset.
struct Place {
  int64_t sign, offset;
  bool operator==(const Place &) const = default;
};

/// A tensor with the values of all iterations along its first dimension, and the index of each.
struct Stack {
  Value whole;
  Place place;
};

/// What a loop adds to a carry in each iteration.
struct Sum {
  unsigned carry;
  linalg::GenericOp add;
  SmallVector<linalg::GenericOp> reordered; ///< permutations of the product, the last one first
  linalg::LinalgOp product;                 ///< a contraction, or a sum over dimensions
  SmallVector<Stack> stacks;                ///< of the product's operands
};

class LoopSinker {
public:
  explicit LoopSinker(scf::ForOp loop) : loop(loop) {}

  void run();

private:
  std::optional<Place> placeOf(OpFoldResult index);
  /// The place of a slice or of a written part: all of [1, extents ...] at an index of the first
  /// dimension, each index being met once.
  std::optional<Place> placeOf(ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                               ArrayRef<OpFoldResult> strides, RankedTensorType whole);
  std::optional<Stack> stackOf(Value value);
  std::optional<Sum> match(unsigned carry);
  Value write(const Sum &sum);
  /// Lets a carry be read where it enters the loop, if only indices that are still to come matter.
  bool readsOnce(unsigned carry);
  void dropCarries(const llvm::BitVector &dropped);

  scf::ForOp loop;
};

} // namespace

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Whether each element of the result is one of the operand.
static bool isCopy(linalg::GenericOp op) {
  if (!op || op.getNumDpsInputs() != 1 || op.getNumResults() != 1 || !isPlain(op) ||
      op.getNumReductionLoops() != 0 || !op.hasPureTensorSemantics() ||
      !op.getIndexingMapsArray()[1].isIdentity())
    return false;
  Block &body = op.getRegion().front();
  return llvm::hasSingleElement(body) && body.getTerminator()->getOperand(0) == body.getArgument(0);
}

/// Extents other than 1.
static SmallVector<int64_t> longExtents(Value value) {
  return llvm::to_vector(llvm::make_filter_range(cast<RankedTensorType>(value.getType()).getShape(),
                                                 [](int64_t extent) { return extent != 1; }));
}

/// The value with the same elements in the same order that a chain of reshapes and copies begins
/// with; they add and drop dimensions of extent 1.
static Value originOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isPlain(op))
      return value;
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
      if (longExtents(op->getOperand(0)) != longExtents(value))
        return value;
    } else if (auto copy = dyn_cast<linalg::GenericOp>(op); copy && isCopy(copy)) {
      int64_t last = -1;
      for (AffineExpr expr : copy.getIndexingMapsArray()[0].getResults()) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        if (dim ? static_cast<int64_t>(dim.getPosition()) <= last : !isa<AffineConstantExpr>(expr))
          return value;
        last = dim ? dim.getPosition() : last;
      }
      if (longExtents(copy.getDpsInputs()[0]) != longExtents(value))
        return value;
    } else {
      return value;
    }
    value = op->getOperand(0);
  }
  return value;
}

/// Whether the body is `first + second` of two block arguments.
static bool addsArguments(linalg::GenericOp op) {
  Block &body = op.getRegion().front();
  auto add = dyn_cast<arith::AddFOp>(body.front());
  return add && llvm::hasSingleElement(body.without_terminator()) &&
         body.getTerminator()->getOperand(0) == add.getResult() && body.getNumArguments() >= 2 &&
         add.getLhs() != add.getRhs() && isa<BlockArgument>(add.getLhs()) &&
         isa<BlockArgument>(add.getRhs());
}

/// Whether an op adds two tensors element by element.
static bool isAddition(linalg::GenericOp op) {
  return op && op.getNumDpsInputs() == 2 && op.getNumResults() == 1 && isPlain(op) &&
         op.hasPureTensorSemantics() && addsArguments(op) &&
         op.getRegion().front().getArgument(2).use_empty() &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); });
}

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

std::optional<Place> LoopSinker::placeOf(OpFoldResult index) {
  if (std::optional<int64_t> number = getConstantIntValue(index))
    return Place{0, *number};
  auto value = cast<Value>(index);
  if (value == loop.getInductionVar())
    return Place{1, 0};
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  std::optional<Place> left = placeOf(op->getOperand(0)), right = placeOf(op->getOperand(1));
  if (!left || !right)
    return std::nullopt;
  int64_t sign = isa<arith::SubIOp>(op) ? -1 : 1;
  return Place{left->sign + sign * right->sign, left->offset + sign * right->offset};
}

std::optional<Place> LoopSinker::placeOf(ArrayRef<OpFoldResult> offsets,
                                         ArrayRef<OpFoldResult> sizes,
                                         ArrayRef<OpFoldResult> strides, RankedTensorType whole) {
  if (whole.getRank() < 1 || whole.getDimSize(0) < 2)
    return std::nullopt;
  for (int64_t dim = 0; dim < whole.getRank(); ++dim)
    if (!isConstantIntValue(sizes[dim], dim ? whole.getDimSize(dim) : 1) ||
        !isConstantIntValue(strides[dim], 1) || (dim && !isConstantIntValue(offsets[dim], 0)))
      return std::nullopt;
  std::optional<Place> place = placeOf(offsets[0]);
  const int64_t last = whole.getDimSize(0) - 1;
  bool isEachOnce = place && getConstantIntValue(loop.getLowerBound()) == 0 &&
                    getConstantIntValue(loop.getStep()) == 1 &&
                    getConstantIntValue(loop.getUpperBound()) == last + 1 &&
                    (*place == Place{1, 0} || *place == Place{-1, last});
  return isEachOnce ? place : std::nullopt;
}

std::optional<Stack> LoopSinker::stackOf(Value value) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  auto has = [&](Value whole) {
    return cast<RankedTensorType>(whole.getType()).getShape().drop_front() == shape;
  };
  Value origin = originOf(value);
  if (auto slice = origin.getDefiningOp<tensor::ExtractSliceOp>())
    if (loop.isDefinedOutsideOfLoop(slice.getSource()) && isPlain(slice))
      if (std::optional<Place> place = placeOf(slice.getMixedOffsets(), slice.getMixedSizes(),
                                               slice.getMixedStrides(), slice.getSourceType());
          place && has(slice.getSource()))
        return Stack{slice.getSource(), *place};
  for (auto [carried, result, yielded] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults(), loop.getYieldedValues())) {
    auto insert = yielded.getDefiningOp<tensor::InsertSliceOp>();
    if (!insert || insert.getDest() != carried || originOf(insert.getSource()) != origin ||
        !isPlain(insert) || !has(result))
      continue;
    if (std::optional<Place> place = placeOf(insert.getMixedOffsets(), insert.getMixedSizes(),
                                             insert.getMixedStrides(), insert.getDestType()))
      return Stack{result, *place};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

std::optional<Sum> LoopSinker::match(unsigned carry) {
  Value carried = loop.getRegionIterArgs()[carry];
  auto add = loop.getYieldedValues()[carry].getDefiningOp<linalg::GenericOp>();
  if (!carried.hasOneUse() || *carried.user_begin() != add || !isAddition(add) || !add->hasOneUse())
    return std::nullopt;
  Sum sum{carry, add, {}, nullptr, {}};
  Value added = add.getDpsInputs()[add.getDpsInputs()[0] == carried];
  while (true) {
    Operation *op = added.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || !added.hasOneUse() || !isPlain(op))
      return std::nullopt;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (isPlainSum(generic)) {
      sum.product = generic;
      break;
    }
    if (auto product = dyn_cast<linalg::ContractOp>(op); product && isProduct(product)) {
      sum.product = product;
      break;
    }
    if (!isCopy(generic) || !generic.getIndexingMapsArray()[0].isPermutation())
      return std::nullopt;
    sum.reordered.push_back(generic);
    added = generic.getDpsInputs()[0];
  }
  for (Value operand : sum.product.getDpsInputs()) {
    std::optional<Stack> stack = stackOf(operand);
    if (!stack || (!sum.stacks.empty() && !(stack->place == sum.stacks.front().place)))
      return std::nullopt;
    sum.stacks.push_back(*stack);
  }
  return sum;
}

Value LoopSinker::write(const Sum &sum) {
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  linalg::LinalgOp op = sum.product;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineExpr iteration = b.getAffineDimExpr(op.getNumLoops());
  SmallVector<Value> operands;
  for (auto [i, map] : llvm::enumerate(maps)) {
    SmallVector<AffineExpr> places(map.getResults());
    if (i < sum.stacks.size()) {
      places.insert(places.begin(), iteration);
      operands.push_back(sum.stacks[i].whole);
    }
    map = AffineMap::get(op.getNumLoops() + 1, 0, places, b.getContext());
  }
  IRMapping known;
  Value zeros = b.clone(*op.getDpsInits()[0].getDefiningOp(), known)->getResult(0);
  Operation *made;
  if (auto product = dyn_cast<linalg::ContractOp>(*op)) {
    made = linalg::ContractOp::create(b, op.getLoc(), zeros.getType(), operands, zeros,
                                      b.getAffineMapArrayAttr(maps));
    if (product.getCastAttr())
      cast<linalg::ContractOp>(made).setCastAttr(product.getCastAttr());
  } else {
    SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
    iterators.push_back(utils::IteratorType::reduction);
    auto generic = linalg::GenericOp::create(b, op.getLoc(), zeros.getType(), operands, zeros, maps,
                                             iterators);
    b.cloneRegionBefore(op->getRegion(0), generic.getRegion(), generic.getRegion().begin());
    made = generic;
  }
  known.map(op->getResult(0), made->getResult(0));
  for (linalg::GenericOp copy : llvm::reverse(sum.reordered)) {
    if (Operation *init = copy.getDpsInits()[0].getDefiningOp())
      b.clone(*init, known);
    b.clone(*copy, known);
  }
  known.map(loop.getRegionIterArgs()[sum.carry], loop.getInitArgs()[sum.carry]);
  if (Operation *init = sum.add->getOperand(2).getDefiningOp())
    b.clone(*init, known);
  return b.clone(*sum.add, known)->getResult(0);
}

bool LoopSinker::readsOnce(unsigned carry) {
  BlockArgument carried = loop.getRegionIterArgs()[carry];
  auto cleared = loop.getYieldedValues()[carry].getDefiningOp<tensor::InsertSliceOp>();
  if (!loop.getResult(carry).use_empty() || !cleared || cleared.getDest() != carried ||
      !cleared->hasOneUse())
    return false;
  std::optional<Place> place = placeOf(cleared.getMixedOffsets(), cleared.getMixedSizes(),
                                       cleared.getMixedStrides(), cleared.getDestType());
  SmallVector<tensor::ExtractSliceOp> reads;
  for (Operation *user : carried.getUsers()) {
    if (user == cleared)
      continue;
    auto read = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!place || !read || read.getSource() != carried ||
        placeOf(read.getMixedOffsets(), read.getMixedSizes(), read.getMixedStrides(),
                read.getSourceType()) != place)
      return false;
    reads.push_back(read);
  }
  if (cleared.getSource() == carried)
    return false;
  for (tensor::ExtractSliceOp read : reads)
    read.getSourceMutable().assign(loop.getInitArgs()[carry]);
  return true;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void LoopSinker::dropCarries(const llvm::BitVector &dropped) {
  OpBuilder b(loop);
  SmallVector<Value> inits, results;
  for (auto [i, init] : llvm::enumerate(loop.getInitArgs()))
    if (!dropped[i])
      inits.push_back(init);
  auto made = scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                 loop.getStep(), inits);
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  made.getRegion().takeBody(loop.getRegion());
  Operation *yield = made.getBody()->getTerminator();
  for (unsigned i = dropped.size(); i-- > 0;)
    if (dropped[i])
      yield->eraseOperand(i);
  // Users before producers.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*made.getBody())))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned i = dropped.size(); i-- > 0;)
    if (dropped[i])
      made.getBody()->eraseArgument(i + 1);
  unsigned next = 0;
  for (auto [i, result] : llvm::enumerate(loop.getResults()))
    if (!dropped[i])
      result.replaceAllUsesWith(made.getResult(next++));
  loop.erase();
}

void LoopSinker::run() {
  SmallVector<Sum> sums;
  llvm::BitVector dropped(loop.getNumRegionIterArgs());
  if (!isPlain(loop))
    return;
  for (unsigned carry = 0; carry < dropped.size(); ++carry)
    if (std::optional<Sum> sum = match(carry))
      sums.push_back(std::move(*sum));
  for (const Sum &sum : llvm::reverse(sums)) {
    loop.getResult(sum.carry).replaceAllUsesWith(write(sum));
    dropped.set(sum.carry);
  }
  for (unsigned carry = 0; carry < dropped.size(); ++carry)
    if (!dropped[carry] && readsOnce(carry))
      dropped.set(carry);
  if (dropped.any())
    dropCarries(dropped);
}

void dist::sinkProducts(func::FuncOp function) {
  SmallVector<scf::ForOp> loops;
  function.walk([&](scf::ForOp loop) { loops.push_back(loop); }); // inner ones first
  for (scf::ForOp loop : loops)
    LoopSinker(loop).run();
}
