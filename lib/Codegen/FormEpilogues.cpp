//===- FormEpilogues.cpp - Bias and activation within products -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an elementwise chain behind a contraction computes is read as a
// polynomial in the contraction's element, the element of one vector, and
// functions of polynomials. However it was written, and over however many ops,
//
//   c + b                                        is a bias,
//   max(c + b, 0)                                a relu,
//   (c + b)/2 + (c + b)/2 tanh(k (c + b) + …)    a gelu,
//
// if the coefficients are those. Everything in the chain is an element of its
// operands at the same place, so the chain may become a part of the product.
//
//===----------------------------------------------------------------------===//

#include "Polynomial.h"
#include "StepOps.h"
#include "tessera/Codegen/Gemm.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMEPILOGUES
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// Ops behind a contraction that are looked at.
static constexpr size_t kMaxChain = 48;

namespace {

/// Reads what follows one contraction.
class Chain {
public:
  Chain(linalg::LinalgOp op, const GemmForm &form)
      : op(op), form(form), product(op->getResult(0)) {}
  /// Replaces the contraction and as much behind it as is an epilogue.
  void run();

private:
  struct Found {
    Value result, bias; ///< bias: null for none
    StringRef epilogue; ///< empty for none
  };
  void collect();
  std::optional<Found> match(Value result);
  bool isPrivate(Value result) const;
  void rewrite(const Found &found);

  std::optional<Polynomial> read(Value value);
  std::optional<Polynomial> readBody(linalg::GenericOp generic, Value scalar,
                                     DenseMap<Value, Polynomial> &known);
  std::optional<Polynomial> readVector(Value value);
  Polynomial unary(unsigned function, const Polynomial &argument);

  enum : unsigned { kProduct, kBias, kFirstFunction };
  enum : unsigned { kTanh, kRelu };

  linalg::LinalgOp op;
  const GemmForm &form;
  Value product, bias;
  SetVector<Operation *> behind; ///< ops that need the product, in order
  DenseMap<Value, std::optional<Polynomial>> memo;
  std::vector<std::pair<unsigned, Polynomial>> functions; ///< atoms from kFirstFunction on
};

} // namespace

static Type elementOf(Value value) {
  return cast<ShapedType>(value.getType()).getElementType();
}
static int64_t countOf(Value value) {
  return cast<ShapedType>(value.getType()).getNumElements();
}

/// A generic whose result has an element for each iteration, in order.
static bool isPointwise(linalg::GenericOp generic) {
  return generic.getNumDpsInits() == 1 && generic.getNumReductionLoops() == 0 &&
         !generic.hasDynamicShape() && generic.getNumResults() == 1 &&
         generic.getIndexingMapsArray().back().isIdentity();
}

/// Whether element i of the iterations reads element i mod (its count) of the operand: the map is
/// of the last loops, in order. Loops of one iteration do not matter.
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

/// A constant scalar, also one from a tensor of one value.
static std::optional<double> numberOf(Value value) {
  FloatAttr number;
  SplatElementsAttr splat;
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return numberOf(fill.getInputs()[0]);
  if (matchPattern(value, m_Constant(&number)))
    return number.getValueAsDouble();
  if (matchPattern(value, m_Constant(&splat)) && isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().convertToDouble();
  return std::nullopt;
}

Polynomial Chain::unary(unsigned function, const Polynomial &argument) {
  for (auto [index, known] : llvm::enumerate(functions))
    if (known.first == function && known.second == argument)
      return Polynomial::atom(kFirstFunction + index);
  functions.push_back({function, argument});
  return Polynomial::atom(kFirstFunction + functions.size() - 1);
}

/// A select that is max(x, 0) and keeps NaN.
static Value reluOperand(arith::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!compare)
    return {};
  Value x = compare.getLhs();
  auto isZero = [](Value value) {
    std::optional<double> number = numberOf(value);
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

std::optional<Polynomial> Chain::readBody(linalg::GenericOp generic, Value scalar,
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
  if (std::optional<double> number = numberOf(scalar))
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

/// A vector along the columns, found behind the ops that only repeat, widen or narrow it.
std::optional<Polynomial> Chain::readVector(Value value) {
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
  if (countOf(value) != form.n || (bias && bias != value) || !isa<FloatType>(elementOf(value)))
    return std::nullopt;
  bias = value;
  return Polynomial::atom(kBias);
}

/// An element of `value`, at the place mod its count of elements.
std::optional<Polynomial> Chain::read(Value value) {
  if (value == product)
    return Polynomial::atom(kProduct);
  if (auto it = memo.find(value); it != memo.end())
    return it->second;
  std::optional<Polynomial> result;
  Operation *made = value.getDefiningOp();
  if (std::optional<double> number = numberOf(value))
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

/// What hangs on the product by elementwise ops and reshapes, in order.
void Chain::collect() {
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

/// Whether nobody but the ops up to `result` reads the product and what is made of it on the way.
bool Chain::isPrivate(Value result) const {
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

std::optional<Chain::Found> Chain::match(Value result) {
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
  // Another type than the accumulator's begins from nothing.
  auto zero = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (type != before && (!zero || numberOf(zero.getInputs()[0]) != 0.0))
    return std::nullopt;
  if (bias && elementOf(bias) != type)
    return std::nullopt;
  Polynomial sum = Polynomial::atom(kProduct);
  if (bias)
    sum = sum + Polynomial::atom(kBias);
  // Constants are written in the element type, and rounded to it.
  double exact = isHalf ? 0x1p-6 : 0x1p-20;
  if (all->isClose(sum, exact))
    return bias ? std::optional<Found>({result, bias, ""}) : std::nullopt;
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

void Chain::rewrite(const Found &found) {
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
  // What it replaces would look like other readers of what it reads.
  for (Operation *dead : llvm::reverse(behind.getArrayRef()))
    if (isOpTriviallyDead(dead))
      dead->erase();
  op.erase();
}

void Chain::run() {
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
    SmallVector<linalg::LinalgOp> contractions;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isGemmLike(op))
        contractions.push_back(op);
    });
    for (linalg::LinalgOp op : contractions)
      if (std::optional<GemmForm> form = matchGemm(op); form && hasWholeRows(*form))
        Chain(op, *form).run();
  }
};
} // namespace
