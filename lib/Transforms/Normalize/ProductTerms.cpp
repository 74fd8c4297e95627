//===- ProductTerms.cpp - Elements as products of tensors -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limit on the depth of expanded ops; deeper tensors are factors themselves.
static constexpr int kMostSteps = 24;
static constexpr size_t kMostFactors = 16;

static std::optional<Product> expand(Value tensor, ArrayRef<int64_t> loops, int steps);

SmallVector<int64_t> dist::loopsIn(AffineMap map, ArrayRef<int64_t> loopsOf) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    return loop ? loopsOf[loop.getPosition()] : kNoLoop;
  });
}

static bool readsPlainly(linalg::GenericOp op) {
  return op->getNumResults() == 1 && op.hasPureTensorSemantics() &&
         op.getOps<linalg::IndexOp>().empty() &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isProjectedPermutation(true); });
}

static bool isElementwise(linalg::GenericOp op) {
  return readsPlainly(op) && op.getNumReductionLoops() == 0 && op.getNumDpsInputs() > 0 &&
         op.getIndexingMapsArray().back().isIdentity();
}

static std::optional<double> constantOf(Value value) {
  FloatAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return number.getValueAsDouble();
  DenseFPElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<FloatAttr>().getValueAsDouble();
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return constantOf(fill.getInputs()[0]);
  return std::nullopt;
}

static std::optional<Product> multiply(std::optional<Product> a, std::optional<Product> b,
                                       bool divides) {
  if (!a || !b || (divides && b->constant == 0))
    return std::nullopt;
  a->constant = divides ? a->constant / b->constant : a->constant * b->constant;
  for (Factor &factor : b->factors) {
    factor.divides ^= divides;
    a->factors.push_back(std::move(factor));
  }
  return a->factors.size() <= kMostFactors ? a : std::nullopt;
}

/// A value of a body as a product; `loopsOf`: the loop of the sum for each loop of the op. Nothing
/// if it is not a product.
static std::optional<Product> expandScalar(linalg::GenericOp op, Value value,
                                           ArrayRef<int64_t> loopsOf, int steps) {
  if (std::optional<double> number = constantOf(value))
    return Product{*number, {}};
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
      return std::nullopt;
    unsigned input = argument.getArgNumber();
    return expand(op.getInputs()[input], loopsIn(op.getIndexingMapsArray()[input], loopsOf),
                  steps - 1);
  }
  Operation *made = value.getDefiningOp();
  if (made->getBlock() != op.getBody())
    return std::nullopt;
  auto operand = [&](unsigned i) { return expandScalar(op, made->getOperand(i), loopsOf, steps); };
  if (isa<arith::MulFOp>(made))
    return multiply(operand(0), operand(1), false);
  if (isa<arith::DivFOp>(made))
    return multiply(operand(0), operand(1), true);
  if (isa<arith::NegFOp>(made))
    return multiply(Product{-1, {}}, operand(0), false);
  return std::nullopt;
}

static std::optional<Product> expand(Value tensor, ArrayRef<int64_t> loops, int steps) {
  if (std::optional<double> number = constantOf(tensor))
    return Product{*number, {}};
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (op && steps > 0 && isElementwise(op))
    if (std::optional<Product> product =
            expandScalar(op, op.getBody()->getTerminator()->getOperand(0), loops, steps))
      return product;
  return Product{1, {Factor{tensor, llvm::to_vector(loops)}}};
}

std::optional<Product> dist::elementsOf(Value tensor, ArrayRef<int64_t> loops) {
  return expand(tensor, loops, kMostSteps);
}

/// Appends the addends of a value of a body, times `sign`, to `addends`. False if they are unknown.
static bool split(linalg::GenericOp op, Value value, ArrayRef<int64_t> loopsOf, double sign,
                  int steps, SmallVectorImpl<Product> &addends) {
  auto push = [&](std::optional<Product> product) {
    if (!product || addends.size() >= kMostFactors)
      return false;
    product->constant *= sign;
    addends.push_back(std::move(*product));
    return true;
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
      return false;
    unsigned input = argument.getArgNumber();
    Value tensor = op.getInputs()[input];
    SmallVector<int64_t> loops = loopsIn(op.getIndexingMapsArray()[input], loopsOf);
    auto made = tensor.getDefiningOp<linalg::GenericOp>();
    size_t before = addends.size();
    if (made && steps > 0 && isElementwise(made) &&
        split(made, made.getBody()->getTerminator()->getOperand(0), loops, sign, steps - 1,
              addends))
      return true;
    addends.truncate(before);
    return push(expand(tensor, loops, steps - 1));
  }
  Operation *made = value.getDefiningOp();
  auto operand = [&](unsigned i, double factor) {
    return split(op, made->getOperand(i), loopsOf, sign * factor, steps, addends);
  };
  if (isa<arith::AddFOp>(made))
    return operand(0, 1) && operand(1, 1);
  if (isa<arith::SubFOp>(made))
    return operand(0, 1) && operand(1, -1);
  if (isa<arith::NegFOp>(made))
    return operand(0, -1);
  return push(expandScalar(op, value, loopsOf, steps));
}

/// The addend of a sum of f32 or f64 from zero; null for other ops.
static Value summandOf(linalg::GenericOp op) {
  if (!readsPlainly(op) || op.getNumReductionLoops() == 0)
    return {};
  Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  auto sum = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  Value accumulator = op.getRegionOutputArgs().front();
  std::optional<double> from = constantOf(op.getDpsInits()[0]);
  if (!(element.isF32() || element.isF64()) || !sum || !accumulator.hasOneUse() || from != 0.0 ||
      !llvm::is_contained(sum.getOperands(), accumulator))
    return {};
  return sum.getLhs() == accumulator ? sum.getRhs() : sum.getLhs();
}

std::optional<Product> dist::termOf(linalg::GenericOp op) {
  Value summand = summandOf(op);
  if (!summand)
    return std::nullopt;
  auto loops = llvm::to_vector(llvm::seq<int64_t>(0, op.getNumLoops()));
  return expandScalar(op, summand, loops, kMostSteps);
}

SmallVector<Product> dist::addendsOf(linalg::GenericOp op) {
  Value summand = summandOf(op);
  SmallVector<Product> addends;
  auto loops = llvm::to_vector(llvm::seq<int64_t>(0, op.getNumLoops()));
  if (!summand || !split(op, summand, loops, 1, kMostSteps, addends))
    return {};
  return addends;
}
