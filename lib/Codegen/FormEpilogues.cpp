//===- FormEpilogues.cpp - Bias and activation within products ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the elementwise chain after a contraction as a polynomial in the
// contraction's element, the element of one vector, and functions of polynomials.
// In any spelling, and over any number of ops,
//
//   c + b                                        is a bias,
//   max(c + b, 0)                                a relu,
//   (c + b)/2 + (c + b)/2 tanh(k (c + b) + …)    a gelu,
//
// if the coefficients match. All values of the chain are elements at the same
// position, so the chain may become a part of the product.
//
//===----------------------------------------------------------------------===//

#include "EpilogueChain.h"
#include "RoundResults.h"
#include "StepOps.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMEPILOGUES
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// Limit on the ops of a chain.
static constexpr size_t kMaxChain = 48;

static Type elementOf(Value value) {
  return cast<ShapedType>(value.getType()).getElementType();
}
static int64_t countOf(Value value) {
  return cast<ShapedType>(value.getType()).getNumElements();
}

/// Collects the ops that depend on the product through elementwise ops and reshapes, in order.
void EpilogueChain::collect() {
  SmallVector<Value> open = {product};
  SetVector<Operation *> found;
  while (!open.empty() && found.size() < kMaxChain)
    for (Operation *user : open.pop_back_val().getUsers()) {
      auto generic = dyn_cast<linalg::GenericOp>(user);
      bool follows = isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user) ||
                     (generic && isPointwise(generic));
      if (follows && user->getBlock() == op->getBlock() && found.insert(user))
        open.push_back(user->getResult(0));
    }
  SmallVector<Operation *> sorted = found.takeVector();
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  behind.insert(sorted.begin(), sorted.end());
}

/// Whether only the ops up to `result` read the product and the intermediate values.
bool EpilogueChain::isPrivate(Value result) const {
  SmallPtrSet<Operation *, 16> inside;
  SmallVector<Operation *> open = {result.getDefiningOp()};
  while (!open.empty()) {
    Operation *made = open.pop_back_val();
    if (!inside.insert(made).second)
      continue;
    for (Value operand : made->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && behind.contains(source))
        open.push_back(source);
  }
  auto staysInside = [&](Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) { return inside.contains(user); });
  };
  for (Operation *made : inside)
    if (made != result.getDefiningOp() && !staysInside(made->getResult(0)))
      return false;
  return staysInside(product);
}

std::optional<EpilogueChain::Found> EpilogueChain::match(Value result) {
  bias = {};
  memo.clear();
  functions.clear();
  std::optional<Polynomial> all = read(result);
  if (!all || countOf(result) != countOf(product))
    return std::nullopt;
  Type a = elementOf(op->getOperand(0)), type = elementOf(result), before = elementOf(product);
  bool isHalf = type.isF16() || type.isBF16();
  if (!(a.isF32() || a.isF16() || a.isBF16()) || !(type == a || type == before))
    return std::nullopt;
  // A type other than the accumulator's must start from zero.
  auto zero = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (type != before && (!zero || scalarConstant(zero.getInputs()[0]) != 0.0))
    return std::nullopt;
  if (bias && elementOf(bias) != type)
    return std::nullopt;
  Polynomial sum = Polynomial::atom(kProduct);
  if (bias)
    sum = sum + Polynomial::atom(kBias);
  // Constants are written in the element type, and rounded to it.
  double exact = isHalf ? 0x1p-6 : 0x1p-20;
  if (all->isClose(sum, exact))
    // Or the result is only rounded to the type of the operands.
    return bias || type != before ? std::optional<Found>({result, bias, ""}) : std::nullopt;
  for (auto [index, function] : llvm::enumerate(functions)) {
    Polynomial value = Polynomial::atom(kFirstFunction + index);
    if (function.first == kRelu && function.second.isClose(sum, exact) && all->isClose(value, 0))
      return Found{result, bias, "relu"};
    Polynomial inner = (sum + *sum.power(3) * Polynomial::constant(0.044715)) *
                       Polynomial::constant(0.7978845608028654);
    Polynomial gelu = sum * Polynomial::constant(0.5) * (Polynomial::constant(1) + value);
    if (isHalf && function.first == kTanh && function.second.isClose(inner, exact) &&
        all->isClose(gelu, exact))
      return Found{result, bias, "gelu"};
  }
  return std::nullopt;
}

void EpilogueChain::rewrite(const Found &found) {
  auto shape = cast<RankedTensorType>(product.getType()).getShape();
  auto type = RankedTensorType::get(shape, elementOf(found.result));
  auto resultType = cast<RankedTensorType>(found.result.getType());
  std::optional<SmallVector<ReassociationIndices>> groups;
  if (resultType != type)
    groups = getReassociationIndicesForReshape(type, resultType);
  if (resultType != type && !groups)
    return;
  OpBuilder builder(found.result.getDefiningOp());
  Location loc = builder.getFusedLoc({op.getLoc(), found.result.getLoc()});
  Value init = op.getDpsInits()[0];
  if (init.getType() != type) {
    Value empty = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
    init = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  }
  Value bias = found.bias;
  if (bias && cast<RankedTensorType>(bias.getType()).getRank() != 1) {
    SmallVector<ReassociationIndices> all(1);
    for (int64_t dim = 0; dim < cast<RankedTensorType>(bias.getType()).getRank(); ++dim)
      all[0].push_back(dim);
    bias = tensor::CollapseShapeOp::create(
        builder, loc, RankedTensorType::get({form.n}, type.getElementType()), bias, all);
  }
  StringAttr epilogue =
      found.epilogue.empty() ? StringAttr() : builder.getStringAttr(found.epilogue);
  Value result =
      rt::ProductOp::create(builder, loc, type, op->getOperand(0), op->getOperand(1), init, bias,
                            epilogue, builder.getAffineMapArrayAttr(op.getIndexingMapsArray()));
  if (groups && resultType.getRank() > type.getRank())
    result = tensor::ExpandShapeOp::create(builder, loc, resultType, result, *groups);
  else if (groups)
    result = tensor::CollapseShapeOp::create(builder, loc, resultType, result, *groups);
  Value(found.result).replaceAllUsesWith(result);
  // Replaced ops would count as other readers of their operands.
  for (Operation *dead : llvm::reverse(behind.getArrayRef()))
    if (isOpTriviallyDead(dead))
      dead->erase();
  op.erase();
}

void EpilogueChain::run() {
  collect();
  for (Operation *last : llvm::reverse(behind))
    if (isPrivate(last->getResult(0)))
      if (std::optional<Found> found = match(last->getResult(0))) {
        rewrite(*found);
        return;
      }
}

namespace {
struct CodegenFormEpilogues : codegen::impl::CodegenFormEpiloguesBase<CodegenFormEpilogues> {
  void runOnOperation() override {
    if (!dist::isLocalView(getOperation()))
      return;
    roundAttention(getOperation());
    for (linalg::LinalgOp op : gemmLikeOps(getOperation()))
      if (std::optional<GemmForm> form = matchGemm(op); form && hasWholeRows(*form))
        EpilogueChain(op, *form).run();
  }
};
} // namespace
