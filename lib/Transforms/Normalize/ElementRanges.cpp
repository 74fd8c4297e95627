//===- ElementRanges.cpp - Ranges of the elements of tensors --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementRanges.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

using Interval = ElementRanges::Interval;

/// The bounds within which sums and products of two numbers do not overflow.
static constexpr int64_t kMost = int64_t(1) << 31;

static std::optional<Interval> make(int64_t low, int64_t high) {
  if (low < -kMost || high > kMost)
    return std::nullopt;
  return Interval{low, high};
}

static Interval hull(Interval a, Interval b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

/// Whether an integer type represents all numbers of a range.
static bool holds(Type type, Interval range) {
  if (type.isIndex() || type.getIntOrFloatBitWidth() >= 64)
    return true;
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1)
    return range.low >= 0 && range.high <= 1;
  int64_t most = (int64_t(1) << (width - 1)) - 1;
  return range.low >= -most - 1 && range.high <= most;
}

/// All numbers of an integer type; nothing for a wide one.
static std::optional<Interval> ofType(Type type) {
  constexpr unsigned kWidest = 32;
  if (type.isIndex() || type.getIntOrFloatBitWidth() > kWidest || type.isInteger(1))
    return std::nullopt;
  int64_t most = int64_t(1) << (type.getIntOrFloatBitWidth() - 1);
  return Interval{-most, most - 1};
}

static bool isInteger(Type type) {
  return type.isIndex() || type.isInteger();
}

static std::optional<Interval> ofConstant(Attribute value) {
  auto number = [](const APInt &x) {
    int64_t n = x.getBitWidth() == 1 ? static_cast<int64_t>(x.getZExtValue()) : x.getSExtValue();
    return make(n, n);
  };
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return number(integer.getValue());
  auto elements = dyn_cast<DenseIntElementsAttr>(value);
  if (!elements || elements.empty() || (!elements.isSplat() && elements.getNumElements() > 4096))
    return std::nullopt;
  std::optional<Interval> range;
  for (const APInt &x : elements.getValues<APInt>()) {
    std::optional<Interval> one = number(x);
    if (!one)
      return std::nullopt;
    range = range ? hull(*range, *one) : *one;
    if (elements.isSplat())
      break;
  }
  return range;
}

static std::optional<Interval> decide(arith::CmpIPredicate predicate, Interval a, Interval b) {
  auto known = [](bool always, bool never) {
    return std::optional<Interval>(always  ? Interval{1, 1}
                                   : never ? Interval{0, 0}
                                           : Interval{0, 1});
  };
  bool isUnsigned = a.low >= 0 && b.low >= 0;
  switch (predicate) {
  case arith::CmpIPredicate::ult:
    if (!isUnsigned)
      return Interval{0, 1};
    [[fallthrough]];
  case arith::CmpIPredicate::slt:
    return known(a.high < b.low, a.low >= b.high);
  case arith::CmpIPredicate::ule:
    if (!isUnsigned)
      return Interval{0, 1};
    [[fallthrough]];
  case arith::CmpIPredicate::sle:
    return known(a.high <= b.low, a.low > b.high);
  case arith::CmpIPredicate::ugt:
  case arith::CmpIPredicate::uge:
    if (!isUnsigned)
      return Interval{0, 1};
    return predicate == arith::CmpIPredicate::ugt ? known(a.low > b.high, a.high <= b.low)
                                                  : known(a.low >= b.high, a.high < b.low);
  case arith::CmpIPredicate::sgt:
    return known(a.low > b.high, a.high <= b.low);
  case arith::CmpIPredicate::sge:
    return known(a.low >= b.high, a.high < b.low);
  case arith::CmpIPredicate::eq:
    return known(a.low == a.high && a == b, a.high < b.low || b.high < a.low);
  case arith::CmpIPredicate::ne:
    return known(a.high < b.low || b.high < a.low, a.low == a.high && a == b);
  }
  return Interval{0, 1};
}

std::optional<Interval> ElementRanges::of(Value tensor) {
  auto found = known.find(tensor);
  if (found != known.end())
    return found->second;
  if (!isInteger(getElementTypeOrSelf(tensor.getType())) || steps >= kMostSteps)
    return std::nullopt;
  ++steps;
  std::optional<Interval> range = compute(tensor);
  --steps;
  if (range && !holds(getElementTypeOrSelf(tensor.getType()), *range))
    range = std::nullopt;
  if (!range && getElementTypeOrSelf(tensor.getType()).isInteger(1))
    range = Interval{0, 1};
  return known[tensor] = range;
}

std::optional<Interval> ElementRanges::compute(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (Attribute value; matchPattern(op, m_Constant(&value)))
    return ofConstant(value);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
          linalg::TransposeOp>(op))
    return of(op->getOperand(0));
  if (auto sort = dyn_cast<ext::SortOp>(op))
    return of(sort.getInputs()[cast<OpResult>(tensor).getResultNumber()]);
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    Attribute value;
    return matchPattern(fill.getInputs().front(), m_Constant(&value)) ? ofConstant(value)
                                                                      : std::nullopt;
  }
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && generic->getNumResults() == 1 ? ofGeneric(generic) : std::nullopt;
}

std::optional<Interval> ElementRanges::ofGeneric(linalg::GenericOp op) {
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  if (op.getNumReductionLoops() == 0)
    return inBody(op, yielded);
  // An accumulator: of a conjunction, of a choice, or of a sum.
  Value out = op.getBody()->getArguments().back();
  Operation *last = yielded.getDefiningOp();
  std::optional<Interval> init = of(op.getDpsInits().front());
  if (!last || !init || !out.hasOneUse())
    return std::nullopt;
  auto other = [&](Value a, Value b) { return a == out ? b : b == out ? a : Value(); };
  if (auto choice = dyn_cast<arith::SelectOp>(last)) {
    Value chosen = other(choice.getTrueValue(), choice.getFalseValue());
    std::optional<Interval> range = chosen ? inBody(op, chosen) : std::nullopt;
    return range ? std::optional(hull(*init, *range)) : std::nullopt;
  }
  if (!isa<arith::AndIOp, arith::AddIOp, arith::MaxSIOp, arith::MinSIOp>(last))
    return std::nullopt;
  Value added = other(last->getOperand(0), last->getOperand(1));
  std::optional<Interval> range = added ? inBody(op, added) : std::nullopt;
  if (!range)
    return std::nullopt;
  if (isa<arith::AndIOp>(last)) {
    if (!out.getType().isInteger(1))
      return std::nullopt;
    return Interval{std::min(init->low, range->low), std::min(init->high, range->high)};
  }
  if (!isa<arith::AddIOp>(last))
    return hull(*init, *range);
  int64_t trips = 1;
  for (auto [extent, kind] : llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      trips = std::min(kMost, trips * std::min(kMost, extent));
  if (std::max(std::abs(range->low), std::abs(range->high)) > kMost / std::max<int64_t>(trips, 1))
    return std::nullopt;
  return make(init->low + std::min<int64_t>(0, range->low * trips),
              init->high + std::max<int64_t>(0, range->high * trips));
}

std::optional<Interval> ElementRanges::inBody(linalg::GenericOp op, Value scalar) {
  if (!isInteger(scalar.getType()))
    return std::nullopt;
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
      return std::nullopt;
    return of(op.getDpsInputs()[argument.getArgNumber()]);
  }
  Operation *inner = scalar.getDefiningOp();
  if (Attribute value; matchPattern(inner, m_Constant(&value)))
    return ofConstant(value);
  if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
    int64_t extent = op.getStaticLoopRanges()[index.getDim()];
    return extent > 0 ? make(0, extent - 1) : std::nullopt;
  }
  if (steps >= kMostSteps)
    return std::nullopt;
  ++steps;
  auto operand = [&](unsigned i) { return inBody(op, inner->getOperand(i)); };
  auto computed = [&]() -> std::optional<Interval> {
    if (auto select = dyn_cast<arith::SelectOp>(inner)) {
      std::optional<Interval> condition = operand(0);
      if (condition && condition->low == condition->high)
        return operand(condition->low ? 1 : 2);
      std::optional<Interval> a = operand(1), b = operand(2);
      return a && b ? std::optional(hull(*a, *b)) : std::nullopt;
    }
    std::optional<Interval> a = inner->getNumOperands() > 0 ? operand(0) : std::nullopt;
    // One bound of an unknown number is enough for a minimum or a maximum.
    bool isBound = isa<arith::MinSIOp, arith::MaxSIOp>(inner);
    if (!a && isBound)
      a = ofType(scalar.getType());
    if (!a)
      return std::nullopt;
    if (isa<arith::ExtUIOp>(inner))
      return a->low >= 0 ? a : std::nullopt;
    if (auto extend = dyn_cast<arith::ExtSIOp>(inner)) // true is -1
      return extend.getIn().getType().isInteger(1) ? make(-a->high, -a->low) : a;
    if (isa<arith::IndexCastOp, arith::TruncIOp>(inner))
      return a;
    std::optional<Interval> b = inner->getNumOperands() == 2 ? operand(1) : std::nullopt;
    if (!b && isBound)
      b = ofType(scalar.getType());
    if (!b)
      return std::nullopt;
    if (auto compare = dyn_cast<arith::CmpIOp>(inner))
      return compare.getLhs().getType().isInteger(1) ? Interval{0, 1}
                                                     : decide(compare.getPredicate(), *a, *b);
    if (isa<arith::AndIOp>(inner) && scalar.getType().isInteger(1))
      return Interval{std::min(a->low, b->low), std::min(a->high, b->high)};
    if (isa<arith::OrIOp>(inner) && scalar.getType().isInteger(1))
      return Interval{std::max(a->low, b->low), std::max(a->high, b->high)};
    if (scalar.getType().isInteger(1))
      return Interval{0, 1};
    if (isa<arith::AddIOp>(inner))
      return make(a->low + b->low, a->high + b->high);
    if (isa<arith::SubIOp>(inner))
      return make(a->low - b->high, a->high - b->low);
    if (isa<arith::MulIOp>(inner)) {
      auto [low, high] =
          std::minmax({a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high});
      return make(low, high);
    }
    if (isa<arith::RemSIOp>(inner) && b->low > 0) {
      int64_t most = b->high - 1;
      return Interval{std::min<int64_t>(0, std::max(a->low, -most)),
                      std::max<int64_t>(0, std::min(a->high, most))};
    }
    if (isa<arith::MinSIOp>(inner))
      return Interval{std::min(a->low, b->low), std::min(a->high, b->high)};
    if (isa<arith::MaxSIOp>(inner))
      return Interval{std::max(a->low, b->low), std::max(a->high, b->high)};
    if (isa<arith::FloorDivSIOp, arith::DivSIOp>(inner) && a->low >= 0 && b->low > 0)
      return make(a->low / b->high, a->high / b->low);
    return std::nullopt;
  };
  std::optional<Interval> range = computed();
  --steps;
  if (range && !holds(scalar.getType(), *range))
    return std::nullopt;
  return range;
}

Value ElementRanges::strip(linalg::GenericOp op, Value scalar) {
  while (Operation *inner = scalar.getDefiningOp()) {
    std::optional<Interval> range;
    if (auto select = dyn_cast<arith::SelectOp>(inner)) {
      std::optional<Interval> condition = inBody(op, select.getCondition());
      if (!condition || condition->low != condition->high)
        return scalar;
      scalar = condition->low ? select.getTrueValue() : select.getFalseValue();
      continue;
    }
    if (isa<arith::MaxSIOp, arith::MinSIOp>(inner)) {
      std::optional<Interval> a = inBody(op, inner->getOperand(0)),
                              b = inBody(op, inner->getOperand(1));
      bool isMax = isa<arith::MaxSIOp>(inner);
      bool first = a && b && (isMax ? a->low >= b->high : a->high <= b->low);
      bool second = a && b && (isMax ? b->low >= a->high : b->high <= a->low);
      if (!first && !second)
        return scalar;
      scalar = inner->getOperand(first ? 0 : 1);
      continue;
    }
    if (!isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(inner) ||
        !(range = inBody(op, inner->getOperand(0))) || !holds(scalar.getType(), *range) ||
        inner->getOperand(0).getType().isInteger(1) ||
        (isa<arith::ExtUIOp>(inner) && range->low < 0))
      return scalar;
    scalar = inner->getOperand(0);
  }
  return scalar;
}

Value ElementRanges::sourceOf(Value tensor) {
  while (auto op = tensor.getDefiningOp<linalg::GenericOp>()) {
    if (op->getNumResults() != 1 || op.getNumReductionLoops() != 0 ||
        !op.getIndexingMapsArray().back().isIdentity())
      return tensor;
    auto argument =
        dyn_cast<BlockArgument>(strip(op, op.getBody()->getTerminator()->getOperand(0)));
    if (!argument || argument.getOwner() != op.getBody() ||
        argument.getArgNumber() >= op.getNumDpsInputs() ||
        !op.getIndexingMapsArray()[argument.getArgNumber()].isIdentity())
      return tensor;
    tensor = op.getDpsInputs()[argument.getArgNumber()];
  }
  return tensor;
}

bool ElementRanges::isIota(Value tensor) {
  auto op = sourceOf(tensor).getDefiningOp<linalg::GenericOp>();
  if (!op || op->getNumResults() != 1 || op.getNumLoops() != 1 || op.getNumParallelLoops() != 1 ||
      !op.getIndexingMapsArray().back().isIdentity())
    return false;
  auto index =
      strip(op, op.getBody()->getTerminator()->getOperand(0)).getDefiningOp<linalg::IndexOp>();
  return static_cast<bool>(index);
}

int64_t ElementRanges::repetitionsOf(Value tensor) {
  auto op = sourceOf(tensor).getDefiningOp<linalg::GenericOp>();
  if (!op || op->getNumResults() != 1 || op.getNumLoops() != 1 || op.getNumParallelLoops() != 1 ||
      !op.getIndexingMapsArray().back().isIdentity())
    return 1;
  Operation *division = strip(op, op.getBody()->getTerminator()->getOperand(0)).getDefiningOp();
  IntegerAttr by;
  if (!isa_and_nonnull<arith::FloorDivSIOp, arith::DivSIOp>(division) ||
      !matchPattern(division->getOperand(1), m_Constant(&by)) || by.getInt() <= 0)
    return 1;
  Value divided = strip(op, division->getOperand(0));
  auto argument = dyn_cast<BlockArgument>(divided);
  bool isRow = argument ? argument.getArgNumber() < op.getNumDpsInputs() &&
                              op.getIndexingMapsArray()[argument.getArgNumber()].isIdentity() &&
                              isIota(op.getDpsInputs()[argument.getArgNumber()])
                        : static_cast<bool>(divided.getDefiningOp<linalg::IndexOp>());
  return isRow ? by.getInt() : 1;
}

TypedAttr ElementRanges::constantOf(Value tensor) {
  if (!tensor)
    return {};
  Operation *producer = tensor.getDefiningOp();
  Attribute value;
  if (producer && matchPattern(producer, m_Constant(&value))) {
    auto splat = dyn_cast<SplatElementsAttr>(value);
    return splat ? dyn_cast<TypedAttr>(splat.getSplatValue<Attribute>()) : TypedAttr();
  }
  auto op = dyn_cast_or_null<linalg::GenericOp>(producer);
  if (!op || op->getNumResults() != 1 || op.getNumReductionLoops() != 0 || steps >= kMostSteps ||
      !op.getIndexingMapsArray().back().isPermutation())
    return {};
  Value yielded = strip(op, op.getBody()->getTerminator()->getOperand(0));
  if (yielded.getType() != getElementTypeOrSelf(tensor.getType()))
    return {};
  if (matchPattern(yielded, m_Constant(&value)))
    return dyn_cast<TypedAttr>(value);
  auto argument = dyn_cast<BlockArgument>(yielded);
  if (!argument || argument.getOwner() != op.getBody() ||
      argument.getArgNumber() >= op.getNumDpsInputs())
    return {};
  ++steps;
  TypedAttr result = constantOf(op.getDpsInputs()[argument.getArgNumber()]);
  --steps;
  return result;
}

void dist::decideElements(Block &block, ElementRanges &ranges) {
  for (auto op : llvm::make_early_inc_range(block.getOps<linalg::GenericOp>())) {
    TypedAttr number = ranges.constantOf(op->getNumResults() == 1 ? op->getResult(0) : Value());
    if (!number)
      continue;
    OpBuilder b(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value constant =
        arith::ConstantOp::create(b, op.getLoc(), DenseElementsAttr::get(type, Attribute(number)));
    op->replaceAllUsesWith(ValueRange{constant});
    op->erase();
  }
}
