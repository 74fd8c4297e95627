//===- ReadEpilogue.cpp - Match the epilogue of a product as a polynomial -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EpilogueChain.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

bool codegen::isPointwise(linalg::GenericOp generic) {
  return generic.getNumDpsInits() == 1 && generic.getNumReductionLoops() == 0 &&
         !generic.hasDynamicShape() && generic.getNumResults() == 1 &&
         generic.getIndexingMapsArray().back().isIdentity();
}

/// Whether iteration i reads element i mod (number of elements) of the operand: the map has the
/// last loops, in order. Loops of one iteration do not matter.
static bool readsLastLoops(AffineMap map, ArrayRef<int64_t> extents) {
  SmallVector<unsigned> loops, wanted;
  for (AffineExpr expr : map.getResults()) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr); constant && constant.getValue() == 0)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return false;
    if (extents[dim.getPosition()] != 1)
      loops.push_back(dim.getPosition());
  }
  for (unsigned loop = extents.size(); loop-- > 0 && wanted.size() < loops.size();)
    if (extents[loop] != 1)
      wanted.push_back(loop);
  return llvm::equal(llvm::reverse(wanted), loops);
}

std::optional<double> codegen::scalarConstant(Value value) {
  FloatAttr number;
  SplatElementsAttr splat;
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return scalarConstant(fill.getInputs()[0]);
  if (matchPattern(value, m_Constant(&number)))
    return number.getValueAsDouble();
  if (matchPattern(value, m_Constant(&splat)) && isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().convertToDouble();
  return std::nullopt;
}

Polynomial EpilogueChain::unary(unsigned function, const Polynomial &argument) {
  for (auto [index, known] : llvm::enumerate(functions))
    if (known.first == function && known.second == argument)
      return Polynomial::atom(kFirstFunction + index);
  functions.push_back({function, argument});
  return Polynomial::atom(kFirstFunction + functions.size() - 1);
}

/// The operand x of a select that computes max(x, 0) and keeps NaN.
static Value reluOperand(arith::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!compare)
    return {};
  Value x = compare.getLhs();
  auto isZero = [](Value value) {
    std::optional<double> number = scalarConstant(value);
    return number && *number == 0;
  };
  if (!isZero(compare.getRhs()))
    return {};
  using Predicate = arith::CmpFPredicate;
  Predicate kind = compare.getPredicate();
  bool keepsAbove = kind == Predicate::UGT || kind == Predicate::UGE;
  bool dropsBelow = kind == Predicate::OLT || kind == Predicate::OLE;
  if (keepsAbove && select.getTrueValue() == x && isZero(select.getFalseValue()))
    return x;
  if (dropsBelow && select.getFalseValue() == x && isZero(select.getTrueValue()))
    return x;
  return {};
}

std::optional<Polynomial> EpilogueChain::readBody(linalg::GenericOp generic, Value scalar,
                                                  DenseMap<Value, Polynomial> &known) {
  if (auto it = known.find(scalar); it != known.end())
    return it->second;
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (argument.getOwner() != generic.getBody() ||
        argument.getArgNumber() >= generic.getNumDpsInputs())
      return std::nullopt;
    Value operand = generic.getInputs()[argument.getArgNumber()];
    if (!isa<RankedTensorType>(operand.getType()) ||
        !readsLastLoops(generic.getIndexingMapsArray()[argument.getArgNumber()],
                        generic.getStaticLoopRanges()))
      return std::nullopt;
    return read(operand);
  }
  if (std::optional<double> number = scalarConstant(scalar))
    return Polynomial::constant(*number);
  Operation *body = scalar.getDefiningOp();
  if (!body || body->getBlock() != generic.getBody())
    return std::nullopt;
  SmallVector<Polynomial, 2> operands;
  Value clamped;
  if (auto select = dyn_cast<arith::SelectOp>(body))
    clamped = reluOperand(select);
  for (Value operand : clamped ? ValueRange(clamped) : ValueRange(body->getOperands())) {
    if (isa<IntegerType>(operand.getType()))
      continue; // an exponent
    std::optional<Polynomial> one = readBody(generic, operand, known);
    if (!one)
      return std::nullopt;
    operands.push_back(std::move(*one));
  }
  std::optional<Polynomial> result;
  if (clamped) {
    result = unary(kRelu, operands[0]);
  } else if (isa<arith::AddFOp>(body)) {
    result = operands[0] + operands[1];
  } else if (isa<arith::SubFOp>(body)) {
    result = operands[0] + operands[1] * Polynomial::constant(-1);
  } else if (isa<arith::NegFOp>(body)) {
    result = operands[0] * Polynomial::constant(-1);
  } else if (isa<arith::MulFOp>(body)) {
    result = operands[0] * operands[1];
  } else if (isa<arith::DivFOp>(body)) {
    if (std::optional<double> by = operands[1].asConstant(); by && *by != 0)
      result = operands[0] * Polynomial::constant(1 / *by);
  } else if (isa<arith::ExtFOp, arith::TruncFOp>(body)) {
    result = operands[0]; // the product rounds once, at its end
  } else if (isa<math::TanhOp>(body)) {
    result = unary(kTanh, operands[0]);
  } else if (auto power = dyn_cast<math::PowFOp>(body)) {
    if (std::optional<double> exponent = operands[1].asConstant())
      result = operands[0].power(*exponent);
  } else if (auto power = dyn_cast<math::FPowIOp>(body)) {
    APInt exponent;
    if (matchPattern(power.getRhs(), m_ConstantInt(&exponent)))
      result = operands[0].power(static_cast<double>(exponent.getSExtValue()));
  } else if (isa<arith::MaximumFOp>(body)) {
    for (int i : {0, 1})
      if (std::optional<double> bound = operands[1 - i].asConstant(); bound && *bound == 0)
        result = unary(kRelu, operands[i]);
  }
  if (result && !result->isSmall())
    result.reset();
  if (result)
    known[scalar] = *result;
  return result;
}

/// A vector along the columns, through ops that only broadcast, widen or narrow it.
std::optional<Polynomial> EpilogueChain::readVector(Value value) {
  while (true) {
    Operation *made = value.getDefiningOp();
    auto generic = dyn_cast_or_null<linalg::GenericOp>(made);
    if (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(made)) {
      value = made->getOperand(0);
      continue;
    }
    if (!generic || !isPointwise(generic) || generic.getNumDpsInputs() != 1 ||
        !isa<RankedTensorType>(generic.getInputs()[0].getType()) ||
        !readsLastLoops(generic.getIndexingMapsArray()[0], generic.getStaticLoopRanges()))
      break;
    Value yielded = generic.getBody()->getTerminator()->getOperand(0);
    while (isa_and_nonnull<arith::ExtFOp>(yielded.getDefiningOp()))
      yielded = yielded.getDefiningOp()->getOperand(0);
    if (yielded != generic.getBody()->getArgument(0))
      break;
    value = generic.getInputs()[0];
  }
  if (cast<ShapedType>(value.getType()).getNumElements() != form.n || (bias && bias != value) ||
      !isa<FloatType>(getElementTypeOrSelf(value)))
    return std::nullopt;
  bias = value;
  return Polynomial::atom(kBias);
}

/// An element of `value`, at the index modulo its number of elements.
std::optional<Polynomial> EpilogueChain::read(Value value) {
  if (value == product)
    return Polynomial::atom(kProduct);
  if (auto it = memo.find(value); it != memo.end())
    return it->second;
  std::optional<Polynomial> result;
  Operation *made = value.getDefiningOp();
  if (std::optional<double> number = scalarConstant(value))
    result = Polynomial::constant(*number);
  else if (!made || !behind.contains(made))
    result = readVector(value);
  else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(made))
    result = read(made->getOperand(0));
  else if (auto generic = dyn_cast<linalg::GenericOp>(made)) {
    DenseMap<Value, Polynomial> known;
    result = readBody(generic, generic.getBody()->getTerminator()->getOperand(0), known);
  }
  return memo[value] = result;
}
