//===- MultiplyLookedUp.cpp - Products with looked-up matrices ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mixture of experts may look up a matrix for each of its rows, and multiply:
//
//   m[r, k, n] = sum over g of select(group[r] == g, w[g, k, n], 0)
//   y[r, n]    = sum over k of x[r, k] m[r, k, n]
//
// Its derivative makes a matrix for each row, and adds up those of a group:
//
//   e[r, k, n] = x[r, k] z[r, n]
//   d[g, k, n] = sum over r of select(group[r] == g, e[r, k, n], 0)
//
// Both have more elements by far than the rows and the matrices. They become products of
// groups (GroupedProduct.h), of which devices compute those whose matrices they have:
//
//   y[r, n]    = sum over g, k of select(group[r] == g, x[r, k] w[g, k, n], 0)
//   d[g, k, n] = sum over r    of select(group[r] == g, x[r, k] z[r, n], 0)
//
// The omitted products have a zero factor; they matter only if x is infinite or NaN.
//
//===----------------------------------------------------------------------===//

#include "MultiplyLookedUp.h"

#include "../Recognize/MatchAttention.h"
#include "ElementRanges.h"
#include "PlainOps.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A sum from a value: out += select(conditions, product of one or two inputs, 0); or a product of
/// elements, out = the product of two inputs.
struct Sum {
  linalg::LinalgOp op;
  Value term;                       ///< in the body, without the conditions
  SmallVector<Value, 2> conditions; ///< in the body
  SmallVector<unsigned, 2> factors; ///< inputs that the term multiplies

  AffineMap mapOf(unsigned input) { return op.getIndexingMapsArray()[input]; }
  AffineMap out() { return op.getIndexingMapsArray().back(); }
  bool hasInit() { return !op.getBlock()->getArguments().back().use_empty(); }
  int64_t extentOf(unsigned loop) { return op.getStaticLoopRanges()[loop]; }
};

/// A sum whose terms read the elements of another one.
struct Pair {
  Sum inner, outer;
  unsigned read;         ///< the factor of the outer one
  AffineMap indices;     ///< of the inner one's result, over the outer one's loops
  Value fill = {};       ///< added to the rows of the result
  AffineMap fillIndices = {}; ///< over the inner one's loops
};

} // namespace

/// Adds the inputs that a term multiplies, behind conversions to wider floats.
static bool addFactors(Value term, Block &block, SmallVectorImpl<unsigned> &factors) {
  while (auto extend = term.getDefiningOp<arith::ExtFOp>())
    term = extend.getIn();
  if (auto argument = dyn_cast<BlockArgument>(term)) {
    if (argument.getOwner() != &block || argument.getArgNumber() + 1 == block.getNumArguments() ||
        llvm::is_contained(factors, argument.getArgNumber()))
      return false;
    factors.push_back(argument.getArgNumber());
    return factors.size() <= 2;
  }
  auto product = term.getDefiningOp<arith::MulFOp>();
  return product && factors.empty() && addFactors(product.getLhs(), block, factors) &&
         factors.size() == 1 && addFactors(product.getRhs(), block, factors);
}

static std::optional<Sum> matchSum(Operation *op) {
  auto sum = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!sum || op->getNumResults() != 1 || !sum.hasPureTensorSemantics() || sum.hasDynamicShape() ||
      !isPlain(op) || !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
      !llvm::all_of(sum.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  Block &block = *sum.getBlock();
  BlockArgument accumulator = block.getArguments().back();
  if (accumulator.use_empty() && sum.getNumReductionLoops() == 0 && sum.getNumDpsInputs() == 2) {
    Sum found{sum, block.getTerminator()->getOperand(0), {}, {}};
    return addFactors(found.term, block, found.factors) ? std::optional(found) : std::nullopt;
  }
  auto add = block.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add || !accumulator.hasOneUse() || !llvm::is_contained(add->getOperands(), accumulator))
    return std::nullopt;
  Sum found{sum, add.getLhs() == accumulator ? add.getRhs() : add.getLhs(), {}, {}};
  while (auto choice = found.term.getDefiningOp<arith::SelectOp>()) {
    if (!matchPattern(choice.getFalseValue(), m_AnyZeroFloat()))
      return std::nullopt;
    found.conditions.push_back(choice.getCondition());
    found.term = choice.getTrueValue();
  }
  if (!addFactors(found.term, block, found.factors))
    return std::nullopt;
  return found;
}

/// The only loop over groups, of which the conditions select one, and the loops over rows, on which
/// the conditions depend otherwise; nothing if the factors depend on both.
static std::optional<unsigned> groupsOf(Sum &sum, llvm::SmallBitVector &rows) {
  auto generic = dyn_cast<linalg::GenericOp>(sum.op.getOperation());
  SmallVector<SelectedLoop, 2> selected;
  if (generic && sum.factors.size() == 1)
    selected = selectedLoops(generic);
  if (selected.size() != 1)
    return std::nullopt;
  unsigned group = selected[0].loop;
  rows.resize(sum.op.getNumLoops());
  for (unsigned input = 0; input < sum.op.getNumDpsInputs(); ++input)
    for (unsigned loop = 0; loop < rows.size(); ++loop)
      if (input != sum.factors[0] && sum.mapOf(input).isFunctionOfDim(loop))
        rows.set(loop);
  generic.walk([&](linalg::IndexOp index) {
    if (index.getDim() != group)
      rows.set(index.getDim());
  });
  return rows.any() && !rows.test(group) ? std::optional(group) : std::nullopt;
}

/// Whether a loop with several iterations has a property.
static bool anyLoop(Sum &sum, llvm::function_ref<bool(unsigned)> property) {
  for (unsigned loop = 0; loop < sum.op.getNumLoops(); ++loop)
    if (sum.extentOf(loop) > 1 && property(loop))
      return true;
  return false;
}

/// The number for each row that a look-up starts from, 0 or NaN, as for an index out of range; null
/// if it starts from other values.
static Value fillOf(Value init, const llvm::SmallBitVector &rows, Sum &lookup, AffineMap &indices) {
  auto copy = init.getDefiningOp<linalg::GenericOp>();
  if (!copy || copy.getNumDpsInputs() != 1 || copy->getNumResults() != 1 ||
      copy.getBody()->getTerminator()->getOperand(0) != copy.getBody()->getArgument(0) ||
      !copy.getIndexingMapsArray().back().isIdentity() ||
      !copy.getIndexingMapsArray().front().isProjectedPermutation())
    return {};
  indices = copy.getIndexingMapsArray().front().compose(lookup.out());
  for (AffineExpr index : indices.getResults())
    if (!rows.test(cast<AffineDimExpr>(index).getPosition()))
      return {};
  auto choice = copy.getInputs()[0].getDefiningOp<linalg::GenericOp>();
  auto select =
      choice ? choice.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>()
             : arith::SelectOp();
  if (!select)
    return {};
  auto isAbsorbing = [](Value value) {
    APFloat number(0.0);
    return matchPattern(value, m_ConstantFloat(&number)) && (number.isZero() || number.isNaN());
  };
  bool isFill = isAbsorbing(select.getTrueValue()) && isAbsorbing(select.getFalseValue());
  return isFill ? copy.getInputs()[0] : Value();
}

static bool isLookedUpProduct(Pair &pair, ElementRanges &ranges) {
  Value init = pair.inner.op.getDpsInits()[0];
  Sum &inner = pair.inner, &outer = pair.outer;
  llvm::SmallBitVector own;
  std::optional<unsigned> group = groupsOf(inner, own);
  if (!group || inner.out().isFunctionOfDim(*group) || inner.op.getNumReductionLoops() != 1 ||
      outer.factors.size() != 2 || !outer.hasInit())
    return false;
  TypedAttr start = ranges.constantOf(init);
  if (!isZero(init) && !(start && matchPattern(start, m_AnyZeroFloat())) &&
      !(pair.fill = fillOf(init, own, inner, pair.fillIndices)))
    return false;
  AffineMap read = pair.indices,
            other = outer.mapOf(outer.factors[outer.factors[0] == pair.read ? 1 : 0]);
  llvm::SmallBitVector rows(outer.op.getNumLoops());
  for (auto [from, to] : llvm::zip_equal(inner.out().getResults(), read.getResults())) {
    unsigned loop = cast<AffineDimExpr>(from).getPosition();
    if (!own.test(loop))
      continue;
    rows.set(cast<AffineDimExpr>(to).getPosition());
    if (inner.mapOf(inner.factors[0]).isFunctionOfDim(loop))
      return false;
  }
  AffineMap out = outer.out();
  return llvm::all_of(rows.set_bits(), [&](unsigned row) { return out.isFunctionOfDim(row); }) &&
         llvm::any_of(rows.set_bits(), [&](unsigned row) { return other.isFunctionOfDim(row); }) &&
         anyLoop(outer,
                 [&](unsigned loop) {
                   return read.isFunctionOfDim(loop) && !rows.test(loop) &&
                          !other.isFunctionOfDim(loop) && out.isFunctionOfDim(loop);
                 }) &&
         anyLoop(outer, [&](unsigned loop) {
           return read.isFunctionOfDim(loop) && other.isFunctionOfDim(loop) &&
                  !out.isFunctionOfDim(loop);
         });
}

static bool isScatteredProduct(Pair &pair) {
  Sum &inner = pair.inner, &outer = pair.outer;
  llvm::SmallBitVector rows;
  std::optional<unsigned> group = groupsOf(outer, rows);
  AffineMap read = pair.indices;
  if (!group || !outer.out().isFunctionOfDim(*group) || read.isFunctionOfDim(*group) ||
      inner.factors.size() != 2 || (inner.hasInit() && !isZero(inner.op.getDpsInits()[0])) ||
      !outer.hasInit())
    return false;
  std::array<AffineMap, 2> maps{inner.mapOf(inner.factors[0]), inner.mapOf(inner.factors[1])};
  bool hasRows[2] = {false, false}, isOwn[2] = {false, false};
  for (auto [from, to] : llvm::zip_equal(inner.out().getResults(), read.getResults())) {
    unsigned loop = cast<AffineDimExpr>(from).getPosition();
    bool isRow = rows.test(cast<AffineDimExpr>(to).getPosition());
    for (unsigned n : {0, 1}) {
      hasRows[n] |= isRow && maps[n].isFunctionOfDim(loop);
      isOwn[n] |= !isRow && inner.extentOf(loop) > 1 && maps[n].isFunctionOfDim(loop) &&
                  !maps[1 - n].isFunctionOfDim(loop);
    }
  }
  return hasRows[0] && hasRows[1] && isOwn[0] && isOwn[1] &&
         llvm::none_of(rows.set_bits(),
                       [&](unsigned row) { return outer.out().isFunctionOfDim(row); });
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// Copies a value of a body, whose arguments `known` has, into one with other loops; -1 are those
/// without one, of one iteration.
static Value copyInto(OpBuilder &b, Value value, IRMapping &known, ArrayRef<int64_t> loops) {
  if (known.contains(value))
    return known.lookup(value);
  Operation *op = value.getDefiningOp();
  if (!isa<linalg::LinalgOp>(op->getParentOp()))
    return value;
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    int64_t loop = loops[index.getDim()];
    Value copy = loop < 0 ? arith::ConstantIndexOp::create(b, op->getLoc(), 0).getResult()
                          : linalg::IndexOp::create(b, op->getLoc(), loop).getResult();
    known.map(value, copy);
    return copy;
  }
  for (Value operand : op->getOperands())
    copyInto(b, operand, known, loops);
  b.clone(*op, known);
  return known.lookup(value);
}

/// Dimensions of a tensor without those that `map` lacks, each with the dropped ones around it.
static SmallVector<ReassociationIndices> keptDims(AffineMap map, const llvm::SmallBitVector &drop) {
  SmallVector<ReassociationIndices> kept;
  ReassociationIndices first;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (!drop.test(cast<AffineDimExpr>(expr).getPosition())) {
      kept.push_back(std::move(first));
      first.clear();
    }
    (kept.empty() ? first : kept.back()).push_back(static_cast<int64_t>(dim));
  }
  return kept;
}

/// An operand without the loops in `drop`, which have one iteration. Its map loses their results.
static Value squeeze(OpBuilder &b, Value value, AffineMap &map, const llvm::SmallBitVector &drop) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<ReassociationIndices> kept = keptDims(map, drop);
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> results;
  for (auto [extent, expr] : llvm::zip_equal(type.getShape(), map.getResults()))
    if (!drop.test(cast<AffineDimExpr>(expr).getPosition())) {
      shape.push_back(extent);
      results.push_back(expr);
    }
  map = AffineMap::get(map.getNumDims(), 0, results, b.getContext());
  auto narrow = RankedTensorType::get(shape, type.getElementType());
  if (narrow == type)
    return value;
  if (isZero(value))
    return arith::ConstantOp::create(b, value.getLoc(), cast<TypedAttr>(b.getZeroAttr(narrow)));
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>();
      expand && expand.getSrcType() == narrow)
    return expand.getSrc();
  return tensor::CollapseShapeOp::create(b, value.getLoc(), narrow, value, kept);
}

/// Adds a number for each row.
static Value addFill(OpBuilder &b, Value sum, Value fill, AffineMap indices) {
  auto type = cast<RankedTensorType>(sum.getType());
  Value empty = tensor::EmptyOp::create(b, sum.getLoc(), type.getShape(), type.getElementType());
  AffineMap same = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &in, Location loc, ValueRange arguments) {
    Value added = arguments[1];
    if (added.getType() != type.getElementType())
      added = arith::ExtFOp::create(in, loc, type.getElementType(), added);
    linalg::YieldOp::create(in, loc,
                            arith::AddFOp::create(in, loc, arguments[0], added).getResult());
  };
  return linalg::GenericOp::create(b, sum.getLoc(), TypeRange(type), ValueRange{sum, fill},
                                   ValueRange(empty), ArrayRef<AffineMap>{same, indices, same},
                                   loops, body)
      .getResult(0);
}

/// Writes both sums as one.
static void fuse(Pair &pair) {
  linalg::LinalgOp inner = pair.inner.op, outer = pair.outer.op;
  OpBuilder b(outer);
  // Loops of the outer sum, then those that the inner one adds up.
  SmallVector<int64_t> ranges = outer.getStaticLoopRanges(),
                       innerRanges = inner.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = outer.getIteratorTypesArray();
  SmallVector<AffineExpr> exprs(innerRanges.size());
  for (auto [from, to] : llvm::zip_equal(pair.inner.out().getResults(), pair.indices.getResults()))
    exprs[cast<AffineDimExpr>(from).getPosition()] = to;
  for (auto [expr, extent] : llvm::zip_equal(exprs, innerRanges))
    if (!expr) {
      expr = b.getAffineDimExpr(ranges.size());
      ranges.push_back(extent);
      iterators.push_back(utils::IteratorType::reduction);
    }
  unsigned count = ranges.size();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (unsigned input = 0; input < inner.getNumDpsInputs(); ++input) {
    inputs.push_back(inner.getDpsInputs()[input]);
    maps.push_back(pair.inner.mapOf(input).replaceDimsAndSymbols(exprs, {}, count, 0));
  }
  auto widen = [&](AffineMap map) {
    return AffineMap::get(count, 0, map.getResults(), b.getContext());
  };
  for (unsigned input = 0; input < outer.getNumDpsInputs(); ++input)
    if (input != pair.read) {
      inputs.push_back(outer.getDpsInputs()[input]);
      maps.push_back(widen(pair.outer.mapOf(input)));
    }
  AffineMap out = widen(pair.outer.out()), wide = out;
  // Vectors are written as matrices with one column; the column is no loop here.
  llvm::SmallBitVector drop(count);
  for (unsigned loop = 0; loop < count; ++loop)
    if (ranges[loop] == 1)
      drop.set(loop);
  for (auto [input, map] : llvm::zip_equal(inputs, maps))
    if (keptDims(map, drop).empty()) // keeps an extent of tensors with one element
      for (AffineExpr expr : map.getResults())
        drop.reset(cast<AffineDimExpr>(expr).getPosition());
  if (keptDims(out, drop).empty())
    drop.reset();
  for (auto [input, map] : llvm::zip_equal(inputs, maps))
    input = squeeze(b, input, map, drop);
  Value init = squeeze(b, outer.getDpsInits()[0], out, drop);
  maps.push_back(out);
  SmallVector<int64_t> numbers;
  SmallVector<AffineExpr> renumbered;
  SmallVector<utils::IteratorType> kept;
  for (unsigned loop = 0; loop < count; ++loop) {
    numbers.push_back(drop.test(loop) ? -1 : static_cast<int64_t>(kept.size()));
    renumbered.push_back(drop.test(loop) ? b.getAffineConstantExpr(0)
                                         : b.getAffineDimExpr(kept.size()));
    if (!drop.test(loop))
      kept.push_back(iterators[loop]);
  }
  for (AffineMap &map : maps)
    map = map.replaceDimsAndSymbols(renumbered, {}, kept.size(), 0);
  SmallVector<int64_t> innerNumbers;
  for (AffineExpr expr : exprs)
    innerNumbers.push_back(numbers[cast<AffineDimExpr>(expr).getPosition()]);

  auto body = [&](OpBuilder &in, Location loc, ValueRange arguments) {
    IRMapping ofInner, ofOuter;
    for (unsigned input = 0; input < inner.getNumDpsInputs(); ++input)
      ofInner.map(inner.getBlock()->getArgument(input), arguments[input]);
    ofOuter.map(outer.getBlock()->getArgument(pair.read),
                copyInto(in, pair.inner.term, ofInner, innerNumbers));
    for (unsigned input = 0, at = inner.getNumDpsInputs(); input < outer.getNumDpsInputs(); ++input)
      if (input != pair.read)
        ofOuter.map(outer.getBlock()->getArgument(input), arguments[at++]);
    Value term = copyInto(in, pair.outer.term, ofOuter, numbers), holds;
    auto require = [&](Value condition) {
      holds = holds ? arith::AndIOp::create(in, loc, holds, condition).getResult() : condition;
    };
    for (Value condition : pair.inner.conditions)
      require(copyInto(in, condition, ofInner, innerNumbers));
    for (Value condition : pair.outer.conditions)
      require(copyInto(in, condition, ofOuter, numbers));
    Value none =
        arith::ConstantOp::create(in, loc, cast<TypedAttr>(in.getZeroAttr(term.getType())));
    term = arith::SelectOp::create(in, loc, holds, term, none);
    linalg::YieldOp::create(in, loc,
                            arith::AddFOp::create(in, loc, arguments.back(), term).getResult());
  };
  Value sum = linalg::GenericOp::create(b, outer.getLoc(), TypeRange(init.getType()), inputs,
                                        ValueRange(init), maps, kept, body)
                  .getResult(0);
  Value old = outer->getResult(0);
  if (pair.fill) {
    SmallVector<AffineExpr> dims(kept.size());
    for (auto [dim, expr] : llvm::enumerate(maps.back().getResults()))
      dims[cast<AffineDimExpr>(expr).getPosition()] = b.getAffineDimExpr(dim);
    unsigned rank = maps.back().getNumResults();
    AffineMap indices = pair.fillIndices.replaceDimsAndSymbols(exprs, {}, count, 0)
                            .replaceDimsAndSymbols(renumbered, {}, kept.size(), 0)
                            .replaceDimsAndSymbols(dims, {}, rank, 0);
    sum = addFill(b, sum, pair.fill, indices);
  }
  if (sum.getType() == old.getType()) {
    old.replaceAllUsesWith(sum);
    return;
  }
  for (Operation *user : llvm::make_early_inc_range(old.getUsers()))
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(user);
        collapse && collapse.getType() == sum.getType()) {
      collapse.getResult().replaceAllUsesWith(sum);
      collapse.erase();
    }
  if (!old.use_empty())
    old.replaceAllUsesWith(
        tensor::ExpandShapeOp::create(b, outer.getLoc(), old.getType(), sum, keptDims(wide, drop)));
}

/// Collects the sums that read a value as a factor, or transposed. Returns whether they are all.
static bool addReaders(Sum &inner, Value value, ArrayRef<int64_t> dims, ElementRanges &ranges,
                       SmallVectorImpl<Pair> &pairs) {
  Type element = getElementTypeOrSelf(value.getType());
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (user->getBlock() != inner.op->getBlock())
      return false;
    if (auto transpose = dyn_cast<linalg::TransposeOp>(user)) {
      SmallVector<int64_t> before; // the dimension of the sum that each dimension was
      for (int64_t dim : transpose.getPermutation())
        before.push_back(dims[dim]);
      if (use.getOperandNumber() != 0 || !isPlain(user) ||
          !addReaders(inner, transpose->getResult(0), before, ranges, pairs))
        return false;
      continue;
    }
    std::optional<Sum> outer = matchSum(user);
    if (!outer || !llvm::is_contained(outer->factors, use.getOperandNumber()) ||
        llvm::any_of(pairs, [&](Pair &pair) { return pair.outer.op == user; }))
      return false;
    AffineMap read = outer->mapOf(use.getOperandNumber());
    SmallVector<AffineExpr> indices(dims.size());
    for (auto [dim, expr] : llvm::zip_equal(dims, read.getResults()))
      indices[dim] = expr;
    Pair pair{inner, *outer, use.getOperandNumber(),
              AffineMap::get(read.getNumDims(), 0, indices, read.getContext())};
    // A sum of products must not have been rounded.
    bool isExact = element == getElementTypeOrSelf(outer->op->getResult(0).getType());
    if (!isLookedUpProduct(pair, ranges) && !(isExact && isScatteredProduct(pair)))
      return false;
    pairs.push_back(std::move(pair));
  }
  return true;
}

void dist::multiplyLookedUp(func::FuncOp function) {
  SmallVector<linalg::LinalgOp> makers;
  function.walk([&](linalg::LinalgOp op) { makers.push_back(op); });
  ElementRanges ranges;
  llvm::DenseSet<Operation *> erased; // looked up only
  auto erase = [&](Operation *op) {
    erased.insert(op);
    op->erase();
  };
  for (linalg::LinalgOp maker : makers) {
    if (erased.contains(maker))
      continue;
    std::optional<Sum> inner = matchSum(maker);
    SmallVector<Pair> pairs;
    if (!inner ||
        !addReaders(*inner, maker->getResult(0),
                    llvm::to_vector(llvm::seq<int64_t>(0, inner->out().getNumResults())), ranges,
                    pairs) ||
        pairs.empty())
      continue;
    for (Pair &pair : pairs) {
      fuse(pair);
      erase(pair.outer.op);
    }
    while (!maker->use_empty()) { // transposes without readers
      Operation *last = *maker->user_begin();
      while (!last->use_empty())
        last = *last->user_begin();
      erase(last);
    }
    erase(maker);
  }
}
