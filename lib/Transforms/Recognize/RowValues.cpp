//===- RowValues.cpp - Numerical values of a row's formulas ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using Kind = ElementExpressions::Kind;

RowValues::RowValues(const ElementExpressions &all, const Loops &loops, unsigned key, unsigned seed)
    : all(all), key(key), random(seed) {
  // Few and distinct, so that a maximum has one index.
  constexpr int64_t kMostKeys = 6;
  const int64_t numKeys = std::min(kMostKeys, loops.extents[key]);
  // Not std::uniform_int_distribution, which differs between libraries.
  for (int64_t extent : loops.extents)
    positions.emplace_back(numKeys, static_cast<int64_t>(random() % extent));
  // Keys around the row's own position first: a window may hide all others.
  SmallVector<int64_t, 8> keys;
  auto add = [&](int64_t position) {
    if (position >= 0 && position < loops.extents[key] &&
        static_cast<int64_t>(keys.size()) < numKeys && !llvm::is_contained(keys, position))
      keys.push_back(position);
  };
  for (auto [loop, extent] : llvm::enumerate(loops.extents))
    if (loop != key && extent == loops.extents[key] && keys.empty())
      for (int64_t distance : {0, -1, 1})
        add(positions[loop].front() + distance);
  while (static_cast<int64_t>(keys.size()) < numKeys)
    add(static_cast<int64_t>(random() % loops.extents[key]));
  positions[key].assign(keys.begin(), keys.end());
}

RowValues::Row RowValues::draw(int node) {
  const ElementExpressions::Node &own = all[node];
  auto one = [&]() -> double {
    if (own.type.isInteger(1))
      return random() % 2;
    if (!isa<FloatType>(own.type))
      return random() % 3;
    return 3 * (random() / 4294967296.0) - 1.5;
  };
  bool isProduct = own.kind == Kind::product, isSame = !isProduct && !all.dependsOn(node, key);
  Row row(numKeys(), Dual{one(), isProduct ? 1.0 : 0.0});
  for (Dual &element : row)
    if (!isSame)
      element.value = one();
  return row;
}

/// Integers are only indices and flags, which a double represents exactly.
static std::optional<double> evaluateAffine(AffineExpr expr,
                                            llvm::function_ref<double(unsigned)> at) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return static_cast<double>(constant.getValue());
  std::optional<Terms> terms = termsOf(expr);
  if (!terms)
    return std::nullopt;
  double sum = 0;
  for (auto [loop, coefficient] : *terms)
    sum += static_cast<double>(coefficient) * at(loop);
  return sum;
}

static bool compare(arith::CmpFPredicate predicate, double x, double y) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(x) || std::isnan(y);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return x == y;
  case P::UEQ:
    return unordered || x == y;
  case P::ONE:
    return !unordered && x != y;
  case P::UNE:
    return unordered || x != y;
  case P::OLT:
    return x < y;
  case P::ULT:
    return unordered || x < y;
  case P::OLE:
    return x <= y;
  case P::ULE:
    return unordered || x <= y;
  case P::OGT:
    return x > y;
  case P::UGT:
    return unordered || x > y;
  case P::OGE:
    return x >= y;
  case P::UGE:
    return unordered || x >= y;
  }
  return false;
}

/// Unsigned predicates compare indices, which are not negative.
static std::optional<bool> compare(arith::CmpIPredicate predicate, double x, double y) {
  using P = arith::CmpIPredicate;
  bool isUnsigned = llvm::is_contained({P::ult, P::ule, P::ugt, P::uge}, predicate);
  if (isUnsigned && (x < 0 || y < 0))
    return std::nullopt;
  switch (predicate) {
  case P::eq:
    return x == y;
  case P::ne:
    return x != y;
  case P::slt:
  case P::ult:
    return x < y;
  case P::sle:
  case P::ule:
    return x <= y;
  case P::sgt:
  case P::ugt:
    return x > y;
  case P::sge:
  case P::uge:
    return x >= y;
  }
  return std::nullopt;
}

static std::optional<Dual> ofConstant(arith::ConstantOp op) {
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    return Dual{number.getValueAsDouble(), 0};
  if (auto number = dyn_cast<IntegerAttr>(op.getValue()))
    return Dual{number.getType().isInteger(1)
                    ? static_cast<double>(!number.getValue().isZero())
                    : static_cast<double>(number.getValue().getSExtValue()),
                0};
  return std::nullopt;
}

/// Integer ops; results are exact where they are small.
static std::optional<Dual> ofIntegers(Operation *op, ArrayRef<Dual> in) {
  bool isFlag = op->getResult(0).getType().isInteger(1);
  auto flags = [&](bool result) -> std::optional<Dual> {
    return isFlag ? std::optional(Dual{static_cast<double>(result), 0}) : std::nullopt;
  };
  auto number = [&](double result) -> std::optional<Dual> {
    constexpr double kLargest = 2147483648.0;
    return !isFlag && std::abs(result) < kLargest ? std::optional(Dual{result, 0}) : std::nullopt;
  };
  return llvm::TypeSwitch<Operation *, std::optional<Dual>>(op)
      .Case([&](arith::AndIOp) { return flags(in[0].value != 0 && in[1].value != 0); })
      .Case([&](arith::OrIOp) { return flags(in[0].value != 0 || in[1].value != 0); })
      .Case([&](arith::XOrIOp) { return flags((in[0].value != 0) != (in[1].value != 0)); })
      .Case([&](arith::AddIOp) { return number(in[0].value + in[1].value); })
      .Case([&](arith::SubIOp) { return number(in[0].value - in[1].value); })
      .Case([&](arith::MulIOp) { return number(in[0].value * in[1].value); })
      .Case<arith::DivSIOp, arith::FloorDivSIOp>([&](auto) -> std::optional<Dual> {
        double quotient = in[0].value / in[1].value;
        if (in[1].value == 0)
          return std::nullopt;
        return number(isa<arith::DivSIOp>(op) ? std::trunc(quotient) : std::floor(quotient));
      })
      .Case([&](arith::RemSIOp) -> std::optional<Dual> {
        return in[1].value == 0 ? std::nullopt : number(std::fmod(in[0].value, in[1].value));
      })
      .Case([&](math::AbsIOp) { return number(std::abs(in[0].value)); })
      .Case([&](arith::MaxSIOp) { return number(std::max(in[0].value, in[1].value)); })
      .Case([&](arith::MinSIOp) { return number(std::min(in[0].value, in[1].value)); })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](auto) { return number(in[0].value); })
      .Case([&](arith::ExtUIOp) { return number(in[0].value); })
      .Case([&](arith::ExtSIOp cast) {
        return number(cast.getIn().getType().isInteger(1) ? -in[0].value : in[0].value);
      })
      .Case([&](arith::TruncIOp) { return number(in[0].value); })
      .Case([&](arith::CmpIOp cmp) -> std::optional<Dual> {
        if (std::optional<bool> result = compare(cmp.getPredicate(), in[0].value, in[1].value))
          return Dual{static_cast<double>(*result), 0};
        return std::nullopt;
      })
      .Default([](Operation *) { return std::nullopt; });
}

static std::optional<Dual> ofFloats(Operation *op, ArrayRef<Dual> in) {
  using Result = std::optional<Dual>;
  /// A function of one operand: its value and its derivative there.
  auto unary = [&](double value, double derivative) -> Result {
    return Dual{value, in[0].slope == 0 ? 0 : in[0].slope * derivative};
  };
  auto pick = [&](bool first) -> Result { return first ? in[0] : in[1]; };
  auto power = [&](double exponent) -> Result {
    double x = in[0].value;
    return unary(std::pow(x, exponent), exponent * std::pow(x, exponent - 1));
  };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::ConstantOp constant) { return ofConstant(constant); })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) -> Result { return in[0]; })
      .Case<arith::SIToFPOp, arith::UIToFPOp>([&](auto cast) -> Result {
        bool isFlag = cast.getIn().getType().isInteger(1);
        bool negates = isFlag && isa<arith::SIToFPOp>(cast);
        return Dual{negates ? -in[0].value : in[0].value, 0};
      })
      .Case([&](arith::AddFOp) -> Result {
        return Dual{in[0].value + in[1].value, in[0].slope + in[1].slope};
      })
      .Case([&](arith::SubFOp) -> Result {
        return Dual{in[0].value - in[1].value, in[0].slope - in[1].slope};
      })
      .Case([&](arith::MulFOp) -> Result {
        return Dual{in[0].value * in[1].value,
                    in[0].slope * in[1].value + in[0].value * in[1].slope};
      })
      .Case([&](arith::DivFOp) -> Result {
        double quotient = in[0].value / in[1].value;
        return Dual{quotient, (in[0].slope - quotient * in[1].slope) / in[1].value};
      })
      .Case([&](arith::NegFOp) -> Result { return Dual{-in[0].value, -in[0].slope}; })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>(
          [&](auto) { return pick(in[0].value >= in[1].value); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>(
          [&](auto) { return pick(in[0].value <= in[1].value); })
      .Case([&](arith::CmpFOp cmp) -> Result {
        bool result = compare(cmp.getPredicate(), in[0].value, in[1].value);
        return Dual{static_cast<double>(result), 0};
      })
      .Case([&](arith::SelectOp) -> Result { return in[0].value != 0 ? in[1] : in[2]; })
      .Case([&](math::ExpOp) {
        double value = std::exp(in[0].value);
        return unary(value, value);
      })
      .Case([&](math::Exp2Op) {
        double value = std::exp2(in[0].value);
        return unary(value, value * std::log(2.0));
      })
      .Case([&](math::ExpM1Op) { return unary(std::expm1(in[0].value), std::exp(in[0].value)); })
      .Case([&](math::LogOp) { return unary(std::log(in[0].value), 1 / in[0].value); })
      .Case([&](math::Log2Op) {
        return unary(std::log2(in[0].value), 1 / (in[0].value * std::log(2.0)));
      })
      .Case([&](math::Log1pOp) { return unary(std::log1p(in[0].value), 1 / (1 + in[0].value)); })
      .Case([&](math::TanhOp) {
        double value = std::tanh(in[0].value);
        return unary(value, 1 - value * value);
      })
      .Case([&](math::SinOp) { return unary(std::sin(in[0].value), std::cos(in[0].value)); })
      .Case([&](math::CosOp) { return unary(std::cos(in[0].value), -std::sin(in[0].value)); })
      .Case(
          [&](math::AbsFOp) { return unary(std::abs(in[0].value), in[0].value < 0 ? -1.0 : 1.0); })
      .Case([&](math::SqrtOp) { return power(0.5); })
      .Case([&](math::RsqrtOp) { return power(-0.5); })
      .Case<math::PowFOp, math::FPowIOp>([&](auto) -> Result {
        if (in[1].slope != 0)
          return std::nullopt;
        return power(in[1].value);
      })
      .Case([&](math::FmaOp) -> Result {
        return Dual{in[0].value * in[1].value + in[2].value,
                    in[0].slope * in[1].value + in[0].value * in[1].slope + in[2].slope};
      })
      .Default([&](Operation *) { return ofIntegers(op, in); });
}

std::optional<RowValues::Row> RowValues::reduce(Operation *combiner, const Row &inner,
                                                double start) const {
  double result = start;
  for (const Dual &element : inner) {
    std::optional<Dual> next = ofFloats(combiner, {Dual{result, 0}, Dual{element.value, 0}});
    if (!next)
      return std::nullopt;
    result = next->value;
  }
  return Row(numKeys(), Dual{result, 0});
}

std::optional<RowValues::Row> RowValues::compute(int node) {
  const ElementExpressions::Node &own = all[node];
  if (own.kind == Kind::element || own.kind == Kind::product)
    return draw(node);
  if (own.kind == Kind::index) {
    Row row(numKeys());
    for (auto [at, element] : llvm::enumerate(row)) {
      std::optional<double> index = evaluateAffine(
          own.index, [&](unsigned loop) { return static_cast<double>(positions[loop][at]); });
      if (!index)
        return std::nullopt;
      element.value = *index;
    }
    return row;
  }
  if (isOfScores(node)) {
    for (int operand : own.operands)
      if (!of(operand) && !isOfScores(operand))
        known[operand] = draw(operand);
    return apply(own);
  }
  std::optional<Row> result = apply(own);
  return !result && own.type.isInteger(1) ? draw(node) : result;
}

bool RowValues::isOfScores(int node) {
  auto [it, isNew] = ofScores.try_emplace(node, all[node].kind == Kind::product);
  if (!isNew || it->second)
    return it->second;
  bool result = llvm::any_of(all[node].operands, [&](int operand) { return isOfScores(operand); });
  return ofScores[node] = result;
}

std::optional<RowValues::Row> RowValues::apply(const ElementExpressions::Node &own) {
  Row row(numKeys());
  SmallVector<Row> operands;
  for (int operand : own.operands) {
    std::optional<Row> values = of(operand);
    if (!values)
      return std::nullopt;
    operands.push_back(std::move(*values));
  }
  if (own.kind == Kind::reduced)
    return reduce(own.op, operands.front(), operands.size() > 1 ? operands[1].front().value : 0);
  for (auto [at, element] : llvm::enumerate(row)) {
    SmallVector<Dual> in =
        llvm::map_to_vector(operands, [at = at](const Row &operand) { return operand[at]; });
    std::optional<Dual> value = ofFloats(own.op, in);
    if (!value)
      return std::nullopt;
    element = *value;
  }
  return row;
}

std::optional<RowValues::Row> RowValues::of(int node) {
  if (auto it = known.find(node); it != known.end())
    return it->second;
  std::optional<Row> row = compute(node);
  known[node] = row;
  return row;
}
