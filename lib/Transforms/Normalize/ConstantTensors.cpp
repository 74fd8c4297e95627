//===- ConstantTensors.cpp - Tensors known at compile time ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops are evaluated in doubles and rounded to their type: for sums, products, quotients
// and roots of f32 and narrower types the result is that of the op itself.
//
//===----------------------------------------------------------------------===//

#include "ConstantTensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <functional>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A function of up to three operands; NaN if an integer operation has no result.
using Function = std::function<double(const double *)>;

/// An op of a body: the positions of its operands and its result among the values of the body.
struct Step {
  Function function;
  SmallVector<unsigned, 3> operands;
  Type type;
};

} // namespace

static constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

static double roundTo(double value, Type type) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<double>(static_cast<float>(value));
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                 &losesInfo);
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

/// Whether an integer type can represent a double, without wrapping around.
static bool holds(double value, Type type) {
  if (type.isInteger(1))
    return value == 0 || value == 1;
  double bits = type.isIndex() ? 53 : std::min(53u, type.getIntOrFloatBitWidth());
  return std::abs(value) < std::exp2(bits - 1);
}

static Function comparison(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return [](const double *in) { return double(in[0] == in[1]); };
  case P::ne:
    return [](const double *in) { return double(in[0] != in[1]); };
  case P::slt:
    return [](const double *in) { return double(in[0] < in[1]); };
  case P::sle:
    return [](const double *in) { return double(in[0] <= in[1]); };
  case P::sgt:
    return [](const double *in) { return double(in[0] > in[1]); };
  case P::sge:
    return [](const double *in) { return double(in[0] >= in[1]); };
  default:
    return {};
  }
}

static Function comparison(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
    return [](const double *in) { return double(in[0] == in[1]); };
  case P::UNE:
    return [](const double *in) { return double(in[0] != in[1]); };
  case P::OLT:
    return [](const double *in) { return double(in[0] < in[1]); };
  case P::OLE:
    return [](const double *in) { return double(in[0] <= in[1]); };
  case P::OGT:
    return [](const double *in) { return double(in[0] > in[1]); };
  case P::OGE:
    return [](const double *in) { return double(in[0] >= in[1]); };
  default:
    return {};
  }
}

/// Operands and results of integer truncations and divisions are in the range of their type.
static Function functionOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case<arith::AddFOp, arith::AddIOp>(
          [](auto) { return [](const double *in) { return in[0] + in[1]; }; })
      .Case<arith::SubFOp, arith::SubIOp>(
          [](auto) { return [](const double *in) { return in[0] - in[1]; }; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](auto) { return [](const double *in) { return in[0] * in[1]; }; })
      .Case([](arith::DivFOp) { return [](const double *in) { return in[0] / in[1]; }; })
      .Case([](arith::DivSIOp) {
        return [](const double *in) { return in[1] == 0 ? kNothing : std::trunc(in[0] / in[1]); };
      })
      .Case([](arith::FloorDivSIOp) {
        return [](const double *in) { return in[1] == 0 ? kNothing : std::floor(in[0] / in[1]); };
      })
      .Case([](arith::RemSIOp) {
        return [](const double *in) { return in[1] == 0 ? kNothing : std::fmod(in[0], in[1]); };
      })
      .Case([](arith::DivUIOp) { // of numbers that are not negative
        return [](const double *in) {
          return in[0] < 0 || in[1] <= 0 ? kNothing : std::trunc(in[0] / in[1]);
        };
      })
      .Case([](arith::RemUIOp) {
        return [](const double *in) {
          return in[0] < 0 || in[1] <= 0 ? kNothing : std::fmod(in[0], in[1]);
        };
      })
      .Case<arith::MaximumFOp, arith::MaxSIOp>([](auto) {
        return [](const double *in) { return std::isnan(in[0]) ? in[0] : std::max(in[0], in[1]); };
      })
      .Case<arith::MinimumFOp, arith::MinSIOp>([](auto) {
        return [](const double *in) { return std::isnan(in[0]) ? in[0] : std::min(in[0], in[1]); };
      })
      .Case([](arith::NegFOp) { return [](const double *in) { return -in[0]; }; })
      .Case<arith::AndIOp>([](auto and_) -> Function {
        if (!and_.getType().isInteger(1))
          return {};
        return [](const double *in) { return double(in[0] != 0 && in[1] != 0); };
      })
      .Case<arith::OrIOp>([](auto or_) -> Function {
        if (!or_.getType().isInteger(1))
          return {};
        return [](const double *in) { return double(in[0] != 0 || in[1] != 0); };
      })
      .Case<arith::XOrIOp>([](auto xor_) -> Function {
        if (!xor_.getType().isInteger(1))
          return {};
        return [](const double *in) { return double(in[0] != in[1]); };
      })
      .Case([](arith::CmpIOp compare) { return comparison(compare.getPredicate()); })
      .Case([](arith::CmpFOp compare) { return comparison(compare.getPredicate()); })
      .Case([](arith::SelectOp) {
        return [](const double *in) { return in[0] != 0 ? in[1] : in[2]; };
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::SIToFPOp>([](auto cast) -> Function {
        if (cast.getIn().getType().isInteger(1)) // where true is -1
          return [](const double *in) { return -in[0]; };
        return [](const double *in) { return in[0]; };
      })
      .Case<arith::ExtUIOp, arith::UIToFPOp>([](auto cast) -> Function {
        if (!cast.getIn().getType().isInteger(1))
          return {};
        return [](const double *in) { return in[0]; };
      })
      .Case<arith::TruncIOp, arith::ExtFOp, arith::TruncFOp>(
          [](auto) { return [](const double *in) { return in[0]; }; })
      .Case([](arith::FPToSIOp) { return [](const double *in) { return std::trunc(in[0]); }; })
      .Case<math::AbsFOp, math::AbsIOp>(
          [](auto) { return [](const double *in) { return std::abs(in[0]); }; })
      .Case([](math::FloorOp) { return [](const double *in) { return std::floor(in[0]); }; })
      .Case([](math::CeilOp) { return [](const double *in) { return std::ceil(in[0]); }; })
      .Case([](math::SqrtOp) { return [](const double *in) { return std::sqrt(in[0]); }; })
      .Case([](math::ExpOp) { return [](const double *in) { return std::exp(in[0]); }; })
      .Case([](math::SinOp) { return [](const double *in) { return std::sin(in[0]); }; })
      .Case([](math::CosOp) { return [](const double *in) { return std::cos(in[0]); }; })
      .Case([](math::PowFOp) { return [](const double *in) { return std::pow(in[0], in[1]); }; })
      .Default([](Operation *) { return Function(); });
}

static std::optional<double> numberOf(Attribute attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  auto number = dyn_cast<IntegerAttr>(attribute);
  if (!number || number.getValue().getSignificantBits() > 64)
    return std::nullopt;
  // The least integer of a width is a power of two, which doubles represent.
  if (number.getValue().getSignificantBits() > 53 && !number.getValue().isMinSignedValue())
    return std::nullopt;
  return number.getType().isInteger(1) ? static_cast<double>(!number.getValue().isZero())
                                       : static_cast<double>(number.getValue().getSExtValue());
}

static std::optional<ConstantTensors::Elements> elementsOf(DenseElementsAttr constant) {
  ConstantTensors::Elements elements;
  elements.reserve(constant.getNumElements());
  if (constant.isSplat()) {
    std::optional<double> number = numberOf(constant.getSplatValue<Attribute>());
    if (!number)
      return std::nullopt;
    elements.assign(constant.getNumElements(), *number);
    return elements;
  }
  for (Attribute attribute : constant.getValues<Attribute>()) {
    std::optional<double> number = numberOf(attribute);
    if (!number)
      return std::nullopt;
    elements.push_back(*number);
  }
  return elements;
}

namespace {

/// The body of a linalg op as steps over a list of values: arguments, loop indices, results.
struct Body {
  SmallVector<Step> steps;
  SmallVector<double> values;
  unsigned yielded = 0;

  /// Reads a body. Returns whether every op is supported.
  bool read(linalg::LinalgOp op) {
    llvm::SmallDenseMap<Value, unsigned> numbers; // looked up only
    Block &block = *op.getBlock();
    values.assign(block.getNumArguments() + op.getNumLoops(), 0);
    for (BlockArgument argument : block.getArguments())
      numbers[argument] = argument.getArgNumber();
    for (Operation &inner : block.without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
        numbers[index.getResult()] = block.getNumArguments() + index.getDim();
        continue;
      }
      Attribute constant;
      if (matchPattern(&inner, m_Constant(&constant))) {
        std::optional<double> number = numberOf(constant);
        if (!number)
          return false;
        numbers[inner.getResult(0)] = values.size();
        values.push_back(*number);
        continue;
      }
      Step step{functionOf(&inner), {}, {}};
      if (!step.function || inner.getNumOperands() > 3)
        return false;
      for (Value operand : inner.getOperands())
        if (!numberIn(numbers, operand, step.operands.emplace_back()))
          return false;
      step.type = inner.getResult(0).getType();
      numbers[inner.getResult(0)] = values.size();
      results.push_back(values.size());
      values.push_back(0);
      steps.push_back(std::move(step));
    }
    return numberIn(numbers, block.getTerminator()->getOperand(0), yielded);
  }

  /// Evaluates an iteration; empty if an integer overflows.
  std::optional<double> run() {
    for (auto [step, result] : llvm::zip_equal(steps, results)) {
      double in[3] = {0, 0, 0};
      for (auto [n, operand] : llvm::enumerate(step.operands))
        in[n] = values[operand];
      double value = step.function(in);
      if (isa<FloatType>(step.type))
        value = roundTo(value, step.type);
      else if (!holds(value, step.type))
        return std::nullopt;
      values[result] = value;
    }
    return values[yielded];
  }

private:
  /// The position of a value of the body, or of a constant outside of it.
  bool numberIn(llvm::SmallDenseMap<Value, unsigned> &numbers, Value value, unsigned &number) {
    if (auto it = numbers.find(value); it != numbers.end()) {
      number = it->second;
      return true;
    }
    Attribute constant;
    std::optional<double> known;
    if (matchPattern(value, m_Constant(&constant)))
      known = numberOf(constant);
    if (!known)
      return false;
    number = numbers[value] = values.size();
    values.push_back(*known);
    return true;
  }

  SmallVector<unsigned> results; ///< by step
};

/// An operand of a loop nest: its linear stride per loop.
struct Access {
  int64_t begin = 0;
  SmallVector<int64_t> strides;
};

} // namespace

static std::optional<Access> accessOf(AffineMap map, RankedTensorType type) {
  Access access{0, SmallVector<int64_t>(map.getNumDims(), 0)};
  int64_t stride = 1;
  for (int64_t d = type.getRank() - 1; d >= 0; --d) {
    if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(d)))
      access.strides[dim.getPosition()] += stride;
    else if (auto number = dyn_cast<AffineConstantExpr>(map.getResult(d)))
      access.begin += stride * number.getValue();
    else
      return std::nullopt;
    stride *= type.getDimSize(d);
  }
  return access;
}

std::optional<ConstantTensors::Elements> ConstantTensors::computeLoops(Operation *made) {
  linalg::LinalgOp op(made);
  auto type = dyn_cast<RankedTensorType>(made->getResult(0).getType());
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  int64_t iterations = 1;
  for (int64_t extent : extents)
    if (ShapedType::isDynamic(extent) || llvm::MulOverflow<int64_t>(iterations, extent, iterations))
      return std::nullopt;
  Body body;
  if (!type || iterations > kMostIterations || !body.read(op))
    return std::nullopt;
  unsigned numArguments = op.getBlock()->getNumArguments();
  BlockArgument accumulator = op.getRegionOutputArgs().front();
  SmallVector<const Elements *> tensors(numArguments, nullptr);
  SmallVector<Access> accesses(numArguments);
  Elements result(type.getNumElements(), 0);
  for (OpOperand &operand : made->getOpOperands()) {
    unsigned n = operand.getOperandNumber();
    if (!isa<RankedTensorType>(operand.get().getType())) {
      Attribute constant;
      std::optional<double> number;
      if (matchPattern(operand.get(), m_Constant(&constant)))
        number = numberOf(constant);
      if (!number)
        return std::nullopt;
      body.values[n] = *number;
      continue;
    }
    std::optional<Access> access = accessOf(op.getMatchingIndexingMap(&operand),
                                            cast<RankedTensorType>(operand.get().getType()));
    if (!access)
      return std::nullopt;
    accesses[n] = *access;
    // Elements outside of the output map, such as those beside a written diagonal, are the init's.
    bool isInit = op.isDpsInit(&operand);
    if (isInit && accumulator.use_empty() &&
        op.getMatchingIndexingMap(&operand).isProjectedPermutation())
      continue;
    tensors[n] = of(operand.get());
    if (!tensors[n])
      return std::nullopt;
    if (isInit)
      result = *tensors[n];
  }
  unsigned written = numArguments - 1;
  SmallVector<int64_t> places(numArguments), indices(extents.size(), 0);
  for (unsigned n = 0; n < numArguments; ++n)
    places[n] = accesses[n].begin;
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    for (unsigned n = 0; n < written; ++n)
      if (tensors[n])
        body.values[n] = (*tensors[n])[places[n]];
    body.values[written] = result[places[written]];
    for (size_t loop = 0; loop < extents.size(); ++loop)
      body.values[numArguments + loop] = static_cast<double>(indices[loop]);
    std::optional<double> value = body.run();
    if (!value)
      return std::nullopt;
    result[places[written]] = *value;
    for (auto loop = static_cast<int64_t>(extents.size()) - 1; loop >= 0; --loop) {
      int64_t by = ++indices[loop] < extents[loop] ? 1 : 1 - extents[loop];
      for (unsigned n = 0; n < numArguments; ++n)
        if (!accesses[n].strides.empty())
          places[n] += by * accesses[n].strides[loop];
      if (by == 1)
        break;
      indices[loop] = 0;
    }
  }
  return result;
}

std::optional<ConstantTensors::Elements> ConstantTensors::compute(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  Operation *op = tensor.getDefiningOp();
  if (!op || !type || !type.hasStaticShape() || type.getNumElements() > kMostIterations)
    return std::nullopt;
  DenseElementsAttr constant;
  if (matchPattern(tensor, m_Constant(&constant)))
    return elementsOf(constant);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    const Elements *source = of(op->getOperand(0));
    return source ? std::optional(*source) : std::nullopt;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      linalgOp && op->getNumResults() == 1 && linalgOp.hasPureTensorSemantics())
    return computeLoops(op);
  return std::nullopt;
}

const ConstantTensors::Elements *ConstantTensors::of(Value tensor) {
  if (auto it = known.find(tensor); it != known.end())
    return it->second.get();
  std::optional<Elements> elements = compute(tensor);
  auto &place = known[tensor];
  if (elements)
    place = std::make_unique<Elements>(std::move(*elements));
  return place.get();
}
