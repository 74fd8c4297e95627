//===- AttentionBand.cpp - The keys visible to a query --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The conditions of a mask are comparisons of indices. A condition that depends
// only on the distance of key and query holds for an interval of distances:
//
//   m >= n            (-inf, 0]           m - n < 256        [-255, inf)
//   |m - n| <= 8      [-8, 8]             m / 64 == n / 64   within [-63, 63]
//
// Each condition has two intervals, one that contains all distances where it may
// hold, and one of distances where it must. And, or, not, and the choices between
// scores combine these.
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Ext/IR/AttentionBand.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;

/// A score up to this value has no weight in a softmax with an unmasked score.
static constexpr double kMasked = -6e4;

namespace {

/// Distances from a query to a key; empty if first > last.
struct Interval {
  static constexpr int64_t kInfinity = int64_t(1) << 40;
  int64_t first = -kInfinity, last = kInfinity;

  static Interval none() { return {1, 0}; }
  bool isEmpty() const { return first > last; }
  Interval intersect(Interval other) const {
    return {std::max(first, other.first), std::min(last, other.last)};
  }
  /// The smallest interval that contains both.
  Interval join(Interval other) const {
    if (isEmpty() || other.isEmpty())
      return isEmpty() ? other : *this;
    return {std::min(first, other.first), std::max(last, other.last)};
  }
  /// The largest interval that is known to be within the union.
  Interval larger(Interval other) const {
    if (isEmpty() || other.isEmpty())
      return isEmpty() ? other : *this;
    if (std::max(first, other.first) <= std::min(last, other.last) + 1)
      return join(other);
    return last - first >= other.last - other.first ? *this : other;
  }
};

/// Distances where a property may hold, and where it must.
struct Distances {
  Interval may, must = Interval::none();
};

struct Condition {
  Distances holds, fails;
  Condition inverted() const { return {fails, holds}; }
};

/// (sum of coefficients * indices + a value in [low, high]) / divisor.
struct IndexValue {
  SmallVector<int64_t> coefficients; ///< by loop
  int64_t low = 0, high = 0;
  int64_t divisor = 1;

  IndexValue times(int64_t factor) const {
    IndexValue result = *this;
    for (int64_t &coefficient : result.coefficients)
      coefficient *= factor;
    result.low *= factor;
    result.high *= factor;
    if (factor < 0)
      std::swap(result.low, result.high);
    return result;
  }
  IndexValue plus(const IndexValue &other) const {
    IndexValue result = times(other.divisor), scaled = other.times(divisor);
    for (auto [a, b] : llvm::zip_equal(result.coefficients, scaled.coefficients))
      a += b;
    result.low += scaled.low;
    result.high += scaled.high;
    result.divisor = divisor * other.divisor;
    return result;
  }
  bool isModerate() const {
    constexpr int64_t kMost = int64_t(1) << 24;
    auto isSmall = [](int64_t value) { return std::abs(value) <= kMost; };
    return llvm::all_of(coefficients, isSmall) && isSmall(low) && isSmall(high) && isSmall(divisor);
  }
};

/// An integer of the region, or its negative.
struct Term {
  Value value;
  bool isNegative = false;
  Term operator-() const { return {value, !isNegative}; }
};

class MaskReader {
public:
  MaskReader(const AttentionParts &parts, unsigned query) : parts(parts), query(query) {}

  /// Distances of scores that are not masked.
  Distances visible(Value score);
  Condition conditionOf(Value value);
  bool isMaskedByFinite = false;

private:
  std::optional<IndexValue> read(Value value) const;
  std::optional<IndexValue> readNew(Value value) const;
  std::optional<IndexValue> read(Term term) const;
  /// Whether a < b, or with `orEqual` a <= b.
  Condition isLess(Term a, Term b, bool orEqual) const;
  Condition areEqual(Term a, Term b) const;
  /// Whether one value depends on the key position as the other depends on the query position.
  bool isSameOfKey(Value a, Value b) const;
  /// The value of a number if a flag in its computation has a value; nothing if it depends on
  /// anything else.
  static std::optional<llvm::APFloat> valueWhere(Value number, Value flag, bool isSet);
  Distances visible(const llvm::APFloat &score);
  static Condition both(const Condition &a, const Condition &b);
  static Condition either(const Condition &a, const Condition &b) {
    return both(a.inverted(), b.inverted()).inverted();
  }

  const AttentionParts &parts;
  unsigned query;
};

} // namespace

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

static std::optional<int64_t> constantOf(Value value) {
  llvm::APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) || constant.getSignificantBits() > 64)
    return std::nullopt;
  return constant.getSExtValue();
}

std::optional<IndexValue> MaskReader::read(Value value) const {
  std::optional<IndexValue> result = readNew(value);
  return result && result->isModerate() ? result : std::nullopt;
}

std::optional<IndexValue> MaskReader::readNew(Value value) const {
  size_t numLoops = parts.domain.extents.size();
  IndexValue result;
  result.coefficients.assign(numLoops, 0);
  if (std::optional<int64_t> constant = constantOf(value)) {
    result.low = result.high = *constant;
    return result;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned firstIndex = 1 + parts.numExtras(), number = argument.getArgNumber();
    if (number < firstIndex || number >= firstIndex + numLoops)
      return std::nullopt;
    result.coefficients[number - firstIndex] = 1;
    return result;
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
          arith::TruncIOp>(op)) {
    // The indices of a sequence fit the integer type in which a program keeps them.
    unsigned width = value.getType().isIndex() ? 64 : value.getType().getIntOrFloatBitWidth();
    return width >= 32 ? read(op->getOperand(0)) : std::nullopt;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) { // one of two with equal coefficients
    std::optional<IndexValue> a = read(select.getTrueValue()), b = read(select.getFalseValue());
    if (!a || !b || a->coefficients != b->coefficients || a->divisor != b->divisor)
      return std::nullopt;
    a->low = std::min(a->low, b->low);
    a->high = std::max(a->high, b->high);
    return a;
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<IndexValue> a = read(op->getOperand(0)), b = read(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return a->plus(*b);
  if (isa<arith::SubIOp>(op))
    return a->plus(b->times(-1));
  std::optional<int64_t> factor = constantOf(op->getOperand(1));
  if (isa<arith::MulIOp>(op) && factor)
    return a->times(*factor);
  if (isa<arith::MulIOp>(op) && constantOf(op->getOperand(0)))
    return b->times(*constantOf(op->getOperand(0)));
  if (isa<arith::DivSIOp, arith::FloorDivSIOp, arith::DivUIOp>(op) && factor && *factor > 0) {
    // Rounding down subtracts at most (factor - 1) / factor; rounding towards zero may add as much.
    int64_t most = (*factor - 1) * a->divisor;
    bool isNatural = a->low >= 0 && llvm::all_of(a->coefficients, [](int64_t c) { return c >= 0; });
    a->low -= most;
    a->high += isa<arith::DivSIOp>(op) && !isNatural ? most : 0;
    a->divisor *= *factor;
    return a;
  }
  return std::nullopt;
}

std::optional<IndexValue> MaskReader::read(Term term) const {
  std::optional<IndexValue> value = read(term.value);
  return value && term.isNegative ? value->times(-1) : value;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// The distances d with coefficient * d + constant <= 0.
static Interval notPositive(int64_t coefficient, int64_t constant) {
  Interval result;
  if (coefficient == 0)
    return constant <= 0 ? result : Interval::none();
  if (coefficient > 0)
    result.last = llvm::divideFloorSigned(-constant, coefficient);
  else
    result.first = llvm::divideCeilSigned(constant, -coefficient);
  return result;
}

Condition MaskReader::both(const Condition &a, const Condition &b) {
  return {{a.holds.may.intersect(b.holds.may), a.holds.must.intersect(b.holds.must)},
          {a.fails.may.join(b.fails.may), a.fails.must.larger(b.fails.must)}};
}

Condition MaskReader::isLess(Term a, Term b, bool orEqual) const {
  // |x|, max(x, y) and min(x, y) are one of two terms, the greater or the smaller.
  auto alternatives = [](Term term) -> std::optional<std::pair<std::pair<Term, Term>, bool>> {
    Operation *op = term.value.getDefiningOp();
    if (isa_and_nonnull<math::AbsIOp>(op)) {
      Term x{op->getOperand(0)};
      return {{{x, -x}, !term.isNegative}};
    }
    if (!isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp>(op))
      return std::nullopt;
    return {{{Term{op->getOperand(0), term.isNegative}, Term{op->getOperand(1), term.isNegative}},
             isa<arith::MaxSIOp>(op) != term.isNegative}};
  };
  if (auto found = alternatives(a)) {
    Condition first = isLess(found->first.first, b, orEqual);
    Condition second = isLess(found->first.second, b, orEqual);
    return found->second ? both(first, second) : either(first, second);
  }
  if (auto found = alternatives(b)) {
    Condition first = isLess(a, found->first.first, orEqual);
    Condition second = isLess(a, found->first.second, orEqual);
    return found->second ? either(first, second) : both(first, second);
  }
  std::optional<IndexValue> left = read(a), right = read(-b);
  if (!left || !right)
    return {};
  IndexValue difference = left->plus(*right);
  int64_t coefficient = difference.coefficients[parts.domain.key];
  for (auto [loop, other] : llvm::enumerate(difference.coefficients))
    if (loop != parts.domain.key && other != (loop == query ? -coefficient : 0))
      return {};
  int64_t strict = orEqual ? 0 : 1;
  return {{notPositive(coefficient, difference.low + strict),
           notPositive(coefficient, difference.high + strict)},
          {notPositive(-coefficient, 1 - strict - difference.high),
           notPositive(-coefficient, 1 - strict - difference.low)}};
}

Condition MaskReader::areEqual(Term a, Term b) const {
  Condition result = both(isLess(a, b, true), isLess(b, a, true));
  if (isSameOfKey(a.value, b.value))
    result.holds.must = result.holds.must.larger({0, 0});
  return result;
}

bool MaskReader::isSameOfKey(Value a, Value b) const {
  auto argument = dyn_cast<BlockArgument>(a), other = dyn_cast<BlockArgument>(b);
  if (argument && other) {
    unsigned firstIndex = 1 + parts.numExtras(), key = parts.domain.key;
    std::pair<unsigned, unsigned> loops{argument.getArgNumber() - firstIndex,
                                        other.getArgNumber() - firstIndex};
    return loops == std::pair(query, key) || loops == std::pair(key, query);
  }
  if (a == b && constantOf(a))
    return true;
  Operation *op = a.getDefiningOp(), *like = b.getDefiningOp();
  return op && like && op->getName() == like->getName() &&
         op->getAttrDictionary() == like->getAttrDictionary() &&
         llvm::all_of(llvm::zip_equal(op->getOperands(), like->getOperands()),
                      [&](auto pair) { return isSameOfKey(std::get<0>(pair), std::get<1>(pair)); });
}

Condition MaskReader::conditionOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (std::optional<int64_t> constant = constantOf(value)) {
    Distances always{Interval(), Interval()}, never{Interval::none(), Interval::none()};
    return *constant ? Condition{always, never} : Condition{never, always};
  }
  if (isa<arith::AndIOp, arith::OrIOp>(op) && value.getType().isInteger(1)) {
    Condition a = conditionOf(op->getOperand(0)), b = conditionOf(op->getOperand(1));
    return isa<arith::AndIOp>(op) ? both(a, b) : either(a, b);
  }
  if (isa<arith::XOrIOp>(op) && value.getType().isInteger(1) && constantOf(op->getOperand(1)))
    return *constantOf(op->getOperand(1)) ? conditionOf(op->getOperand(0)).inverted()
                                          : conditionOf(op->getOperand(0));
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Condition chosen = conditionOf(select.getCondition());
    return either(both(chosen, conditionOf(select.getTrueValue())),
                  both(chosen.inverted(), conditionOf(select.getFalseValue())));
  }
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return {};
  Term a{compare.getLhs()}, b{compare.getRhs()};
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return isLess(a, b, false);
  case arith::CmpIPredicate::sle:
    return isLess(a, b, true);
  case arith::CmpIPredicate::sgt:
    return isLess(b, a, false);
  case arith::CmpIPredicate::sge:
    return isLess(b, a, true);
  case arith::CmpIPredicate::eq:
    return areEqual(a, b);
  case arith::CmpIPredicate::ne:
    return areEqual(a, b).inverted();
  default:
    return {};
  }
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// The flag from which a number is computed by arithmetic with constants; null if there is none.
static Value flagOf(Value number) {
  Operation *op = number.getDefiningOp();
  if (isa_and_nonnull<arith::UIToFPOp>(op) && op->getOperand(0).getType().isInteger(1))
    return op->getOperand(0);
  if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::ExtFOp, arith::TruncFOp>(
          op))
    return {};
  for (Value operand : op->getOperands())
    if (Value flag = flagOf(operand))
      return flag;
  return {};
}

std::optional<llvm::APFloat> MaskReader::valueWhere(Value number, Value flag, bool isSet) {
  llvm::APFloat constant(0.0);
  bool loses = false;
  if (matchPattern(number, m_ConstantFloat(&constant))) {
    constant.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
    return constant;
  }
  Operation *op = number.getDefiningOp();
  if (isa_and_nonnull<arith::UIToFPOp>(op) && op->getOperand(0) == flag)
    return llvm::APFloat(isSet ? 1.0 : 0.0);
  if (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op))
    return valueWhere(op->getOperand(0), flag, isSet);
  if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
    return std::nullopt;
  std::optional<llvm::APFloat> a = valueWhere(op->getOperand(0), flag, isSet);
  std::optional<llvm::APFloat> b = valueWhere(op->getOperand(1), flag, isSet);
  if (!a || !b)
    return std::nullopt;
  return isa<arith::AddFOp>(op) ? *a + *b : isa<arith::SubFOp>(op) ? *a - *b : *a * *b;
}

Distances MaskReader::visible(const llvm::APFloat &score) {
  if (!(score.convertToDouble() <= kMasked))
    return {Interval(), Interval()};
  isMaskedByFinite = isMaskedByFinite || !score.isInfinity();
  return {Interval::none(), Interval::none()};
}

/// The visible distances of a select: `first` where the condition holds, `second` where it fails.
static Distances choose(const Condition &chosen, const Distances &first, const Distances &second) {
  return {chosen.holds.may.intersect(first.may).join(chosen.fails.may.intersect(second.may)),
          chosen.holds.must.intersect(first.must).larger(chosen.fails.must.intersect(second.must))};
}

Distances MaskReader::visible(Value score) {
  Distances all{Interval(), Interval()};
  llvm::APFloat constant(0.0);
  if (std::optional<llvm::APFloat> number = valueWhere(score, {}, false))
    return visible(*number);
  if (Value flag = flagOf(score)) {
    std::optional<llvm::APFloat> set = valueWhere(score, flag, true);
    std::optional<llvm::APFloat> unset = valueWhere(score, flag, false);
    if (set && unset)
      return choose(conditionOf(flag), visible(*set), visible(*unset));
  }
  Operation *op = score.getDefiningOp();
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    Condition chosen = conditionOf(select.getCondition());
    return choose(chosen, visible(select.getTrueValue()), visible(select.getFalseValue()));
  }
  if (isa_and_nonnull<arith::AddFOp>(op)) {
    Distances a = visible(op->getOperand(0)), b = visible(op->getOperand(1));
    return {a.may.intersect(b.may), a.must.intersect(b.must)};
  }
  if (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op))
    return visible(op->getOperand(0));
  if (isa_and_nonnull<arith::MulFOp, arith::DivFOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantFloat(&constant)) && !constant.isNegative() &&
      constant.isFiniteNonZero())
    return visible(op->getOperand(0));
  return all;
}

std::optional<KeyBand> ext::visibleKeysOf(const AttentionParts &parts, unsigned query) {
  const AttentionDomain &domain = parts.domain;
  Block &region = parts.score().front();
  int64_t keys = domain.extents[domain.key], queries = domain.extents[query];
  MaskReader reader(parts, query);
  Distances visible = reader.visible(region.getTerminator()->getOperand(0));
  Interval band = visible.may.intersect({1 - queries, keys - 1});
  if (isa<AttentionBackwardOp>(parts.op))
    band = band.join({0, 0});
  if (band.isEmpty())
    return std::nullopt;
  if (reader.isMaskedByFinite) {
    bool readsExtras = llvm::any_of(region.getArguments().slice(1, parts.numExtras()),
                                    [](BlockArgument extra) { return !extra.use_empty(); });
    // The first and the last row see a key, and so do those between.
    bool seeKeys = !visible.must.isEmpty() && visible.must.last >= 0 &&
                   queries - 1 + visible.must.first <= keys - 1;
    if (readsExtras || !seeKeys)
      return std::nullopt;
  }
  return KeyBand{query, band.first, band.last};
}

std::optional<KnownConditions> ext::knownConditionsOf(const AttentionParts &parts, unsigned query) {
  Interval all{1 - parts.domain.extents[query], parts.domain.extents[parts.domain.key] - 1};
  MaskReader reader(parts, query);
  Interval band =
      reader.visible(parts.score().front().getTerminator()->getOperand(0)).may.intersect(all);
  Interval known = all;
  KnownConditions result;
  for (Region &region : parts.op->getRegions())
    for (Operation &op : region.getOps()) {
      if (op.getNumResults() != 1 || !op.getResult(0).getType().isInteger(1))
        continue;
      Condition condition = reader.conditionOf(op.getResult(0));
      Interval holds = condition.holds.must.intersect(band);
      Interval fails = condition.fails.must.intersect(band);
      if (holds.isEmpty() && fails.isEmpty())
        continue;
      bool isSet = fails.isEmpty() ||
                   (!holds.isEmpty() && holds.last - holds.first >= fails.last - fails.first);
      known = known.intersect(isSet ? condition.holds.must : condition.fails.must);
      result.values.push_back({&op, isSet});
    }
  if (result.values.empty() || known.isEmpty())
    return std::nullopt;
  result.first = known.first;
  result.last = known.last;
  return result;
}

std::optional<KeyBand> ext::keyBandOf(const AttentionParts &parts) {
  const AttentionDomain &domain = parts.domain;
  int64_t keys = domain.extents[domain.key];
  for (unsigned query : domain.query) {
    if (isa<AttentionBackwardOp>(parts.op) && domain.extents[query] != keys)
      continue;
    // One loop cannot shard a tensor over both.
    if (llvm::any_of(ArrayRef(parts.maps), [&](AffineMap map) {
          return hasLoop(map, query) && hasLoop(map, domain.key);
        }))
      continue;
    std::optional<KeyBand> band = visibleKeysOf(parts, query);
    if (band && 2 * (band->last - band->first) <= keys)
      return band;
  }
  return std::nullopt;
}
