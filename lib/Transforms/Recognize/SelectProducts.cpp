//===- SelectProducts.cpp - Products with one-hot operands ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[i, j] = sum over v of m[i, v] x[v, j]        m[i, v] = index[i] == v ? g[i] : 0
//
// becomes a sum of which one term counts, and its derivative a scatter:
//
//   y[i, j] = sum over v of select(index[i] == v, g[i] x[v, j], 0)
//   x[v, j] = sum over i of select(index[i] == v, g[i] y[i, j], 0)
//
// The omitted products have a zero factor; they matter only if x is infinite or NaN. The
// product and the sum may be two ops. If x is the result of a product that has no other
// reader, as in the gradient of a gate, only the elements that count are computed:
//
//   y[i] = sum over v of m[i, v] (sum over j of a[i, j] b[v, j])
//        = sum over v, j of select(index[i] == v, a[i, j] b[v, j], 0)
//
//===----------------------------------------------------------------------===//

#include "SelectProducts.h"
#include "../Normalize/PlainOps.h"

#include "ElementExpressions.h"
#include "MatchAttention.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"

#include <array>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limits of the search: producers of an operand, and scalar ops of its formula.
static constexpr int kMostProducers = 16;
static constexpr int kMostOps = 48;
/// A product is computed for the looked-up elements alone if so many times more are not: it is then
/// no contraction, which blocks loops.
static constexpr int64_t kLeastSaving = 32;
/// The least rows of a scatter: a product with fewer is a contraction, which runs at a higher rate
/// than additions in order.
static constexpr int64_t kLeastRows = 64;

namespace {

/// A sum of products of one element of each of two operands.
struct Product {
  linalg::LinalgOp op;
  Operation *multiply; ///< in the body of the op, or of one in front that the op adds up
  std::array<Value, 2> values;
  std::array<AffineMap, 2> maps; ///< of the values, over the loops of the op
};

/// A formula that is the product of `others` if all `conditions` hold, else 0.
struct Factors {
  SmallVector<int, 2> conditions, others;
};

} // namespace

static Value withoutCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The product in a body of its arguments 0 and 1 that makes a value, behind conversions.
static Operation *productOf(Value value) {
  Operation *multiply = withoutCasts(value).getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply) || !multiply->hasOneUse() ||
      multiply->getResult(0).getType().isInteger(1))
    return nullptr;
  Block &block = *multiply->getBlock();
  Value left = withoutCasts(multiply->getOperand(0)), right = withoutCasts(multiply->getOperand(1));
  bool isProduct = (left == block.getArgument(0) && right == block.getArgument(1)) ||
                   (left == block.getArgument(1) && right == block.getArgument(0));
  return isProduct ? multiply : nullptr;
}

static std::optional<Product> matchProduct(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() < 1 || op.getNumDpsInputs() > 2 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() == 0 || !op.hasPureTensorSemantics() || op.hasDynamicShape() ||
      !isPlain(op) ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }) ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
    return std::nullopt;
  Block &block = *op.getBlock();
  BlockArgument accumulator = op.getRegionOutputArgs().front();
  Operation *sum = block.getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum) || !accumulator.hasOneUse() ||
      !llvm::is_contained(sum->getOperands(), accumulator))
    return std::nullopt;
  Value term = sum->getOperand(sum->getOperand(0) == accumulator ? 1 : 0);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (op.getNumDpsInputs() == 2) {
    Operation *multiply = productOf(term);
    if (!multiply || multiply->getBlock() != &block)
      return std::nullopt;
    return Product{op, multiply, {op.getDpsInputs()[0], op.getDpsInputs()[1]}, {maps[0], maps[1]}};
  }
  // A sum of products that another op makes.
  auto maker = op.getDpsInputs()[0].getDefiningOp<linalg::GenericOp>();
  if (term != block.getArgument(0) || !maker || !maker->hasOneUse() ||
      maker.getNumDpsInputs() != 2 || maker->getNumResults() != 1 ||
      maker->getBlock() != op->getBlock() || !isPlain(maker) ||
      maker.getNumParallelLoops() != maker.getNumLoops() ||
      !llvm::all_of(maker.getInputs(),
                    [](Value input) { return isa<RankedTensorType>(input.getType()); }) ||
      !maker.getIndexingMapsArray().back().isIdentity())
    return std::nullopt;
  Operation *multiply = productOf(maker.getBody()->getTerminator()->getOperand(0));
  if (!multiply || multiply->getBlock() != maker.getBody() ||
      multiply->getResult(0) != maker.getBody()->getTerminator()->getOperand(0))
    return std::nullopt;
  Product product{op, multiply, {maker.getInputs()[0], maker.getInputs()[1]}, {}};
  for (unsigned n : {0, 1}) {
    product.maps[n] = maker.getIndexingMapsArray()[n].compose(maps[0]);
    if (!product.maps[n].isProjectedPermutation())
      return std::nullopt;
  }
  return product;
}

/// Whether a comparison of integers may have made the elements: a quick search.
static bool mayBeOneHot(Value value) {
  SmallVector<Value> open{value};
  for (int visited = 0; !open.empty() && visited < kMostProducers; ++visited) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op)
      continue;
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (linalgOp && linalgOp.getNumParallelLoops() == linalgOp.getNumLoops()) {
      for (auto compare : linalgOp.getBlock()->getOps<arith::CmpIOp>())
        if (compare.getPredicate() == arith::CmpIPredicate::eq)
          return true;
      llvm::append_range(open, linalgOp.getDpsInputs());
    } else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
      open.push_back(op->getOperand(0));
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

static bool isNumber(const ElementExpressions &nodes, int node, int64_t number) {
  Attribute value;
  const ElementExpressions::Node &own = nodes[node];
  if (own.kind != ElementExpressions::Kind::op || !own.op ||
      !matchPattern(own.op, m_Constant(&value)))
    return false;
  if (auto real = dyn_cast<FloatAttr>(value))
    return real.getValue().isExactlyValue(static_cast<double>(number));
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer && integer.getValue() == static_cast<uint64_t>(number);
}

/// A formula of 0 and 1 without conversions that keep these values.
static int withoutConversions(const ElementExpressions &nodes, int node) {
  while (true) {
    const ElementExpressions::Node &own = nodes[node];
    if (own.kind != ElementExpressions::Kind::op ||
        !isa<arith::ExtFOp, arith::TruncFOp, arith::UIToFPOp, arith::SIToFPOp, arith::ExtUIOp,
             arith::ExtSIOp, arith::TruncIOp, arith::FPToSIOp, arith::FPToUIOp>(own.op))
      return node;
    int inner = own.operands.front();
    bool isSigned = isa<arith::SIToFPOp, arith::ExtSIOp, arith::FPToSIOp>(own.op);
    if ((isSigned && nodes[inner].type.isInteger(1)) || // true is -1
        own.type.isInteger(1))
      return node;
    node = inner;
  }
}

/// Adds the conditions under which a formula is 1; it is 0 otherwise. Returns whether it is such.
static bool addIndicator(const ElementExpressions &nodes, int node, Factors &found) {
  int inner = withoutConversions(nodes, node);
  const ElementExpressions::Node &own = nodes[inner];
  if (own.kind != ElementExpressions::Kind::op)
    return false;
  if (own.type.isInteger(1)) {
    found.conditions.push_back(inner);
    return true;
  }
  if (isa<arith::SelectOp>(own.op) && nodes[own.operands[0]].type.isInteger(1) &&
      isNumber(nodes, own.operands[2], 0)) {
    size_t before = found.conditions.size();
    found.conditions.push_back(own.operands[0]);
    if (isNumber(nodes, own.operands[1], 1) || addIndicator(nodes, own.operands[1], found))
      return true;
    found.conditions.truncate(before);
    return false;
  }
  if (!isa<arith::MulFOp, arith::MulIOp>(own.op))
    return false;
  size_t before = found.conditions.size();
  if (addIndicator(nodes, own.operands[0], found) && addIndicator(nodes, own.operands[1], found))
    return true;
  found.conditions.truncate(before);
  return false;
}

static void addFactors(const ElementExpressions &nodes, int node, Factors &found) {
  if (addIndicator(nodes, node, found))
    return;
  const ElementExpressions::Node own = nodes[node];
  if (own.kind == ElementExpressions::Kind::op && isa<arith::MulFOp, arith::MulIOp>(own.op)) {
    addFactors(nodes, own.operands[0], found);
    addFactors(nodes, own.operands[1], found);
  } else if (own.kind == ElementExpressions::Kind::op && isa<arith::SelectOp>(own.op) &&
             nodes[own.operands[0]].type.isInteger(1) && isNumber(nodes, own.operands[2], 0)) {
    found.conditions.push_back(own.operands[0]);
    addFactors(nodes, own.operands[1], found);
  } else {
    found.others.push_back(node);
  }
}

/// Adds the loops whose index a condition compares with something else.
static void addCompared(const ElementExpressions &nodes, int condition,
                        llvm::SmallBitVector &loops) {
  const ElementExpressions::Node &own = nodes[condition];
  if (own.kind != ElementExpressions::Kind::op)
    return;
  if (isa<arith::AndIOp>(own.op)) {
    addCompared(nodes, own.operands[0], loops);
    addCompared(nodes, own.operands[1], loops);
  }
  auto compare = dyn_cast<arith::CmpIOp>(own.op);
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return;
  for (int side : own.operands) {
    while (nodes.isOp<arith::IndexCastOp>(side))
      side = nodes[side].operands.front();
    if (nodes[side].kind == ElementExpressions::Kind::index)
      if (auto dim = dyn_cast<AffineDimExpr>(nodes[side].index))
        loops.set(dim.getPosition());
  }
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {

/// Writes formulas in a body.
class FormulaWriter {
public:
  FormulaWriter(const ElementExpressions &nodes, unsigned numLoops)
      : nodes(nodes), numLoops(numLoops) {}

  /// Collects the tensors that a formula reads. Returns whether it can be written.
  bool collect(int node);
  Value write(OpBuilder &b, Location loc, int node, ValueRange arguments);

  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;

private:
  const ElementExpressions &nodes;
  unsigned numLoops;
  llvm::DenseMap<int, unsigned> inputOf; ///< by element
  llvm::DenseSet<int> seen;              ///< looked up only
  llvm::DenseMap<int, Value> written;    ///< looked up only
};

} // namespace

bool FormulaWriter::collect(int node) {
  if (!seen.insert(node).second)
    return true;
  const ElementExpressions::Node own = nodes[node];
  if (seen.size() > kMostOps)
    return false;
  if (own.kind == ElementExpressions::Kind::index)
    return isa<AffineDimExpr>(own.index);
  if (own.kind == ElementExpressions::Kind::op)
    return llvm::all_of(own.operands, [&](int operand) { return collect(operand); });
  if (own.kind != ElementExpressions::Kind::element)
    return false;
  for (AffineExpr index : own.indices) {
    auto number = dyn_cast<AffineConstantExpr>(index);
    if (!isa<AffineDimExpr>(index) && !(number && number.getValue() == 0))
      return false;
  }
  inputOf[node] = inputs.size();
  inputs.push_back(own.tensor);
  maps.push_back(AffineMap::get(numLoops, 0, own.indices, own.tensor.getContext()));
  return true;
}

Value FormulaWriter::write(OpBuilder &b, Location loc, int node, ValueRange arguments) {
  if (auto it = written.find(node); it != written.end())
    return it->second;
  const ElementExpressions::Node own = nodes[node];
  Value made;
  if (own.kind == ElementExpressions::Kind::index) {
    made = linalg::IndexOp::create(b, loc, cast<AffineDimExpr>(own.index).getPosition());
  } else if (own.kind == ElementExpressions::Kind::element) {
    made = arguments[inputOf.lookup(node)];
  } else {
    SmallVector<Value> operands;
    for (int operand : own.operands)
      operands.push_back(write(b, loc, operand, arguments));
    Operation *copy = b.clone(*own.op); // one value of the original may be two operands
    copy->setOperands(operands);
    made = copy->getResult(0);
  }
  return written[node] = made;
}

/// A factor as an operand: an element of a tensor, or the product that makes it.
namespace {
struct Factor {
  SmallVector<Value> values;
  SmallVector<AffineMap> maps; ///< over the loops of the sum, then `more`
  SmallVector<int64_t> more;   ///< summed loops of the product
  Operation *multiply = nullptr;
};
} // namespace

/// The other factor of a product, whose elements are looked up by `conditions`. If a product makes
/// it, and nothing else reads it, the elements of that.
static Factor factorOf(Product product, unsigned number, bool isLookup) {
  Factor factor{{product.values[number]}, {product.maps[number]}, {}};
  auto maker = factor.values[0].getDefiningOp<linalg::LinalgOp>();
  if (!isLookup || !maker || !maker->hasOneUse())
    return factor;
  std::optional<Product> inner = matchProduct(maker);
  Type type = getElementTypeOrSelf(factor.values[0].getType());
  if (!inner || inner->multiply->getBlock() != maker.getBlock() ||
      !isZero(maker.getDpsInits()[0]) || !(type.isF32() || type.isF64()) ||
      inner->multiply->getResult(0).getType() != type)
    return factor;
  // Its parallel loops are those of its result; its others are new.
  MLIRContext *context = maker.getContext();
  unsigned loops = product.op.getNumLoops();
  SmallVector<int64_t> ranges = maker.getStaticLoopRanges();
  auto countOf = [](ArrayRef<int64_t> extents) {
    return static_cast<double>(ShapedType::getNumElements(extents));
  };
  double results = countOf(cast<RankedTensorType>(product.op->getResult(0).getType()).getShape());
  if (countOf(cast<RankedTensorType>(factor.values[0].getType()).getShape()) <
      kLeastSaving * results)
    return factor;
  SmallVector<AffineExpr> exprs(ranges.size());
  AffineMap written = maker.getMatchingIndexingMap(maker.getDpsInitOperand(0));
  for (auto [from, to] : llvm::zip_equal(written.getResults(), factor.maps[0].getResults()))
    exprs[cast<AffineDimExpr>(from).getPosition()] = to;
  for (auto [loop, expr] : llvm::enumerate(exprs))
    if (!expr) {
      expr = getAffineDimExpr(loops + factor.more.size(), context);
      factor.more.push_back(ranges[loop]);
    }
  factor.values.assign(inner->values.begin(), inner->values.end());
  factor.maps.clear();
  for (AffineMap map : inner->maps)
    factor.maps.push_back(map.replaceDimsAndSymbols(exprs, {}, loops + factor.more.size(), 0));
  factor.multiply = inner->multiply;
  return factor;
}

/// Copies a value of another body, whose arguments `known` has.
static Value copyInto(OpBuilder &b, Value value, IRMapping &known) {
  if (known.contains(value))
    return known.lookup(value);
  Operation *op = value.getDefiningOp();
  if (!isa<linalg::LinalgOp>(op->getParentOp()))
    return value;
  for (Value operand : op->getOperands())
    copyInto(b, operand, known);
  b.clone(*op, known);
  return known.lookup(value);
}

/// Whether a sum that selects costs less than the product.
static bool pays(linalg::GenericOp op) {
  int64_t rows = 1;
  bool isLookup = false;
  for (const SelectedLoop &each : replaceableLoops(op)) {
    isLookup |= op.getIteratorTypesArray()[each.loop] == utils::IteratorType::reduction;
    rows *= op.getStaticLoopRanges()[each.loop];
  }
  return isLookup || rows >= kLeastRows;
}

/// The product as a sum that selects, if operand `number` is one-hot; null otherwise.
static linalg::GenericOp select(const Product &product, unsigned number) {
  linalg::LinalgOp op = product.op;
  if (!mayBeOneHot(product.values[number]))
    return {};
  Loops loops{op.getStaticLoopRanges()};
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  AffineMap read = product.maps[number];
  const unsigned *reduced =
      llvm::find_if(reductions, [&](unsigned loop) { return read.isFunctionOfDim(loop); });
  if (reduced == reductions.end())
    return {};
  ElementExpressions nodes(loops, op, *reduced);
  nodes.alsoInlines = mayBeOneHot;
  int formula = nodes.evaluate(product.values[number], read.getResults());
  if (formula == ElementExpressions::kNone)
    return {};
  Factors factors;
  addFactors(nodes, formula, factors);
  // A matrix of indices only may be a band (NarrowBands.h).
  llvm::SmallBitVector compared(op.getNumLoops());
  for (int condition : factors.conditions)
    if (nodes.contains(condition, ElementExpressions::Kind::element))
      addCompared(nodes, condition, compared);
  if (compared.none())
    return {};
  bool isLookup = llvm::any_of(reductions, [&](unsigned loop) {
    return compared.test(loop) && product.maps[1 - number].isFunctionOfDim(loop);
  });
  Factor other = factorOf(product, 1 - number, isLookup && factors.others.empty());
  unsigned numLoops = op.getNumLoops() + other.more.size();
  FormulaWriter writer(nodes, numLoops);
  Type type = product.multiply->getResult(0).getType();
  for (int condition : factors.conditions)
    if (!writer.collect(condition))
      return {};
  for (int factor : factors.others)
    if (nodes[factor].type != type || !writer.collect(factor))
      return {};

  SmallVector<Value> inputs = other.values;
  SmallVector<AffineMap> maps = other.maps;
  llvm::append_range(inputs, writer.inputs);
  llvm::append_range(maps, writer.maps);
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  maps.push_back(AffineMap::get(numLoops, 0, written.getResults(), op.getContext()));
  for (unsigned loop = 0; loop < numLoops; ++loop)
    if (llvm::none_of(maps, [&](AffineMap map) { return map.isFunctionOfDim(loop); }))
      return {};
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  iterators.resize(numLoops, utils::IteratorType::reduction);
  OpBuilder b(op);
  Block &old = *op.getBlock(), &multiplied = *product.multiply->getBlock();
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(), maps, iterators,
      [&](OpBuilder &body, Location at, ValueRange arguments) {
        ValueRange leaves = arguments.slice(other.values.size(), writer.inputs.size());
        // The factor, with the conversions that it has in the product.
        IRMapping mapping;
        Value factor = arguments.front();
        if (other.multiply) {
          IRMapping inner;
          inner.map(other.multiply->getBlock()->getArguments().take_front(2),
                    arguments.take_front(2));
          factor = copyInto(body, other.multiply->getResult(0), inner);
        }
        mapping.map(multiplied.getArgument(1 - number), factor);
        bool isFirst =
            withoutCasts(product.multiply->getOperand(0)) == multiplied.getArgument(1 - number);
        Value term = copyInto(body, product.multiply->getOperand(isFirst ? 0 : 1), mapping);
        for (int node : factors.others) {
          Value value = writer.write(body, at, node, leaves);
          term = isa<FloatType>(type) ? arith::MulFOp::create(body, at, value, term).getResult()
                                      : arith::MulIOp::create(body, at, value, term).getResult();
        }
        Value found;
        for (int condition : factors.conditions) {
          Value holds = writer.write(body, at, condition, leaves);
          found = found ? arith::AndIOp::create(body, at, found, holds).getResult() : holds;
        }
        Value zero = arith::ConstantOp::create(body, at, body.getZeroAttr(type));
        term = arith::SelectOp::create(body, at, found, term, zero);
        // The rest of the body, with this term.
        if (&multiplied == &old)
          mapping.map(product.multiply->getResult(0), term);
        else
          mapping.map(old.getArgument(0), term);
        mapping.map(old.getArguments().back(), arguments.back());
        linalg::YieldOp::create(body, at,
                                copyInto(body, old.getTerminator()->getOperand(0), mapping));
      });
  if (pays(made))
    return made;
  made.erase();
  return {};
}

void dist::selectProducts(func::FuncOp function) {
  SmallVector<Product> products;
  function.walk([&](linalg::LinalgOp op) {
    if (std::optional<Product> product = matchProduct(op))
      products.push_back(*product);
  });
  bool isChanged = false;
  for (const Product &product : products)
    for (unsigned number : {0, 1})
      if (linalg::GenericOp made = select(product, number)) {
        product.op->getResult(0).replaceAllUsesWith(made.getResult(0));
        isChanged = true;
        break;
      }
  if (isChanged)
    eraseDeadTensorOps(function);
}
