//===- RecomputeStacks.cpp - Shares that loops keep -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a loop over layers is a loop from the last to the first, which reads
// what the first loop has stacked, one element for each iteration:
//
//   for i:  p = softmax(q k^T);  stack[i] = p; ...     =>   for i:  ...
//   for j:  p = stack[n - 1 - j]; ...                       for j:  p = softmax(q k^T); ...
//
// with q and k at n - 1 - j. Then both loops are like two layers without loops, and the
// second one's part of the attention is recognized as its derivative. The values from
// which the shares are computed are read from their own stacks: products, carried values
// and ops that are not copied get one if they have none.
//
//===----------------------------------------------------------------------===//

#include "RecomputeStacks.h"
#include "../Normalize/PlainOps.h"
#include "MatchAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A result of a loop of which iteration i writes element i of dimension `dim`.
struct Stack {
  unsigned number; ///< of the result
  tensor::InsertSliceOp write;
  unsigned dim;

  Value element() const { return tensor::InsertSliceOp(write).getSource(); }
};

/// The values that a loop keeps for another one.
class KeptValues {
public:
  explicit KeptValues(scf::ForOp loop);

  /// Recomputes what depends on the scores of these attentions. Another loop may take this one's
  /// place.
  void recompute(ArrayRef<AttentionMatch> attentions);

private:
  struct Slice {
    SetVector<Operation *> ops; ///< of the loop's body
    SetVector<Value> leaves;    ///< also of the body, kept in stacks
    bool readsScores = false;
  };

  bool isTaken(const Stack &stack);
  bool isInBody(Value value);
  /// What is needed to compute values of the body at another place, without the stacks `dropped`.
  Slice sliceOf(ArrayRef<Value> values, ArrayRef<unsigned> dropped,
                const llvm::DenseSet<Operation *> &scores);
  bool isLeaf(Value value, const llvm::DenseSet<Operation *> &scores);
  const Stack *stackOf(Value value, ArrayRef<unsigned> dropped);
  Value readAt(OpBuilder &b, Value leaf, OpFoldResult index, ArrayRef<unsigned> dropped);

  scf::ForOp loop;
  int64_t trips = 0;
  SmallVector<Stack> stacks;
};

} // namespace

/// The single dimension of extent 1 at an offset that is not zero for all; whole in all others.
static std::optional<unsigned> elementDim(OffsetSizeAndStrideOpInterface op,
                                          RankedTensorType whole) {
  std::optional<unsigned> found;
  for (unsigned dim = 0; dim < whole.getRank(); ++dim) {
    OpFoldResult offset = op.getMixedOffsets()[dim];
    if (!isConstantIntValue(op.getMixedStrides()[dim], 1))
      return std::nullopt;
    bool isWhole = isConstantIntValue(offset, 0) &&
                   isConstantIntValue(op.getMixedSizes()[dim], whole.getDimSize(dim));
    if (isWhole)
      continue;
    if (found || !isConstantIntValue(op.getMixedSizes()[dim], 1))
      return std::nullopt;
    found = dim;
  }
  return found;
}

KeptValues::KeptValues(scf::ForOp loop) : loop(loop) {
  std::optional<int64_t> last = getConstantIntValue(loop.getUpperBound());
  if (!last || !isConstantIntValue(loop.getLowerBound(), 0) ||
      !isConstantIntValue(loop.getStep(), 1) || *last < 1)
    return;
  trips = *last;
  for (auto [number, argument, yielded] :
       llvm::enumerate(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    auto write = yielded.getDefiningOp<tensor::InsertSliceOp>();
    if (!write || write.getDest() != argument || !argument.hasOneUse() || !yielded.hasOneUse() ||
        write->getBlock() != loop.getBody() || !isPlain(write))
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    std::optional<unsigned> dim = elementDim(write, type);
    if (dim && type.getDimSize(*dim) == trips &&
        write.getMixedOffsets()[*dim] == OpFoldResult(loop.getInductionVar()))
      stacks.push_back({static_cast<unsigned>(number), write, *dim});
  }
}

bool KeptValues::isInBody(Value value) {
  return loop.getRegion().isAncestor(value.getParentRegion());
}

/// Whether all readers of a stack take one element.
bool KeptValues::isTaken(const Stack &stack) {
  Value whole = loop.getResult(stack.number);
  Type type = stack.element().getType();
  return !whole.use_empty() && llvm::all_of(whole.getUsers(), [&](Operation *user) {
    auto read = dyn_cast<tensor::ExtractSliceOp>(user);
    return read && isPlain(read) && read.getType() == type &&
           elementDim(read, read.getSourceType()) == stack.dim;
  });
}

/// The value of which a value is a reshape.
static Value reshaped(Value value) {
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// The dimensions of `from` that are one of `to`, if a collapse leads there.
static std::optional<SmallVector<ReassociationIndices>> collapseOf(Value from, Value to) {
  auto source = cast<RankedTensorType>(from.getType()),
       target = cast<RankedTensorType>(to.getType());
  if (source.getRank() <= target.getRank() || reshaped(from) != reshaped(to))
    return std::nullopt;
  return getReassociationIndicesForReshape(source, target);
}

/// The stack from whose elements a value can be had without computation.
const Stack *KeptValues::stackOf(Value value, ArrayRef<unsigned> dropped) {
  for (Stack &stack : stacks)
    if (!llvm::is_contained(dropped, stack.number) &&
        (stack.element() == value || collapseOf(stack.element(), value)))
      return &stack;
  return nullptr;
}

bool KeptValues::isLeaf(Value value, const llvm::DenseSet<Operation *> &scores) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody() || !isPlain(op) || !isMemoryEffectFree(op))
    return true;
  if (scores.contains(op))
    return false;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (linalgOp ? isProduct(linalgOp) : op->getNumRegions() > 0)
    return true;
  return !isa<tensor::TensorDialect, arith::ArithDialect, math::MathDialect, linalg::LinalgDialect>(
      op->getDialect());
}

KeptValues::Slice KeptValues::sliceOf(ArrayRef<Value> values, ArrayRef<unsigned> dropped,
                                      const llvm::DenseSet<Operation *> &scores) {
  Slice slice;
  llvm::DenseSet<Operation *> needed;
  SmallVector<Value> pending(values);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!isInBody(value) || value == loop.getInductionVar())
      continue;
    bool isTensor = isa<RankedTensorType>(value.getType());
    if (isTensor && (stackOf(value, dropped) || isLeaf(value, scores))) {
      slice.leaves.insert(value);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody()) {
      slice.leaves.insert(value); // a number that is carried, which has no stack
      continue;
    }
    slice.readsScores |= scores.contains(op);
    if (!needed.insert(op).second)
      continue;
    llvm::append_range(pending, op->getOperands());
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (inner != op && !op->isAncestor(operand.getParentRegion()->getParentOp()))
          pending.push_back(operand);
    });
  }
  for (Operation &op : *loop.getBody())
    if (needed.contains(&op))
      slice.ops.insert(&op);
  return slice;
}

Value KeptValues::readAt(OpBuilder &b, Value leaf, OpFoldResult index, ArrayRef<unsigned> dropped) {
  const Stack *stack = stackOf(leaf, dropped);
  Location loc = leaf.getLoc();
  tensor::InsertSliceOp write = stack->write;
  SmallVector<OpFoldResult> offsets = write.getMixedOffsets();
  offsets[stack->dim] = index;
  Value whole = loop.getResult(stack->number);
  auto element = tensor::ExtractSliceOp::create(
      b, loc, cast<RankedTensorType>(write.getSource().getType()), whole, offsets,
      write.getMixedSizes(), write.getMixedStrides());
  // One value for all readers of the element, so that they are seen to have the same operand.
  for (Operation *user : llvm::make_early_inc_range(whole.getUsers())) {
    if (user == element || user->getBlock() != element->getBlock() ||
        !OperationEquivalence::isEquivalentTo(user, element, OperationEquivalence::IgnoreLocations))
      continue;
    if (user->isBeforeInBlock(element))
      element->moveBefore(user);
    user->replaceAllUsesWith(element);
    user->erase();
  }
  if (write.getSource() == leaf)
    return element;
  for (Operation *user : element->getUsers())
    if (auto other = dyn_cast<tensor::CollapseShapeOp>(user);
        other && isPlain(other) && other.getType() == leaf.getType() &&
        other->getBlock() == element->getBlock()) {
      other->moveAfter(element);
      return other;
    }
  return tensor::CollapseShapeOp::create(b, loc, cast<RankedTensorType>(leaf.getType()), element,
                                         *collapseOf(write.getSource(), leaf));
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

/// Replaces a read of a stack by the element. Elements have a dimension of extent 1 more than the
/// values that they were made of; readers take the latter where they can.
static void replaceRead(tensor::ExtractSliceOp read, Value element) {
  if (auto expand = element.getDefiningOp<tensor::ExpandShapeOp>()) {
    SmallVector<ReassociationIndices> groups = expand.getReassociationIndices();
    auto isWide = [&](int64_t dim) { return expand.getType().getDimSize(dim) != 1; };
    bool addsUnits = llvm::all_of(
        groups, [&](ArrayRef<int64_t> group) { return llvm::count_if(group, isWide) <= 1; });
    for (OpOperand &use : llvm::make_early_inc_range(read->getUses())) {
      if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(use.getOwner());
          collapse && collapse.getReassociationIndices() == groups) {
        collapse.replaceAllUsesWith(expand.getSrc());
        collapse.erase();
        continue;
      }
      auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!addsUnits || !generic || !generic.isDpsInput(&use))
        continue;
      // Of each group the index of the dimension that is not 1.
      AffineMap map = generic.getMatchingIndexingMap(&use);
      SmallVector<AffineExpr> indices;
      for (ArrayRef<int64_t> group : groups) {
        const int64_t *kept = llvm::find_if(group, isWide);
        indices.push_back(map.getResult(kept == group.end() ? group.front() : *kept));
      }
      SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
      maps[use.getOperandNumber()] =
          AffineMap::get(map.getNumDims(), 0, indices, generic.getContext());
      generic.setIndexingMapsAttr(Builder(generic.getContext()).getAffineMapArrayAttr(maps));
      use.set(expand.getSrc());
    }
  }
  read.replaceAllUsesWith(element);
  read.erase();
}

/// The loop with further stacks for `leaves`, and without the results `dropped`, which are
/// ascending and stacks without readers.
static scf::ForOp rebuild(scf::ForOp loop, int64_t trips, ArrayRef<Value> leaves,
                          ArrayRef<unsigned> dropped) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  SmallVector<Value> inits, kept;
  for (auto [number, init, result] : llvm::enumerate(loop.getInitArgs(), loop.getResults()))
    if (!llvm::is_contained(dropped, number)) {
      inits.push_back(init);
      kept.push_back(result);
    }
  for (Value leaf : leaves) {
    auto type = cast<RankedTensorType>(leaf.getType());
    SmallVector<int64_t> shape{trips};
    llvm::append_range(shape, type.getShape());
    inits.push_back(arith::ConstantOp::create(b, loc, b.getZeroAttr(type.clone(shape))));
  }
  auto made =
      scf::ForOp::create(b, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  made.getRegion().takeBody(loop.getRegion());
  Block *body = made.getBody();
  Operation *yield = body->getTerminator();
  for (unsigned number : llvm::reverse(dropped)) {
    Operation *write = yield->getOperand(number).getDefiningOp();
    yield->eraseOperand(number);
    write->erase();
    body->eraseArgument(made.getNumInductionVars() + number);
  }
  b.setInsertionPoint(yield);
  for (auto [leaf, init] : llvm::zip_equal(leaves, ArrayRef(inits).take_back(leaves.size()))) {
    auto shape = cast<RankedTensorType>(init.getType()).getShape();
    SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
        sizes = getAsIndexOpFoldResult(b.getContext(), shape),
        strides(shape.size(), b.getIndexAttr(1));
    offsets[0] = made.getInductionVar();
    sizes[0] = b.getIndexAttr(1);
    Value stack = body->addArgument(init.getType(), loc);
    Value written = tensor::InsertSliceOp::create(b, loc, leaf, stack, offsets, sizes, strides);
    yield->insertOperands(yield->getNumOperands(), written);
  }
  for (auto [result, replacement] : llvm::zip(kept, made.getResults()))
    result.replaceAllUsesWith(replacement);
  loop.erase();
  return made;
}

void KeptValues::recompute(ArrayRef<AttentionMatch> attentions) {
  llvm::DenseSet<Operation *> scores;
  for (const AttentionMatch &match : attentions)
    scores.insert(match.scores);
  // What depends on the scores without a product between.
  SmallVector<unsigned> all, dropped;
  for (Stack &stack : stacks)
    all.push_back(stack.number);
  SmallVector<Value> elements;
  int64_t saved = 0;
  for (Stack &stack : stacks)
    if (isTaken(stack) && sliceOf(stack.element(), all, scores).readsScores) {
      dropped.push_back(stack.number);
      elements.push_back(stack.element());
      saved += bytesOf(stack.element());
    }
  if (dropped.empty())
    return;
  Slice slice = sliceOf(elements, dropped, scores);
  SmallVector<Value> added;
  int64_t cost = 0;
  for (Value leaf : slice.leaves) {
    if (stackOf(leaf, dropped))
      continue;
    auto type = dyn_cast<RankedTensorType>(leaf.getType());
    if (!type || type.getRank() == 0 || !type.hasStaticShape())
      return;
    added.push_back(leaf);
    cost += bytesOf(leaf);
  }
  if (2 * cost > saved)
    return;
  // The readers of one iteration's elements in one block share the copies.
  struct Reads {
    OpFoldResult iteration;
    SmallVector<std::pair<tensor::ExtractSliceOp, Value>> ops; ///< with the element
  };
  SmallVector<Reads> groups;
  for (auto [number, element] : llvm::zip_equal(dropped, elements))
    for (Operation *user : loop.getResult(number).getUsers()) {
      auto read = cast<tensor::ExtractSliceOp>(user);
      OpFoldResult iteration = read.getMixedOffsets()[*elementDim(read, read.getSourceType())];
      auto group = llvm::find_if(groups, [&](const Reads &each) {
        return each.iteration == iteration &&
               each.ops.front().first->getBlock() == read->getBlock();
      });
      if (group == groups.end())
        group = groups.insert(groups.end(), {iteration, {}});
      group->ops.push_back({read, element});
    }
  // New stacks first, since copies read them; the results to drop keep their readers until then.
  if (!added.empty()) {
    *this = KeptValues(rebuild(loop, trips, added, {}));
    slice = sliceOf(elements, dropped, scores);
  }
  for (Reads &group : groups) {
    Operation *first = group.ops.front().first;
    for (auto &[read, element] : group.ops)
      if (read->isBeforeInBlock(first))
        first = read;
    OpBuilder b(first);
    IRMapping copies;
    Value iteration = getValueOrCreateConstantIndexOp(b, first->getLoc(), group.iteration);
    copies.map(loop.getInductionVar(), iteration);
    for (Value leaf : slice.leaves)
      copies.map(leaf, readAt(b, leaf, iteration, dropped));
    SmallVector<Operation *> copied;
    for (Operation *op : slice.ops)
      copied.push_back(b.clone(*op, copies));
    for (auto &[read, element] : group.ops)
      replaceRead(read, copies.lookup(element));
    for (Operation *op : llvm::reverse(copied))
      if (isOpTriviallyDead(op))
        op->erase();
  }
  rebuild(loop, trips, {}, dropped);
}

int64_t dist::iterationsOf(Block &block) {
  int64_t count = 1;
  for (Operation *op = block.getParentOp(); op && !isa<func::FuncOp>(op); op = op->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(op))
      if (std::optional<APInt> trips = loop.getStaticTripCount())
        count = llvm::MulOverflow(count, std::max<int64_t>(trips->getSExtValue(), 1), count)
                    ? std::numeric_limits<int64_t>::max()
                    : count;
  return count;
}

void dist::recomputeStacks(func::FuncOp function, int64_t leastScoreBytes) {
  SmallVector<scf::ForOp> loops;
  function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops) {
    KeptValues kept(loop);
    int64_t least = leastScoreBytes / iterationsOf(*loop.getBody());
    int64_t leastBytes = leastBytesOfMatch(function, least);
    std::vector<AttentionMatch> attentions;
    for (auto product : loop.getBody()->getOps<linalg::LinalgOp>())
      if (isProduct(product))
        if (auto match = matchAttention(product, /*mayBeRead=*/true, leastBytes);
            match && isWorthRecomputing(*match, least)) {
          match->expressions.reset();
          attentions.push_back(std::move(*match));
        }
    if (!attentions.empty())
      kept.recompute(attentions);
  }
}
