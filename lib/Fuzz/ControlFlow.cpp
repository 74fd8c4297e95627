//===- ControlFlow.cpp - Random loops and branches ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera::fuzz;

/// Bound of the elements of a float carry, independent of the body.
static constexpr double kCarry = 4;

Entry ProgramBuilder::combine(const Entry &a, const Entry &c) {
  Entry result = a;
  result.exact = a.exact && c.exact;
  result.steps = std::max(a.steps, c.steps);
  result.low = a.low + c.low;
  result.high = a.high + c.high;
  result.value = a.isFloat() ? arith::AddFOp::create(b, loc, a.value, c.value).getResult()
                             : arith::AddIOp::create(b, loc, a.value, c.value).getResult();
  return result;
}

Entry ProgramBuilder::accumulate(const Entry &into) {
  int64_t rank = into.rank(), terms = random.between(1, 16);
  Shape shape(into.shape());
  shape.push_back(terms);
  Entry x = ofType(shape, into.element());
  SmallVector<bool> isReduction(rank, false);
  isReduction.push_back(true);
  Entry result = into;
  AffineMap all = b.getMultiDimIdentityMap(rank + 1);
  AffineMap kept = AffineMap::get(rank + 1, 0, all.getResults().drop_back(), b.getContext());
  result.value = generic({x}, into.value, {all, kept}, isReduction,
                         [&](OpBuilder &inner, ValueRange args) -> Value {
                           if (into.isFloat())
                             return arith::AddFOp::create(inner, loc, args[1], args[0]);
                           return arith::AddIOp::create(inner, loc, args[1], args[0]);
                         });
  result.low += static_cast<double>(terms) * std::min(0.0, x.low);
  result.high += static_cast<double>(terms) * std::max(0.0, x.high);
  result.exact = into.exact && x.exact && !into.isFloat();
  result.steps = std::max(into.steps, x.steps) + 1;
  return result;
}

SmallVector<Entry> ProgramBuilder::nested(ArrayRef<Entry> carried, int64_t count) {
  Block *block = b.getInsertionBlock();
  ++depth;
  pool.insert(pool.end(), carried.begin(), carried.end());
  for (int64_t i = 0; i < count; ++i) {
    (void)addOp();
    if (random.percent(25))
      annotateValue();
  }
  SmallVector<Entry> yielded;
  for (const Entry &entry : carried) {
    // The latest value of the type in the body, most often combined with the carry.
    Entry next = entry;
    for (Entry &candidate : llvm::reverse(pool))
      if (candidate.value.getParentBlock() == block && candidate.type() == entry.type() &&
          candidate.value != entry.value) {
        next = random.percent(50) ? combine(entry, candidate) : candidate;
        break;
      }
    if (!entry.element().isInteger(1) && random.percent(20))
      next = accumulate(next);
    yielded.push_back(within(next, kCarry));
  }
  llvm::erase_if(pool, [&](Entry &entry) { return entry.value.getParentBlock() == block; });
  --depth;
  return yielded;
}

static SmallVector<Value> valuesOf(ArrayRef<Entry> entries) {
  return llvm::map_to_vector(entries, [](const Entry &entry) { return entry.value; });
}

/// One or two bounded values, as the carries of a loop or the operands of a branch. The ops of the
/// body are not known yet: floats count as inexact.
static SmallVector<Entry> anyCarries(ProgramBuilder &p) {
  SmallVector<Entry> carries;
  for (int64_t i = p.random.between(1, 2); i > 0; --i)
    if (Entry entry = p.any(0, 3); entry.value)
      carries.push_back(entry);
  for (Entry &carry : carries)
    carry = p.within(carry, kCarry);
  return carries;
}

/// Leaves a loop body only the bounds of its carries.
static void enterRegion(SmallVector<Entry> &carries, ValueRange arguments, int mesh) {
  for (auto [entry, argument] : llvm::zip_equal(carries, arguments)) {
    entry.value = argument;
    entry.low = -kCarry;
    entry.high = kCarry;
    entry.exact &= !entry.isFloat();
    entry.mesh = mesh;
  }
}

bool ProgramBuilder::loop() {
  if (!options.controlFlow || depth > 0)
    return false;
  SmallVector<Entry> carries = anyCarries(*this);
  if (carries.empty())
    return false;
  int64_t first = random.between(0, 3), trips = random.between(0, 3), stride = random.between(1, 2);
  Value lower = index(first), upper = index(first + trips * stride), step = index(stride);
  auto op = scf::ForOp::create(b, loc, lower, upper, step, valuesOf(carries));
  SmallVector<Entry> inside = carries, yielded;
  enterRegion(inside, op.getRegionIterArgs(), mesh);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getBody());
    yielded = nested(inside, random.between(1, 3));
    scf::YieldOp::create(b, loc, valuesOf(yielded));
  }
  for (auto [entry, last, result] : llvm::zip_equal(inside, yielded, op.getResults()))
    push(result, -kCarry, kCarry, entry.exact && last.exact,
         last.steps * std::max<int64_t>(1, trips));
  return true;
}

/// An element of an integer argument in [low, high), as an index.
static Value anyIndex(ProgramBuilder &p, int64_t low, int64_t high) {
  int64_t size = p.anySize();
  Entry x = p.fresh({size}, p.b.getI32Type(), low, high);
  Value element = tensor::ExtractOp::create(p.b, p.loc, x.value,
                                            ValueRange{p.index(p.random.between(0, size - 1))});
  return arith::IndexCastOp::create(p.b, p.loc, p.b.getIndexType(), element);
}

bool ProgramBuilder::branch() {
  if (!options.controlFlow || depth > 0)
    return false;
  SmallVector<Entry> carries = anyCarries(*this);
  if (carries.empty())
    return false;
  Value condition =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, anyIndex(*this, 0, 4), index(1));
  SmallVector<Type> types;
  for (const Entry &carry : carries)
    types.push_back(carry.value.getType());
  auto op = scf::IfOp::create(b, loc, types, condition, /*addThenBlock=*/true,
                              /*addElseBlock=*/true);
  SmallVector<Entry> results = carries;
  for (Block *block : {op.thenBlock(), op.elseBlock()}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    SmallVector<Entry> yielded = nested(carries, random.between(0, 2));
    scf::YieldOp::create(b, loc, valuesOf(yielded));
    for (auto [result, last] : llvm::zip_equal(results, yielded)) {
      result.exact &= last.exact;
      result.steps = std::max(result.steps, last.steps);
    }
  }
  for (auto [entry, result] : llvm::zip_equal(results, op.getResults()))
    push(result, -kCarry, kCarry, entry.exact, entry.steps);
  return true;
}

bool ProgramBuilder::repeatUntil() {
  if (!options.controlFlow || depth > 0)
    return false;
  SmallVector<Entry> carries = anyCarries(*this);
  if (carries.empty())
    return false;
  Value limit = anyIndex(*this, 0, 4);
  // The trip count is the first carry, and unknown before the program runs.
  SmallVector<Value> inits{index(0)};
  llvm::append_range(inits, valuesOf(carries));
  SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
  auto op = scf::WhileOp::create(
      b, loc, types, inits,
      [&](OpBuilder &inner, Location at, ValueRange arguments) {
        Value more =
            arith::CmpIOp::create(inner, at, arith::CmpIPredicate::slt, arguments[0], limit);
        scf::ConditionOp::create(inner, at, more, arguments);
      },
      [](OpBuilder &, Location, ValueRange) {});
  SmallVector<Entry> inside = carries, yielded;
  enterRegion(inside, op.getAfterArguments().drop_front(), mesh);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getAfterBody());
    yielded = nested(inside, random.between(1, 2));
    Value next = arith::AddIOp::create(b, loc, op.getAfterArguments()[0], index(1));
    SmallVector<Value> values{next};
    llvm::append_range(values, valuesOf(yielded));
    scf::YieldOp::create(b, loc, values);
  }
  for (auto [entry, last, result] : llvm::zip_equal(inside, yielded, op.getResults().drop_front()))
    push(result, -kCarry, kCarry, entry.exact && last.exact, last.steps * 3);
  return true;
}

/// The sum of all elements of an integer tensor, as a scalar.
static Value sumOf(ProgramBuilder &p, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value zero = p.splat({}, type.getElementType(), 0);
  AffineMap all = p.b.getMultiDimIdentityMap(type.getRank());
  Value sum = p.generic(
      {Entry{value}}, zero, {all, AffineMap::get(type.getRank(), 0, {}, p.b.getContext())},
      SmallVector<bool>(type.getRank(), true), [&](OpBuilder &b, ValueRange args) -> Value {
        return arith::AddIOp::create(b, p.loc, args[1], args[0]);
      });
  return tensor::ExtractOp::create(p.b, p.loc, sum, ValueRange{});
}

/// A loop while the sum of a tensor, which doubles in each iteration, is below a limit: the
/// condition depends on data, which may be cut.
bool ProgramBuilder::repeatWhileSmall() {
  if (!options.controlFlow || depth > 0)
    return false;
  SmallVector<Entry> carries = anyCarries(*this);
  if (carries.empty())
    return false;
  Entry grows = fresh(anyShape(random.between(1, 2)), b.getI32Type(), 1, 4);
  int64_t elements = grows.type().getNumElements();
  Value limit = constant(b.getI32Type(), static_cast<double>(elements * random.between(1, 16)));
  SmallVector<Value> inits{grows.value};
  llvm::append_range(inits, valuesOf(carries));
  SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
  auto op = scf::WhileOp::create(b, loc, types, inits, nullptr, nullptr);
  {
    OpBuilder::InsertionGuard guard(b);
    Block *before = op.getBeforeBody();
    b.setInsertionPointToStart(before);
    Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                       sumOf(*this, before->getArgument(0)), limit);
    scf::ConditionOp::create(b, loc, more, before->getArguments());
  }
  SmallVector<Entry> inside = carries, yielded;
  enterRegion(inside, op.getAfterArguments().drop_front(), mesh);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getAfterBody());
    yielded = nested(inside, random.between(1, 2));
    Value now = op.getAfterArguments()[0];
    SmallVector<Value> values{arith::AddIOp::create(b, loc, now, now)};
    llvm::append_range(values, valuesOf(yielded));
    scf::YieldOp::create(b, loc, values);
  }
  push(op.getResult(0), 0, 0, true, 1);
  for (auto [entry, last, result] : llvm::zip_equal(inside, yielded, op.getResults().drop_front()))
    push(result, -kCarry, kCarry, entry.exact && last.exact, last.steps * 5);
  return true;
}
