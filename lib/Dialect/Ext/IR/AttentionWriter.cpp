//===- AttentionWriter.cpp - Write attentions as linalg ops ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionWriter.h"

#include "Local.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;

/// Scores up to kSmallBytes are computed at once; larger ones in blocks of at most kBlockBytes,
/// about the size of a cache.
static constexpr int64_t kSmallBytes = int64_t(32) << 20;
static constexpr int64_t kBlockBytes = int64_t(8) << 20;
/// With a causal mask, blocks of queries see from 1 / n to all of the keys, in at most this many
/// steps; keys are taken in whole tiles of a kernel.
static constexpr int64_t kMostKeyRanges = 8, kKeyTile = 16;
/// Products of fewer rows are slow.
static constexpr int64_t kMostRows = 128, kFewestRows = 8;

AttentionWriter::AttentionWriter(OpBuilder &b, Operation *op, GlobalIndex globalIndex,
                                 ArrayRef<std::pair<unsigned, int64_t>> limits)
    : b(b), loc(op->getLoc()), parts(partsOf(op)), domain(parts.domain), rows(parts.rows),
      scoreLoops(parts.rows), globalIndex(globalIndex), limits(limits) {
  scoreLoops.push_back(domain.key);
}

//===----------------------------------------------------------------------===//
// Maps and shapes
//===----------------------------------------------------------------------===//

AffineMap AttentionWriter::mapOf(ArrayRef<unsigned> loops) const {
  SmallVector<AffineExpr> exprs;
  for (unsigned loop : loops)
    exprs.push_back(getAffineDimExpr(loop, b.getContext()));
  return AffineMap::get(domain.extents.size(), 0, exprs, b.getContext());
}

AffineMap AttentionWriter::over(ArrayRef<unsigned> loops, AffineMap map) const {
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : map.getResults())
    exprs.push_back(
        getAffineDimExpr(llvm::find(loops, cast<AffineDimExpr>(expr).getPosition()) - loops.begin(),
                         b.getContext()));
  return AffineMap::get(loops.size(), 0, exprs, b.getContext());
}

SmallVector<unsigned> AttentionWriter::loopsOf(AffineMap map) {
  return llvm::map_to_vector(
      map.getResults(), [](AffineExpr expr) { return cast<AffineDimExpr>(expr).getPosition(); });
}

SmallVector<int64_t> AttentionWriter::shapeOver(ArrayRef<unsigned> loops) const {
  return llvm::map_to_vector(loops, [&](unsigned loop) { return domain.extents[loop]; });
}

SmallVector<int64_t> AttentionWriter::shapeOf(AffineMap map) const {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return domain.extents[cast<AffineDimExpr>(expr).getPosition()];
  });
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value AttentionWriter::zeros(ArrayRef<int64_t> shape, Type element) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

Value ext::convertFloat(OpBuilder &b, Location loc, Value x, Type type) {
  unsigned from = x.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (x.getType() == type)
    return x;
  if (from < to)
    return arith::ExtFOp::create(b, loc, type, x);
  if (from == to) // f16 and bf16
    x = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  return arith::TruncFOp::create(b, loc, type, x);
}

Value AttentionWriter::elementwise(ValueRange inputs, ArrayRef<AffineMap> inputMaps,
                                   ArrayRef<unsigned> loops, Type element, ScalarBody body) {
  SmallVector<AffineMap> all(inputMaps);
  all.push_back(b.getMultiDimIdentityMap(loops.size()));
  SmallVector<utils::IteratorType> parallel(loops.size(), utils::IteratorType::parallel);
  Value init = tensor::EmptyOp::create(b, loc, shapeOver(loops), element);
  return linalg::GenericOp::create(b, loc, init.getType(), inputs, init, all, parallel,
                                   [&](OpBuilder &inner, Location loc, ValueRange arguments) {
                                     linalg::YieldOp::create(inner, loc,
                                                             body(inner, loc, arguments));
                                   })
      .getResult(0);
}

Value AttentionWriter::convert(Value x, ArrayRef<unsigned> loops, Type element) {
  if (getElementTypeOrSelf(x.getType()) == element)
    return x;
  return elementwise(x, b.getMultiDimIdentityMap(loops.size()), loops, element,
                     [&](OpBuilder &b, Location loc, ValueRange in) {
                       return convertFloat(b, loc, in[0], element);
                     });
}

Value AttentionWriter::reduceKeys(
    Value x, ArrayRef<unsigned> loops, ArrayRef<unsigned> rows, APFloat init,
    llvm::function_ref<Value(OpBuilder &, Location, Value, Value)> body) {
  Type element = getElementTypeOrSelf(x.getType());
  Value start = arith::ConstantOp::create(b, loc, cast<TypedAttr>(FloatAttr::get(element, init)));
  Value empty = tensor::EmptyOp::create(b, loc, shapeOver(rows), element);
  Value filled = linalg::FillOp::create(b, loc, start, empty).getResult(0);
  SmallVector<utils::IteratorType> iterators;
  for (unsigned loop : loops)
    iterators.push_back(llvm::is_contained(rows, loop) ? utils::IteratorType::parallel
                                                       : utils::IteratorType::reduction);
  return linalg::GenericOp::create(
             b, loc, filled.getType(), x, filled,
             ArrayRef<AffineMap>{b.getMultiDimIdentityMap(loops.size()), over(loops, mapOf(rows))},
             iterators,
             [&](OpBuilder &inner, Location loc, ValueRange arguments) {
               linalg::YieldOp::create(inner, loc, body(inner, loc, arguments[0], arguments[1]));
             })
      .getResult(0);
}

Value AttentionWriter::contract(Value lhs, AffineMap lhsMap, Value rhs, AffineMap rhsMap,
                                AffineMap resultMap, Type element) {
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < domain.extents.size(); ++loop)
    if (llvm::any_of(ArrayRef<AffineMap>{lhsMap, rhsMap, resultMap},
                     [&](AffineMap map) { return hasLoop(map, loop); }))
      loops.push_back(loop);
  Value init = zeros(shapeOf(resultMap), element);
  ArrayAttr own =
      b.getAffineMapArrayAttr({over(loops, lhsMap), over(loops, rhsMap), over(loops, resultMap)});
  return linalg::ContractOp::create(b, loc, TypeRange{init.getType()}, ValueRange{lhs, rhs}, init,
                                    own)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

Value AttentionWriter::indexOf(OpBuilder &body, Location loc, unsigned loop,
                               ArrayRef<Value> offsets, ArrayRef<unsigned> loops) {
  Value index =
      linalg::IndexOp::create(body, loc, llvm::find(loops, loop) - loops.begin()).getResult();
  if (offsets[loop])
    index = arith::AddIOp::create(body, loc, index, offsets[loop]);
  return globalIndex(body, loc, loop, index);
}

Value AttentionWriter::writeRegion(OpBuilder &body, Location loc, Region &region,
                                   ValueRange arguments, ArrayRef<Value> offsets,
                                   ArrayRef<unsigned> loops) {
  Block &block = region.front();
  unsigned firstIndex = 1 + parts.numExtras(), numIndices = domain.extents.size();
  IRMapping mapping;
  for (BlockArgument argument : block.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (number < firstIndex)
      mapping.map(argument, arguments[number]);
    else if (number >= firstIndex + numIndices)
      mapping.map(argument, arguments[number - numIndices]);
    else if (!argument.use_empty())
      mapping.map(argument, indexOf(body, loc, number - firstIndex, offsets, loops));
  }
  for (Operation &op : block.without_terminator())
    body.clone(op, mapping);
  return mapping.lookupOrDefault(block.getTerminator()->getOperand(0));
}

void AttentionWriter::addExtras(SmallVectorImpl<Value> &inputs, SmallVectorImpl<AffineMap> &maps,
                                ArrayRef<Value> operands) const {
  for (unsigned extra = parts.firstExtra; extra < numOperands(); ++extra) {
    inputs.push_back(operands[extra]);
    maps.push_back(over(scoreLoops, operandMap(extra)));
  }
}

Value AttentionWriter::writeProducts(ArrayRef<Value> operands) {
  return contract(operands[0], operandMap(0), operands[1], operandMap(1), mapOf(scoreLoops),
                  parts.score().front().getArgument(0).getType());
}

Value AttentionWriter::weigh(OpBuilder &body, Location loc, Value share, ValueRange extras,
                             ArrayRef<Value> offsets, Type element) {
  Region *weights = parts.weights();
  if (!weights)
    return convertFloat(body, loc, share, element);
  SmallVector<Value> arguments{
      convertFloat(body, loc, share, weights->front().getArgument(0).getType())};
  llvm::append_range(arguments, extras);
  Value weight = writeRegion(body, loc, *weights, arguments, offsets, scoreLoops);
  return convertFloat(body, loc, weight, element);
}

Value AttentionWriter::writeWeights(Value shares, ArrayRef<Value> operands, ArrayRef<Value> offsets,
                                    Type element) {
  if (!parts.weights())
    return convert(shares, scoreLoops, element);
  SmallVector<Value> inputs{shares};
  SmallVector<AffineMap> inputMaps{b.getMultiDimIdentityMap(scoreLoops.size())};
  addExtras(inputs, inputMaps, operands);
  return elementwise(
      inputs, inputMaps, scoreLoops, element, [&](OpBuilder &body, Location loc, ValueRange in) {
        return weigh(body, loc, in[0], in.slice(1, parts.numExtras()), offsets, element);
      });
}

Value AttentionWriter::writeScores(Value products, ArrayRef<Value> operands,
                                   ArrayRef<Value> offsets) {
  Block &block = parts.score().front();
  FloatType type = parts.scoreType();
  if (block.getTerminator()->getOperand(0) == block.getArgument(0) && limits.empty())
    return convert(products, scoreLoops, type);
  SmallVector<Value> inputs{products};
  SmallVector<AffineMap> inputMaps{b.getMultiDimIdentityMap(scoreLoops.size())};
  addExtras(inputs, inputMaps, operands);
  return elementwise(
      inputs, inputMaps, scoreLoops, type,
      [&](OpBuilder &body, Location loc, ValueRange in) -> Value {
        Value score = writeRegion(body, loc, parts.score(), in.take_front(inputs.size()), offsets,
                                  scoreLoops);
        Value result = convertFloat(body, loc, score, type);
        for (auto [loop, limit] : limits) {
          // Unsigned: a negative index is beyond any limit.
          Value inside = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::ult,
                                               indexOf(body, loc, loop, offsets, scoreLoops),
                                               arith::ConstantIndexOp::create(body, loc, limit));
          Value least = arith::ConstantOp::create(
              body, loc,
              cast<TypedAttr>(
                  FloatAttr::get(type, APFloat::getInf(type.getFloatSemantics(), true))));
          result = arith::SelectOp::create(body, loc, inside, result, least);
        }
        return result;
      });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// The largest divisor of `extent` in (size / 2, size], else `size`: without a remainder there is
/// only one copy of a block's code.
static int64_t evenBlock(int64_t extent, int64_t size) {
  for (int64_t divisor = size; divisor > size / 2; --divisor)
    if (extent % divisor == 0)
      return divisor;
  return size;
}

std::optional<unsigned> AttentionWriter::longestQuery() const {
  auto longest = llvm::max_element(
      domain.query, [&](unsigned a, unsigned b) { return domain.extents[a] < domain.extents[b]; });
  return longest == domain.query.end() ? std::nullopt : std::optional(*longest);
}

SmallVector<int64_t> AttentionWriter::chooseBlocks() const {
  SmallVector<int64_t> blocks(domain.extents);
  auto bytes = [&]() {
    int64_t result = domain.extents[domain.key] * (parts.scoreType().getWidth() / 8);
    for (unsigned loop : rows)
      result *= blocks[loop];
    return result;
  };
  if (bytes() <= kSmallBytes && !isTurn)
    return blocks;
  int64_t most = isTurn ? std::min(kBlockBytes, bytes() / 2) : kBlockBytes;
  auto shrink = [&](unsigned loop, int64_t least) {
    while (bytes() > most && blocks[loop] > least)
      blocks[loop] = std::max(least, sharding::ceilDiv(blocks[loop], 2));
    blocks[loop] = evenBlock(domain.extents[loop], blocks[loop]);
  };
  std::optional<unsigned> longest = longestQuery();
  if (longest)
    shrink(*longest, std::min(kMostRows, domain.extents[*longest]));
  for (unsigned loop : rows)
    if (loop != longest)
      shrink(loop, 1);
  if (longest)
    shrink(*longest, std::min(kFewestRows, domain.extents[*longest]));
  return blocks;
}

SmallVector<Value> AttentionWriter::writeInBlocks(ArrayRef<Value> operands,
                                                  ArrayRef<Result> results) {
  domain.extents = loopExtents(ArrayRef(parts.maps).take_front(numOperands()),
                               ValueRange(operands.take_front(numOperands())));
  findVisibleKeys();
  return walk(rows, chooseBlocks(), operands, SmallVector<Value>(domain.extents.size()), results,
              SmallVector<Target>(results.size()));
}

void AttentionWriter::findVisibleKeys() {
  AttentionParts whole = partsOf(parts.op);
  // The position of a part of the sequence is only known at run time.
  auto isWhole = [&](unsigned loop) {
    Value probe = arith::ConstantIndexOp::create(b, loc, 0);
    return domain.extents[loop] == whole.domain.extents[loop] &&
           globalIndex(b, loc, loop, probe) == probe;
  };
  std::optional<unsigned> longest = longestQuery();
  if (longest && isWhole(*longest) && isWhole(domain.key))
    visible = visibleKeysOf(whole, *longest);
}

unsigned AttentionWriter::dimOf(AffineMap map, unsigned loop) const {
  return *map.getResultPosition(getAffineDimExpr(loop, b.getContext()));
}

SmallVector<OpFoldResult> AttentionWriter::beginsOf(AffineMap map, ArrayRef<Value> offsets,
                                                    ArrayRef<Value> origin) {
  return llvm::map_to_vector(loopsOf(map), [&](unsigned loop) {
    bool isCut = offsets[loop] && (origin.empty() || !origin[loop]);
    return isCut ? getAsOpFoldResult(offsets[loop]) : OpFoldResult(b.getIndexAttr(0));
  });
}

bool AttentionWriter::isCutIn(AffineMap map, ArrayRef<unsigned> order,
                              ArrayRef<int64_t> blocks) const {
  return llvm::any_of(order, [&](unsigned loop) {
    bool isBlocked = blocks[loop] < domain.extents[loop];
    return isBlocked &&
           (hasLoop(map, loop) || (visible && visible->query == loop && hasLoop(map, domain.key)));
  });
}

void AttentionWriter::cut(MutableArrayRef<Value> operands, unsigned loop, ArrayRef<unsigned> later,
                          ArrayRef<int64_t> blocks, ArrayRef<Value> offsets) {
  for (auto [i, operand] : llvm::enumerate(operands)) {
    AffineMap map = operandMap(i);
    SmallVector<int64_t> shape = shapeOf(map);
    auto type = cast<RankedTensorType>(operand.getType());
    if (!hasLoop(map, loop) || isCutIn(map, later, blocks) || type.getShape() == ArrayRef(shape))
      continue;
    SmallVector<OpFoldResult> strides(shape.size(), b.getIndexAttr(1));
    auto slice =
        tensor::ExtractSliceOp::create(b, loc, type.clone(shape), operand, beginsOf(map, offsets),
                                       getAsIndexOpFoldResult(b.getContext(), shape), strides);
    slice->setDiscardableAttr(dist::DistDialect::kCached, b.getUnitAttr());
    operand = slice;
  }
}

Value AttentionWriter::insert(Value part, Value whole, ArrayRef<OpFoldResult> begins) {
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, part, whole, begins,
                                       getAsIndexOpFoldResult(b.getContext(), type.getShape()),
                                       strides);
}

SmallVector<Value> AttentionWriter::put(SmallVector<Value> made, ArrayRef<Result> results,
                                        ArrayRef<Target> targets, ArrayRef<Value> offsets) {
  for (auto [value, result, target] : llvm::zip_equal(made, results, targets))
    if (target.whole)
      value = insert(value, target.whole, beginsOf(result.map, offsets, target.origin));
  return made;
}

Value AttentionWriter::addTo(Value sum, Value part) {
  auto type = cast<RankedTensorType>(part.getType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, type, part, sum, ArrayRef<AffineMap>{identity, identity},
                                   parallel,
                                   [](OpBuilder &inner, Location loc, ValueRange in) {
                                     Value added = arith::AddFOp::create(inner, loc, in[1], in[0]);
                                     linalg::YieldOp::create(inner, loc, added);
                                   })
      .getResult(0);
}

SmallVector<Value> AttentionWriter::putBlock(ArrayRef<unsigned> order, ArrayRef<int64_t> blocks,
                                             ArrayRef<Value> operands, ArrayRef<Value> offsets,
                                             ArrayRef<Result> results, ArrayRef<Target> targets,
                                             Value begin, int64_t size, ValueRange into) {
  unsigned loop = order.front();
  SmallVector<Value> slices(operands), begins(offsets);
  begins[loop] = begin;
  int64_t whole = std::exchange(domain.extents[loop], size);
  cut(slices, loop, order.drop_front(), blocks, begins);
  SmallVector<Target> inner(targets);
  for (auto [target, carry] : llvm::zip_equal(inner, into))
    if (target.whole)
      target.whole = carry;
  SmallVector<Value> next = walk(order.drop_front(), blocks, slices, begins, results, inner);
  domain.extents[loop] = whole;
  for (auto [target, carry, made] : llvm::zip_equal(inner, into, next))
    if (!target.whole)
      made = addTo(carry, made);
  return next;
}

SmallVector<Value> AttentionWriter::walkRange(ArrayRef<unsigned> order, ArrayRef<int64_t> blocks,
                                              ArrayRef<Value> operands, ArrayRef<Value> offsets,
                                              ArrayRef<Result> results, ArrayRef<Target> targets,
                                              int64_t from, int64_t to, ValueRange carries) {
  int64_t size = blocks[order.front()], whole = from + (to - from) / size * size;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  SmallVector<Value> done(carries);
  if (from < whole) {
    auto loopOp =
        scf::ForOp::create(b, loc, constant(from), constant(whole), constant(size), carries);
    loopOp->setDiscardableAttr(dist::DistDialect::kCached, b.getUnitAttr());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loopOp.getBody());
    SmallVector<Value> next = putBlock(order, blocks, operands, offsets, results, targets,
                                       loopOp.getInductionVar(), size, loopOp.getRegionIterArgs());
    scf::YieldOp::create(b, loc, next);
    done = llvm::to_vector(ValueRange(loopOp.getResults()));
  }
  if (whole < to)
    done = putBlock(order, blocks, operands, offsets, results, targets, constant(whole), to - whole,
                    done);
  return done;
}

std::pair<int64_t, int64_t> AttentionWriter::visibleTo(int64_t from, int64_t to) const {
  int64_t keys = domain.extents[domain.key];
  auto inside = [&](int64_t key) { return std::clamp<int64_t>(key, 0, keys - 1); };
  return {inside(from + visible->first) / kKeyTile * kKeyTile,
          std::min(keys, (inside(to - 1 + visible->last) / kKeyTile + 1) * kKeyTile)};
}

SmallVector<Value> AttentionWriter::walkVisible(ArrayRef<unsigned> order, ArrayRef<int64_t> blocks,
                                                ArrayRef<Value> operands, ArrayRef<Value> offsets,
                                                ArrayRef<Result> results, ArrayRef<Target> targets,
                                                int64_t from, int64_t to, ValueRange carries) {
  int64_t keys = domain.extents[domain.key];
  auto [begin, end] = visibleTo(from, to);
  std::optional<KeyBand> band = std::exchange(visible, std::nullopt); // of the loops inside
  SmallVector<Value> slices(operands), begins(offsets);
  if (end - begin < keys)
    begins[domain.key] = arith::ConstantIndexOp::create(b, loc, begin);
  domain.extents[domain.key] = end - begin;
  cut(slices, domain.key, order, blocks, begins);
  // A result with one element per key is summed over these keys separately, then added to the
  // whole.
  auto isApart = [&](unsigned result) {
    return end - begin < keys && !targets[result].whole && hasLoop(results[result].map, domain.key);
  };
  SmallVector<Value> own(carries);
  for (auto [i, carry] : llvm::enumerate(own))
    if (isApart(i))
      carry = zeros(shapeOf(results[i].map), results[i].element);
  own = walkRange(order, blocks, slices, begins, results, targets, from, to, own);
  visible = band;
  domain.extents[domain.key] = keys;
  for (auto [i, part] : llvm::enumerate(own)) {
    if (!isApart(i))
      continue;
    unsigned dim = dimOf(results[i].map, domain.key);
    Value before = Local{b, loc}.slice(carries[i], dim, b.getIndexAttr(begin), end - begin);
    SmallVector<OpFoldResult> at(results[i].map.getNumResults(), b.getIndexAttr(0));
    at[dim] = b.getIndexAttr(begin);
    part = insert(addTo(before, part), carries[i], at);
  }
  return own;
}

/// Marks what was written behind `before`: all but the results stays in a cache.
void AttentionWriter::markCached(Operation *before, ArrayRef<Value> results) {
  Block::iterator from = before ? std::next(before->getIterator()) : b.getBlock()->begin();
  for (Operation &op : llvm::make_range(from, b.getInsertionPoint()))
    if (isa<linalg::LinalgOp>(op) && !llvm::is_contained(results, op.getResult(0)))
      op.setDiscardableAttr(dist::DistDialect::kCached, b.getUnitAttr());
}

SmallVector<Value> AttentionWriter::walk(ArrayRef<unsigned> order, ArrayRef<int64_t> blocks,
                                         ArrayRef<Value> operands, ArrayRef<Value> offsets,
                                         ArrayRef<Result> results, ArrayRef<Target> targets) {
  if (order.empty()) {
    Operation *before =
        b.getInsertionPoint() == b.getBlock()->begin() ? nullptr : &*std::prev(b.getInsertionPoint());
    SmallVector<Value> made = write(operands, offsets);
    markCached(before, made);
    return put(std::move(made), results, targets, offsets);
  }
  unsigned loop = order.front();
  int64_t extent = domain.extents[loop], size = blocks[loop];
  if (size >= extent)
    return walk(order.drop_front(), blocks, operands, offsets, results, targets);
  // Blocks are inserted into the outermost tensor that has them; sums over blocks are made first.
  SmallVector<Target> inner(targets), outer(targets);
  SmallVector<Value> carries;
  for (auto [result, within, without] : llvm::zip_equal(results, inner, outer)) {
    if (!hasLoop(result.map, loop)) {
      carries.push_back(zeros(shapeOf(result.map), result.element));
      within = {};
      continue;
    }
    if (!within.whole)
      within = {tensor::EmptyOp::create(b, loc, shapeOf(result.map), result.element),
                SmallVector<Value>(offsets)};
    carries.push_back(within.whole);
    without = {};
  }
  if (!visible || visible->query != loop)
    return put(walkRange(order, blocks, operands, offsets, results, inner, 0, extent, carries),
               results, outer, offsets);
  // The code of a block is generated for each number of keys.
  int64_t count = sharding::ceilDiv(extent, size), groups = std::min(count, kMostKeyRanges);
  auto beginOf = [&](int64_t group) { return std::min(extent, count * group / groups * size); };
  for (int64_t group = 0; group < groups;) {
    int64_t from = beginOf(group++), to = beginOf(group);
    while (group < groups && visibleTo(from, beginOf(group + 1)) == visibleTo(from, to) &&
           visibleTo(beginOf(group), beginOf(group + 1)) == visibleTo(from, to))
      to = beginOf(++group);
    carries = walkVisible(order, blocks, operands, offsets, results, inner, from, to, carries);
  }
  return put(carries, results, outer, offsets);
}
