//===- ProgramBuilder.cpp - Builds a random program -----------------------===//
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

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

/// Float values are scaled down if they may exceed this: far from overflow, and cancellation leaves
/// some digits.
static constexpr double kMagnitude = 16;
static constexpr int64_t kMaxElements = 2000;

ProgramBuilder::ProgramBuilder(MLIRContext *context, uint64_t seed, const GeneratorOptions &options)
    : random(seed), options(options), b(context), loc(UnknownLoc::get(context)),
      annotations(random, options), module(ModuleOp::create(loc)) {}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

Type ProgramBuilder::floatElement() {
  if (options.differentiable)
    return b.getF64Type();
  int64_t choice = random.between(1, 100);
  if (choice <= 65)
    return b.getF32Type();
  return choice <= 95 ? Type(b.getF64Type()) : Type(b.getBF16Type());
}

Type ProgramBuilder::anyElement() {
  if (random.percent(60))
    return floatElement();
  return random.percent(60) ? b.getI32Type() : b.getI64Type();
}

Shape ProgramBuilder::anyShape(int64_t rank) {
  Shape shape;
  int64_t elements = 1;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t size = std::min(anySize(), std::max<int64_t>(1, kMaxElements / elements));
    elements *= size;
    shape.push_back(size);
  }
  random.shuffle(shape);
  return shape;
}

Entry ProgramBuilder::any(int64_t minRank, int64_t maxRank,
                          llvm::function_ref<bool(const Entry &)> fits) {
  std::vector<Entry> candidates;
  for (const Entry &entry : pool)
    if (usable(entry) && entry.rank() >= minRank && entry.rank() <= maxRank &&
        (!fits || fits(entry)))
      candidates.push_back(entry);
  if (!candidates.empty() && random.percent(85)) {
    // Recent values most often, so that programs are deep rather than broad.
    int64_t last = static_cast<int64_t>(candidates.size()) - 1;
    return pin(candidates[random.percent(60) ? random.between(std::max<int64_t>(0, last - 2), last)
                                             : random.between(0, last)]);
  }
  for (int attempt = 0; attempt < 20; ++attempt) {
    Shape shape = anyShape(random.between(minRank, maxRank));
    Entry probe{empty(shape, anyElement())};
    bool good = !fits || fits(probe);
    RankedTensorType type = probe.type();
    probe.value.getDefiningOp()->erase();
    if (good)
      return fresh(type.getShape(), type.getElementType());
  }
  return {};
}

Entry ProgramBuilder::anyFloat(int64_t minRank, int64_t maxRank) {
  return any(minRank, maxRank, [](const Entry &entry) { return entry.isFloat(); });
}

Entry ProgramBuilder::ofType(ArrayRef<int64_t> shape, Type element) {
  std::vector<Entry> candidates;
  for (const Entry &entry : pool)
    if (usable(entry) && entry.shape() == shape && entry.element() == element)
      candidates.push_back(entry);
  if (!candidates.empty() && random.percent(75))
    return pin(random.pick(candidates));
  return fresh(shape, element);
}

PartialChoice ProgramBuilder::partialChoice(Type element, int64_t chance) {
  if (!options.partials || !random.percent(chance) || element.isInteger(1))
    return {};
  return {true, isa<FloatType>(element) && !comparesFloats};
}

Entry ProgramBuilder::fresh(ArrayRef<int64_t> shape, Type element, int64_t low, int64_t high) {
  auto type = RankedTensorType::get(shape, element);
  bool ranged = low < high;
  if (random.percent(15)) {
    // A dense constant; floats have few bits, so that the text stays readable.
    SmallVector<Attribute> values;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      if (isa<FloatType>(element))
        values.push_back(b.getFloatAttr(element, static_cast<double>(random.between(-8, 8)) / 8));
      else
        values.push_back(b.getIntegerAttr(element, ranged ? random.between(low, high - 1)
                                                          : random.between(-3, 3)));
    Value value = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, values));
    return pin({value});
  }
  // Arguments may be requested inside loops, but are defined in the function.
  unsigned number = function.getNumArguments();
  (void)function.insertArgument(number, type, {}, loc);
  Entry entry{function.getArgument(number)};
  if (!isa<FloatType>(element) && !element.isInteger(1)) {
    if (!ranged)
      std::tie(low, high) = std::pair<int64_t, int64_t>(kLowest, 5);
    function.setArgAttr(number, dist::DistDialect::kRange,
                        b.getArrayAttr({b.getI64IntegerAttr(low), b.getI64IntegerAttr(high)}));
  }
  if (random.percent(60)) {
    PartialChoice partial = partialChoice(element, 15);
    auto attr = annotations.sharding(b.getContext(), meshes[mesh], entry.rank(), partial);
    function.setArgAttr(number, dist::DistDialect::kSharding, attr);
    entry.mesh = mesh;
    entry.exact = !partial.avg;
  }
  // Only gathers use tensors of indices.
  if (!element.isIndex())
    pool.insert(pool.begin(), entry);
  return pin(entry);
}

Entry ProgramBuilder::pin(Entry entry) {
  if (meshes.size() < 2 || entry.mesh >= 0)
    return entry;
  entry.value = dist::ShardTensorOp::create(b, loc, entry.value,
                                            annotations.open(b.getContext(), meshes[mesh]));
  entry.mesh = mesh;
  return entry;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static TypedAttr numberAttr(OpBuilder &b, Type element, double value) {
  if (isa<FloatType>(element))
    return b.getFloatAttr(element, value);
  return b.getIntegerAttr(element, static_cast<int64_t>(value));
}

Value ProgramBuilder::constant(Type element, double value) {
  return arith::ConstantOp::create(b, loc, numberAttr(b, element, value));
}

Value ProgramBuilder::splat(ArrayRef<int64_t> shape, Type element, double value) {
  auto type = RankedTensorType::get(shape, element);
  if (random.percent(20))
    return tensor::SplatOp::create(b, loc, constant(element, value), type);
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, Attribute(numberAttr(b, element, value))));
}

Value ProgramBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value ProgramBuilder::empty(ArrayRef<int64_t> shape, Type element) {
  return tensor::EmptyOp::create(b, loc, shape, element);
}

Value ProgramBuilder::filled(ArrayRef<int64_t> shape, Type element, double value) {
  if (random.percent(30))
    return splat(shape, element, value);
  return linalg::FillOp::create(b, loc, constant(element, value), empty(shape, element))
      .getResult(0);
}

Entry ProgramBuilder::init(ArrayRef<int64_t> shape, Type element, double identity) {
  int64_t choice = random.between(1, 100);
  if (choice <= 70)
    return {filled(shape, element, identity), 0, 0};
  if (choice <= 80)
    return {filled(shape, element, 2), 2, 2};
  return ofType(shape, element);
}

void ProgramBuilder::push(Value value, double low, double high, bool exact, int64_t steps) {
  Entry entry{value, low, high, exact, mesh, steps};
  if (entry.isFloat()) {
    assert(std::isfinite(low) && std::isfinite(high) && low <= high && "bounds are known");
    if (entry.magnitude() > kMagnitude)
      entry = within(entry, kMagnitude / 4);
  }
  pool.push_back(entry);
}

Entry ProgramBuilder::within(Entry entry, double bound) {
  if (!entry.isFloat() || entry.magnitude() <= bound)
    return entry;
  // A power of two, so that scaling is exact.
  double scale = std::exp2(std::floor(std::log2(bound / entry.magnitude())));
  Value factor = splat(entry.shape(), entry.element(), scale);
  entry.value = arith::MulFOp::create(b, loc, entry.value, factor);
  entry.low *= scale;
  entry.high *= scale;
  return entry;
}

Entry ProgramBuilder::cutRows(int64_t rank, int64_t &parts) {
  auto [attr, extent] = annotations.rows(b.getContext(), meshes[mesh]);
  parts = extent;
  Shape shape = anyShape(rank);
  shape[0] = parts * random.between(1, 2);
  for (int64_t d = 1; d < rank; ++d)
    shape[d] = std::min<int64_t>(shape[d], 6);
  Entry entry = fresh(shape, floatElement());
  entry.value = dist::ShardTensorOp::create(b, loc, entry.value, attr);
  entry.mesh = mesh;
  return entry;
}

Value ProgramBuilder::cutLike(Value value, const Entry &rows) {
  return dist::ShardTensorOp::create(b, loc, value,
                                     rows.value.getDefiningOp<dist::ShardTensorOp>().getSharding());
}

void ProgramBuilder::pushLike(Value value, ArrayRef<Entry> operands) {
  double low = operands.front().low, high = operands.front().high;
  bool exact = true;
  int64_t steps = 1;
  for (const Entry &operand : operands) {
    low = std::min(low, operand.low);
    high = std::max(high, operand.high);
    exact &= operand.exact;
    steps = std::max(steps, operand.steps);
  }
  push(value, low, high, exact, steps);
}

Value ProgramBuilder::generic(ArrayRef<Entry> inputs, Value init, ArrayRef<AffineMap> maps,
                              ArrayRef<bool> isReduction,
                              llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  SmallVector<Value> operands;
  for (const Entry &input : inputs)
    operands.push_back(input.value);
  SmallVector<utils::IteratorType> iterators;
  for (bool reduction : isReduction)
    iterators.push_back(reduction ? utils::IteratorType::reduction : utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(b, loc, TypeRange{init.getType()}, operands, ValueRange{init},
                                      maps, iterators,
                                      [&](OpBuilder &inner, Location at, ValueRange arguments) {
                                        linalg::YieldOp::create(inner, at, body(inner, arguments));
                                      });
  return op.getResult(0);
}
